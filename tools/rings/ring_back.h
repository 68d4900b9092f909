/*
 * Walks over a ring from its newest record to its oldest, while programs write to it. The walk
 * copies one piece of the ring at a time, so it needs little memory. The rule that tells which
 * bytes of a copy are whole is in tracepoints/format/ring.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_BACK_H
#define BLKIN_TOOLS_RINGS_BACK_H

#include "ring_read.h"

/* at: the position of the record's first byte. The entry is valid until the function returns. The
 * function returns false to end the walk. */
typedef bool ring_back_fn(void *context, const struct ring_entry *entry, uint64_t at);

/* A walk, which can be continued. */
struct ring_back {
    struct ring ring;
    uint64_t end;            /* the position at which the walk began */
    uint64_t at;             /* all records from this position to `end` were given */
    uint64_t records, bytes; /* that were read */
    /* true: there are no older records, they are overwritten or damaged, or `give` ended the walk
     */
    bool is_ended;
    bool is_damaged; /* a program has overwritten a trailer: older records cannot be found */
};

#define BACK_PIECE \
    ((uint64_t)1 << 18) /* the size of a piece, which fits into a processor's cache */

/* The copy of a piece. Several walks may use one copy in turn. */
struct ring_back_copy {
    uint64_t from;          /* the position of the copy's first byte */
    uint64_t oldest;        /* bytes before this position may be torn */
    struct ring_entry last; /* the record that was given last; valid until the next piece */
    char last_payload[RING_RECORD_MAX];
    char bytes[BACK_PIECE];
};

/* Begins a walk at `end`, a result of ring_committed(). */
struct ring_back ring_back_begin(struct ring ring, uint64_t end);

/* Returns the position before which records are overwritten now, or soon. */
uint64_t ring_back_oldest(const struct ring_back *back);

/* Gives the records of one piece after the position `until`, which is before back->at and between
 * two records; 0: no bound. Sets copy->last to the oldest record that was given; its payload is
 * NULL if none was given. */
void ring_walk_piece(struct ring_back *back, struct ring_back_copy *copy, uint64_t until,
                     ring_back_fn *give, void *context);

/*
 * Finds one of the oldest records. The ring has all records from the time of this record on.
 * Returns false if nothing was overwritten yet, or if no record is found.
 */
#define RING_OLDEST_BYTES (4 * (size_t)RING_RECORD_MAX)
bool ring_oldest(struct ring ring, char copy[RING_OLDEST_BYTES], struct ring_entry *entry);

#endif
