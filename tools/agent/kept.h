/*
 * The kept folders (fetch.h): a child reads one after the other, the oldest first, and sends its
 * spans. A folder is deleted when the collector has taken all of it. A folder that the collector
 * refuses, or that crashes its reader, waits while others pass, and is deleted after some tries.
 * The folders on disk are the whole state, so the agent may be killed at any time.
 *
 * While the collector is away, another child reads the folders that wait and sends nothing: so what
 * they have is known at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_KEPT_H
#define BLKIN_TOOLS_KEPT_H

#include "agent.h"
#include "tools/base/reader_account.h"

extern const struct job kept_job;

/* Of all that the last seconds had, so many traces are named in what is told: no answer has room
 * for more. */
#define KEPT_NAMED_MAX 4096

struct kept_folder {
    uint64_t number;
    uint64_t bytes;
    int64_t until_mono_ns, held_from_ns; /* see fetch.h */
    struct request *requests;
    unsigned failures; /* of its delivery, one after the other */
    unsigned kills;    /* of readers that only looked at it */
    int64_t retry_ms;  /* not to be sent before */
    bool is_found;     /* what there is was told */
    struct kept_folder *next;
};

/*
 * What a folder has: {"traces": [...]}, as of only.h; NULL: it cannot be read, or is gone unread.
 * Once for each folder. Of a request for the traces of a service: these, without more.
 */
typedef void kept_found_fn(void *context, const struct kept_folder *folder, const json_t *found);

struct kept;

/* Takes what an earlier run has left. Returns NULL with error set. */
struct kept *kept_open(struct agent *agent, kept_found_fn *found, void *context,
                       struct error *error);
void kept_close(struct kept *kept); /* NULL is allowed */

/* The number of the next one; the same, taken; and later: it is there. */
uint64_t kept_next_number(const struct kept *kept);
uint64_t kept_new_number(struct kept *kept);
void kept_add(struct kept *kept, uint64_t number);
/* Its fetch has failed, and what it has left, even the whole folder, is deleted. */
void kept_forget(struct kept *kept, uint64_t number);

/* Deletes the oldest until there is room for so much more, by the disk and by kept-max-bytes.
 * Returns how much room there is. */
uint64_t kept_make_room(struct kept *kept, uint64_t more);

/* All that wait, the oldest first: linked by next. */
const struct kept_folder *kept_list(const struct kept *kept);
uint64_t kept_bytes(const struct kept *kept);

/* Of all below that number that wait it was told what they have. */
bool kept_is_told(const struct kept *kept, uint64_t below);

/* Ends the children; what is not delivered within flush-timeout-ms stays. */
void kept_stop(struct kept *kept);
/* A child runs. */
bool kept_is_running(const struct kept *kept);

/* The socket on which the sender shows its spans. */
const char *kept_tap(const struct kept *kept);
/* Of the sender that runs; false: none, or it has told nothing yet. */
bool kept_account(const struct kept *kept, struct reader_account *account);

#endif
