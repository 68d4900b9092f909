/*
 * Room on the disk: the oldest chunks are deleted unread before there is none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_ROOM_H
#define BLKIN_TOOLS_ROTATE_ROOM_H

#include "store.h"
#include "tools/base/saver.h"
#include "totals.h"

struct room {
    struct store *store;
    struct rotate_totals *totals;
    const struct chunk *at_hand;  /* the converter's: not to be deleted here; name "": none */
    uint64_t largest_chunk;       /* that was seen */
    bool was_full;                /* the file system */
    struct saver_leaving leaving; /* dropped */
    int64_t said_ms;
    int64_t dropped_ns; /* since 1970: when chunks were deleted unread last; 0: not in this run */
};

/* After a scan; max_bytes 0: no bound but the file system's. Returns whether chunks were deleted,
 * and counted. */
bool room_make(struct room *room, uint64_t max_bytes);

/* Returns true once after the file system was full, and is not any more. */
bool room_is_back(struct room *room);

#endif
