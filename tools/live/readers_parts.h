/*
 * What the files of the readers share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_READERS_PARTS_H
#define BLKIN_LIVE_READERS_PARTS_H

#include "readers.h"

#define READERS_PATH_SIZE 192
#define READERS_STATS_MS  500 /* how often they write */

/* ---- its files: readers.c -------------------------------------------------------------------- */

/* FOLDER/live-HOST-SESSION-HASH.END */
const char *readers_path_of(const struct live_reader *reader, const char *end,
                            char path[READERS_PATH_SIZE]);

/* ---- the account: readers_account.c ---------------------------------------------------------- */

void readers_read_account(struct live_reader *reader);

/* Of a child that is gone, in this order. */
void readers_read_last_account(struct live_reader *reader);
/* Where the next one goes on. Returns how many spans come twice then, at most. */
uint64_t readers_note_settled(struct live_reader *reader);
/* Returns how many spans went with it. */
uint64_t readers_close_account(struct live_reader *reader, bool is_read_again);

/* Of a reader that an earlier run of the service has left. */
void readers_find_what_was_before(struct live_reader *reader);

/* ---- starting and ending one: readers.c ------------------------------------------------------ */

/* So that it is started when that time is over, or later, when the relay daemon is there. */
void readers_start_in(struct live_reader *reader, int64_t ms);

/* Ends its child, if it runs, or its wait for one. */
void readers_end_one(void *context);

/* Its session is gone. */
void readers_forget(struct live_reader *reader);

/* A child of this reader has ended. */
void readers_child_ended(void *context, int status);

#endif
