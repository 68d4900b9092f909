/* Shared by the files of the readers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_READERS_PARTS_H
#define BLKIN_LIVE_READERS_PARTS_H

#include "readers.h"

#define READERS_PATH_SIZE 192
#define READERS_STATS_MS  500 /* the period of a reader's statistics file */

/* Returns the next reader in use. reader NULL: the first; returns NULL: no more. */
static inline struct live_reader *readers_next(struct readers *readers, struct live_reader *reader)
{
    reader = reader ? reader + 1 : readers->readers;
    while (reader < readers->readers + READERS_MAX && !reader->is_used)
        reader++;
    return reader < readers->readers + READERS_MAX ? reader : NULL;
}

/* ---- files of a reader: readers.c ------------------------------------------------------------ */

/* FOLDER/live-HOST-SESSION-HASH.END */
const char *readers_path_of(const struct live_reader *reader, const char *end,
                            char path[READERS_PATH_SIZE]);

/* ---- accounts: readers_account.c ------------------------------------------------------------- */

void readers_read_account(struct live_reader *reader);

/* The service calls the next three functions for a child that has ended, in this order. */
void readers_read_last_account(struct live_reader *reader);
/* Sets the next child's start. Returns the most spans that may come twice. */
uint64_t readers_note_settled(struct live_reader *reader);
/* Returns the number of spans that are lost with the child. */
uint64_t readers_close_account(struct live_reader *reader, bool is_read_again);

/* Reads the files of a reader of an earlier run of the service. */
void readers_find_what_was_before(struct live_reader *reader);

#endif
