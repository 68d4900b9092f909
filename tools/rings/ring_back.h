/*
 * Walks a ring from its newest record to its oldest while programs go on writing to it. It copies
 * a piece at a time, so it needs little memory for a large ring. tracepoints/format/ring.h has the
 * rule that tells which bytes of a copy are whole.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_BACK_H
#define BLKIN_TOOLS_RINGS_BACK_H

#include "ring_read.h"

/* at: the place of its first byte. Returns false to end the walk. The entry lives until it returns.
 */
typedef bool ring_back_fn(void *context, const struct ring_entry *entry, uint64_t at);

struct ring_back {
    uint64_t records;
    uint64_t bytes;
    bool is_cut;     /* there were older records, which are overwritten */
    bool is_damaged; /* somebody has scribbled: nothing older can be found */
};

/* Gives the records that end before `end`, a place that ring_end() has told. Returns false when out
 * of memory. */
bool ring_walk_back(struct ring ring, uint64_t end, ring_back_fn *give, void *context,
                    struct ring_back *result);

/*
 * A record near the oldest place, for its time: from then on the ring has all. Returns false if
 * nothing was overwritten yet, or none is found there.
 */
#define RING_OLDEST_BYTES (4 * (size_t)RING_RECORD_MAX)
bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry);

#endif
