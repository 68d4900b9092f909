/* Shared by the files of a partition. Functions that run for each span or trace are inline.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_PARTITION_PARTS_H
#define BLKIN_TOOLS_WORK_PARTITION_PARTS_H

#include "partition.h"

#include "babeltrace-plugin/base/hash.h"

/* ---- memory of traces and spans -------------------------------------------------------------- */

/* Adds free traces; none when out of memory. */
void partition_add_traces(struct assembly *assembly);
void partition_add_spans(struct assembly *assembly);

static inline struct held_trace *partition_new_trace(struct assembly *assembly)
{
    struct held_trace *trace;

    if (!assembly->free_traces)
        partition_add_traces(assembly);
    trace = assembly->free_traces;
    if (trace) {
        assembly->free_traces = trace->next;
        assembly->counts->open_bytes += sizeof(*trace);
    }
    return trace;
}

static inline void partition_free_trace(struct assembly *assembly, struct held_trace *trace)
{
    trace->next = assembly->free_traces;
    assembly->free_traces = trace;
    assembly->counts->open_bytes -= sizeof(*trace);
}

static inline struct held_span *partition_new_span(struct assembly *assembly)
{
    struct held_span *span;

    if (!assembly->free_spans)
        partition_add_spans(assembly);
    span = assembly->free_spans;
    if (span) {
        assembly->free_spans = span->next;
        assembly->counts->open_bytes += sizeof(*span);
    }
    return span;
}

/* Frees all spans of the trace at once. */
static inline void partition_free_spans(struct assembly *assembly, struct held_trace *trace)
{
    if (!trace->first)
        return;
    trace->last->next = assembly->free_spans;
    assembly->free_spans = trace->first;
    assembly->counts->open_bytes -= trace->spans * sizeof(*trace->first);
    trace->first = trace->last = NULL;
}

/* ---- the table: open addressing, at most half full ------------------------------------------- */

struct table_place {
    uint64_t hash; /* of the trace id; saves most accesses to traces */
    struct held_trace *trace;
};

static inline uint64_t partition_hash(const struct partition *partition, uint64_t high,
                                      uint64_t low)
{
    return hash_mix(low ^ hash_mix(high ^ partition->assembly->seed));
}

/* Returns the first slot of a search. */
static inline struct table_place *partition_home_of(const struct partition *partition,
                                                    uint64_t hash)
{
    return &partition->table[(uint32_t)hash & partition->table_mask];
}

static inline bool partition_has_ids(const struct held_trace *trace, uint64_t high, uint64_t low)
{
    return trace->low == low && trace->high == high;
}

/* Returns the slot of the trace, or the free slot for it. */
static inline struct table_place *partition_find(const struct partition *partition, uint64_t hash,
                                                 uint64_t high, uint64_t low)
{
    uint32_t i = (uint32_t)hash & partition->table_mask;

    while (partition->table[i].trace && (partition->table[i].hash != hash ||
                                         !partition_has_ids(partition->table[i].trace, high, low)))
        i = (i + 1) & partition->table_mask;
    return &partition->table[i];
}

/* Resizes the table; `slots` is a power of two. Returns false and keeps the old table when out of
 * memory. */
bool partition_set_table(struct partition *partition, uint32_t slots);

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

/* The spans are counted: remembers the trace as decided. */
void partition_decide(struct partition *partition, struct held_trace *trace);

/* ---- messages -------------------------------------------------------------------------------- */

static inline uint64_t partition_origins_bytes(const struct held_message *message)
{
    return message->origins_room * sizeof(*message->origins);
}

/* Frees messages that no open trace needs. */
void partition_release_messages(struct partition *partition);

/* Notes that the log has the partition's time at this offset. */
void partition_note_time(struct partition *partition, int64_t offset);

#endif
