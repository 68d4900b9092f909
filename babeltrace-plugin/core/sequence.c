/*
 * The last sequence number of each thread, in a table of fixed size.
 *
 * A thread that finds its place taken displaces the other one, whose next event then counts as its
 * first: with more threads than places some gaps go unseen, and memory stays what it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sequence.h"

#include "hash.h"

#include <stdlib.h>

#define PLACES 16384 /* a power of two */

struct place {
    uint64_t thread; /* 0: free; threads are never numbered 0 */
    uint64_t sequence;
    int64_t time_ns;
};

struct sequence_table {
    struct place places[PLACES];
};

struct sequence_table *sequence_table_new(void)
{
    return calloc(1, sizeof(struct sequence_table));
}

void sequence_table_free(struct sequence_table *table)
{
    free(table);
}

uint64_t sequence_note(struct sequence_table *table, uint64_t thread, uint64_t sequence,
                       int64_t time_ns, int64_t *since_ns)
{
    struct place *place = &table->places[hash_mix(thread) & (PLACES - 1)];
    uint64_t missing = 0;

    if (place->thread == thread && sequence > place->sequence && sequence - place->sequence > 1) {
        missing = sequence - place->sequence - 1;
        *since_ns = place->time_ns;
    }
    place->thread = thread;
    place->sequence = sequence;
    place->time_ns = time_ns;
    /* the numbers have 32 bits, so there cannot be more in between */
    return missing > UINT32_MAX ? 0 : missing;
}
