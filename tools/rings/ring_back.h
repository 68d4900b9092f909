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

/* A walk, which can go on later. */
struct ring_back {
    struct ring ring;
    uint64_t end; /* where the walk began */
    uint64_t at;  /* between two records: all after it were given */
    uint64_t records, bytes;
    bool is_ended;   /* the walk goes on no more: older records are overwritten or damaged, or
                        there are none, or the function has ended the walk */
    bool is_damaged; /* somebody has scribbled: nothing older can be found */
};

/* The copy of a piece, which walks use one after the other. */
#define BACK_PIECE ((uint64_t)1 << 18) /* stays in the processor's cache */

struct ring_back_copy {
    uint64_t from;   /* the place of the copy's first byte */
    uint64_t oldest; /* what is before it may be torn */
    /* the record that was given last: it lives until the next walk */
    struct ring_entry last;
    char last_payload[RING_RECORD_MAX];
    char bytes[BACK_PIECE];
};

/* A walk from `end`, a place that ring_end() has told. */
struct ring_back ring_back_begin(struct ring ring, uint64_t end);

/* Gives the records back to the place `until`, which is between two records; 0: all. `last` of the
 * copy is the oldest record that was given, with a NULL payload if none was. */
void ring_walk_back(struct ring_back *back, struct ring_back_copy *copy, uint64_t until,
                    ring_back_fn *give, void *context);

/*
 * A record near the oldest place, for its time: from then on the ring has all. Returns false if
 * nothing was overwritten yet, or none is found there.
 */
#define RING_OLDEST_BYTES (4 * (size_t)RING_RECORD_MAX)
bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry);

#endif
