/* Shared by the files of a partition. Functions that run for each span or trace are inline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PARTITION_PARTS_H
#define BLKIN_TOOLS_WORK_PARTITION_PARTS_H

#include "partition.h"

#include "babeltrace-plugin/base/hash.h"

#include <string.h>

/* ---- memory of traces and spans -------------------------------------------------------------- */

/* Adds free items; none when out of memory. */
void partition_fill(struct assembly *assembly, struct item_pool *pool);

/* Returns an item with any content; NULL: out of memory. */
static inline void *partition_take_item(struct assembly *assembly, struct item_pool *pool)
{
    void *item;

    if (!pool->free)
        partition_fill(assembly, pool);
    item = pool->free;
    if (item) {
        memcpy(&pool->free, item, sizeof(pool->free));
        assembly->counts->open_bytes += pool->size;
    }
    return item;
}

/* Frees items that are linked from first to last. */
static inline void partition_free_items(struct assembly *assembly, struct item_pool *pool,
                                        void *first, void *last, uint64_t count)
{
    memcpy(last, &pool->free, sizeof(pool->free));
    pool->free = first;
    assembly->counts->open_bytes -= count * pool->size;
}

static inline void partition_free_trace(struct assembly *assembly, struct held_trace *trace)
{
    partition_free_items(assembly, &assembly->traces, trace, trace, 1);
}

static inline void partition_free_spans(struct assembly *assembly, struct held_trace *trace)
{
    if (trace->first)
        partition_free_items(assembly, &assembly->spans, trace->first, trace->last, trace->spans);
    trace->first = trace->last = NULL;
}

/* ---- the table ------------------------------------------------------------------------------- */

static inline uint64_t partition_hash(const struct partition *partition, uint64_t high,
                                      uint64_t low)
{
    return hash_mix(low ^ hash_mix(high ^ partition->table.seed));
}

static inline bool partition_has_ids(const struct held_trace *trace, uint64_t high, uint64_t low)
{
    return trace->low == low && trace->high == high;
}

/* ---- lists ----------------------------------------------------------------------------------- */

static inline void partition_append(struct held_traces *list, struct held_trace *trace)
{
    trace->next = NULL;
    if (list->last)
        list->last->next = trace;
    else
        list->first = trace;
    list->last = trace;
}

static inline struct held_trace *partition_take_first(struct held_traces *list)
{
    struct held_trace *trace = list->first;

    list->first = trace->next;
    if (!list->first)
        list->last = NULL;
    return trace;
}

/* ---- traces that are closed ------------------------------------------------------------------ */

/* Returns how long a closed trace is remembered after its last span. */
static inline int64_t partition_memory_ms(const struct partition *partition)
{
    return 2 * partition->assembly->wait_ms;
}

static inline bool partition_is_remembered(const struct partition *partition,
                                           const struct held_trace *trace, int64_t time_ms)
{
    return trace->last_ms + partition_memory_ms(partition) > time_ms;
}

/* Remembers a trace as decided: its spans are already counted. */
void partition_decide(struct partition *partition, struct held_trace *trace);

/* ---- messages -------------------------------------------------------------------------------- */

static inline uint64_t partition_origins_bytes(const struct held_message *message)
{
    return message->origins_room * sizeof(*message->origins);
}

/* Frees the messages before the first message of the oldest open trace. */
void partition_release_messages(struct partition *partition);

/* Stores the pair of the log's time and this offset, for partition_place(); but not soon after the
 * last pair. */
void partition_note_time(struct partition *partition, int64_t offset);

#endif
