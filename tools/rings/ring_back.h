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

/* A walk, which can go on later. */
struct ring_back {
    struct ring ring;
    uint64_t end; /* where the walk began */
    uint64_t at;  /* between two records: all later ones were given */
    uint64_t records, bytes;
    /* older records are overwritten or damaged, or there are none, or the function has ended the
     * walk */
    bool is_ended;
    bool is_damaged; /* a program has overwritten a trailer: older records cannot be found */
};

/* The copy of a piece, which walks use one after the other. */
#define BACK_PIECE ((uint64_t)1 << 18) /* stays in the processor's cache */

struct ring_back_copy {
    uint64_t from;   /* the position of the copy's first byte */
    uint64_t oldest; /* bytes before this position may be torn */
    /* the record that was given last: the entry lives until the next walk */
    struct ring_entry last;
    char last_payload[RING_RECORD_MAX];
    char bytes[BACK_PIECE];
};

/* A walk from `end`, a position from ring_end(). */
struct ring_back ring_back_begin(struct ring ring, uint64_t end);

/* Gives the records back to the position `until`, between two records; 0: all. Then `last` of the
 * copy is the oldest record that was given; its payload is NULL if there was none. */
void ring_walk_back(struct ring_back *back, struct ring_back_copy *copy, uint64_t until,
                    ring_back_fn *give, void *context);

/*
 * Finds one of the oldest records. From its time on, the ring has all records. Returns false if
 * nothing was overwritten yet, or if no record is found.
 */
#define RING_OLDEST_BYTES (4 * (size_t)RING_RECORD_MAX)
bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry);

#endif
