/*
 * Parts of the rings that earlier scans have read, with the traces that have records there. A scan
 * reads only the parts that may have records of its traces.
 *
 * The traces of a part are in a filter, not in a list. The filter has each trace with records in
 * the part. It may also have other traces, which costs time only. An index takes at most about a
 * 64th of the rings' memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCAN_INDEX_H
#define BLKIN_TOOLS_SCAN_INDEX_H

#include "tools/rings/ring_back.h"

struct scan_filter {
    uint64_t bits[512];
};

/* hash: hash_mix() of a trace's id. */
static inline void scan_filter_add(struct scan_filter *filter, uint64_t hash)
{
    filter->bits[hash >> 6 & 511] |= UINT64_C(1) << (hash & 63);
    filter->bits[hash >> 38 & 511] |= UINT64_C(1) << (hash >> 32 & 63);
}

static inline bool scan_filter_has(const struct scan_filter *filter, uint64_t hash)
{
    return filter->bits[hash >> 6 & 511] >> (hash & 63) &
           filter->bits[hash >> 38 & 511] >> (hash >> 32 & 63) & 1;
}

/* The records from one position to another. */
struct scan_part {
    struct scan_part *older;
    uint64_t from, to;
    int64_t oldest_ns; /* CLOCK_MONOTONIC: the time of the oldest record */
    struct scan_filter filter;
};

struct scan_index;

/* Returns NULL when out of memory. */
struct scan_index *scan_index_new(void);
void scan_index_free(struct scan_index *index); /* NULL is allowed */

/* The parts of a ring. */
struct scan_parts;

/* Returns the parts of the ring of this walk, and removes overwritten parts. user, memory: the user
 * and the number of the ring's memory. Returns NULL when out of memory. */
struct scan_parts *scan_index_ring(struct scan_index *index, uint32_t user, uint64_t memory,
                                   uint32_t cpu, const struct ring_back *back);

/* Removes the rings for which scan_index_ring() was not called since the last sweep. */
void scan_index_sweep(struct scan_index *index);

/* Returns the newest part that begins before the position; NULL: there is none. */
const struct scan_part *scan_parts_find(struct scan_parts *parts, uint64_t at);

/* Adds a part, which overlaps no other part. Adds nothing when out of memory. */
void scan_parts_add(struct scan_parts *parts, const struct scan_part *part);

#endif
