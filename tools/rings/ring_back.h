/*
 * Walks a ring from its newest record to its oldest while programs go on writing to it. The walk
 * copies pieces, so it needs little memory. tracepoints/format/ring.h has the rule that
 * tells which bytes of a copy are whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_BACK_H
#define BLKIN_TOOLS_RINGS_BACK_H

#include "ring_read.h"

/* at: the position of its first byte. Returns false to end the walk. The entry is valid until then.
 */
typedef bool ring_back_fn(void *context, const struct ring_entry *entry, uint64_t at);

struct ring_back {
    uint64_t records;
    uint64_t bytes;
    bool is_cut;     /* older records were overwritten */
    bool is_damaged; /* a program has overwritten a trailer: older records cannot be found */
};

/* Gives the records that end at or before `end`, a position from ring_end(). Returns false when out
 * of memory. */
bool ring_walk_back(struct ring ring, uint64_t end, ring_back_fn *give, void *context,
                    struct ring_back *result);

/*
 * Finds one of the oldest records. From its time on, the ring has all records. Returns false if
 * nothing was overwritten yet, or if no record is found.
 */
#define RING_OLDEST_BYTES (4 * (size_t)RING_RECORD_MAX)
bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry);

#endif
