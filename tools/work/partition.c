/*
 * The traces of one partition: memory, table, closing, remembering and forgetting.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "partition_parts.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define SLAB_BYTES (UINT32_C(1) << 20)

/* ---- memory of traces and spans: slabs that are used again ----------------------------------- */

struct slab {
    struct slab *next;
    _Alignas(max_align_t) char items[];
};

void partition_fill(struct assembly *assembly, struct item_pool *pool)
{
    struct slab *slab = malloc(SLAB_BYTES);

    assembly->is_starved |= !slab;
    if (!slab)
        return;
    slab->next = assembly->slabs;
    assembly->slabs = slab;
    for (size_t i = (SLAB_BYTES - sizeof(*slab)) / pool->size; i; i--) {
        char *item = slab->items + (i - 1) * pool->size;

        memcpy(item, &pool->free, sizeof(pool->free));
        pool->free = item;
    }
}

void assembly_open(struct assembly *assembly)
{
    assembly->traces.size = sizeof(struct held_trace);
    assembly->spans.size = sizeof(struct held_span);
}

void assembly_close(struct assembly *assembly)
{
    struct slab *next;

    for (struct slab *slab = assembly->slabs; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    assembly->slabs = NULL;
}

/* ---- the log's time -------------------------------------------------------------------------- */

static struct log_time *partition_time_at(struct partition *partition, uint32_t i)
{
    return &partition->times[i % LOG_TIMES];
}

/* Stores times in steps of wait / 32. In a full ring, the new entry replaces the last one, so the
 * next worker reads back more. */
void partition_note_time(struct partition *partition, int64_t offset)
{
    const int64_t step = partition->assembly->wait_ms / 32 + 1;
    const uint32_t used = partition->next_time - partition->first_time;

    if (used &&
        partition->time_ms < partition_time_at(partition, partition->next_time - 1)->ms + step)
        return;
    if (used == LOG_TIMES)
        partition->next_time--;
    *partition_time_at(partition, partition->next_time++) =
        (struct log_time){partition->time_ms, offset};
}

/* Returns the time at the watermark, or before it. */
static int64_t partition_watermark_ms(const struct partition *partition)
{
    return partition->open_traces.first ? partition->open_traces.first->first_ms
                                        : partition->time_ms;
}

/* Drops the entries before the last one that precedes the remembered traces. */
static void partition_forget_times(struct partition *partition)
{
    const int64_t from_ms = partition_watermark_ms(partition) - partition_memory_ms(partition);

    while (partition->next_time - partition->first_time > 1 &&
           partition_time_at(partition, partition->first_time + 1)->ms <= from_ms)
        partition->first_time++;
}

/* ---- closing --------------------------------------------------------------------------------- */

static int64_t partition_watermark(const struct partition *partition)
{
    return partition->open_traces.first ? partition->open_traces.first->first_offset
                                        : partition->next;
}

void partition_release_messages(struct partition *partition)
{
    const int64_t needed = partition_watermark(partition);
    struct held_message *message;

    while ((message = partition->first_message) && message->offset < needed) {
        partition->first_message = message->next;
        if (!message->next)
            partition->last_message = NULL;
        partition->assembly->counts->open_bytes -= message->length;
        partition->assembly->counts->open_bytes -= partition_origins_bytes(message);
        partition->assembly->messages--;
        free(message->origins);
        free(message);
    }
}

void partition_decide(struct partition *partition, struct held_trace *trace)
{
    trace->is_decided = true;
    trace->queued_ms = partition->time_ms;
    partition_append(&partition->decided, trace);
}

static void partition_close_first(struct partition *partition)
{
    struct held_trace *trace = partition_take_first(&partition->open_traces);
    const struct held_trace *next = partition->open_traces.first;
    struct work_counts *counts = partition->assembly->counts;

    if (next) { /* prefetches the next traces to close */
        __builtin_prefetch(next->first);
        __builtin_prefetch(next->next, 1);
    }
    partition->assembly->close(partition->assembly->context, trace);
    counts->traces_closed++;
    counts->spans_counted += trace->spans;
    counts->spans_over += trace->over;
    counts->spans_open -= trace->spans + trace->over;
    counts->traces_open--;
    partition_free_spans(partition->assembly, trace);
    partition_decide(partition, trace);
}

static void partition_forget_first(struct partition *partition)
{
    struct held_trace *trace = partition_take_first(&partition->decided);
    const struct held_trace *next = trace->next;

    if (next) { /* prefetches the next traces to forget, which are not in the cache */
        __builtin_prefetch(next->next, 1);
        __builtin_prefetch(next->in_table.at, 1);
    }
    if (!trace->is_forgotten)
        table_remove(&partition->table, &trace->in_table);
    partition_free_trace(partition->assembly, trace);
}

/* Queues a decided trace again if spans of the trace have come since the last time. */
static void partition_forget(struct partition *partition, int64_t time_ms)
{
    struct held_trace *trace;

    while ((trace = partition->decided.first) &&
           trace->queued_ms + partition_memory_ms(partition) <= time_ms) {
        if (trace->is_forgotten || !partition_is_remembered(partition, trace, time_ms)) {
            partition_forget_first(partition);
        } else {
            trace->queued_ms = time_ms;
            partition_append(&partition->decided, partition_take_first(&partition->decided));
        }
    }
}

void partition_pass(struct partition *partition, int64_t time_ms)
{
    while (partition_due_ms(partition) <= time_ms)
        partition_close_first(partition);
    partition_forget(partition, time_ms);
    partition_forget_times(partition);
    partition_release_messages(partition);
}

bool partition_relieve(struct partition *partition)
{
    if (partition->open_traces.first) {
        partition->assembly->counts->traces_early++;
        partition_close_first(partition);
        partition_release_messages(partition);
        return true;
    }
    if (!partition->decided.first)
        return false;
    partition->assembly->counts->traces_forgotten += !partition->decided.first->is_forgotten;
    partition_forget_first(partition);
    return true;
}

/* ---- the partition --------------------------------------------------------------------------- */

bool partition_open(struct partition *partition, struct assembly *assembly, struct place start)
{
    *partition = (struct partition){
        .assembly = assembly,
        .start = start,
        .next = start.read_back,
        .time_ms = INT64_MIN / 2,
        .message_ms = start.time_ms,
    };
    return table_init(&partition->table);
}

void partition_close(struct partition *partition)
{
    struct assembly *assembly = partition->assembly;

    while (partition->open_traces.first) {
        struct held_trace *trace = partition_take_first(&partition->open_traces);
        const uint32_t spans = trace->spans + trace->over;

        assembly->counts->spans_open -= spans;
        assembly->counts->spans_handed_over += spans;
        assembly->counts->traces_open--;
        partition_free_spans(assembly, trace);
        partition_free_trace(assembly, trace);
    }
    while (partition->decided.first)
        partition_free_trace(assembly, partition_take_first(&partition->decided));
    partition_release_messages(partition);
    table_destroy(&partition->table, NULL);
}

struct place partition_place(const struct partition *partition)
{
    const int64_t from_ms = partition_watermark_ms(partition) - partition_memory_ms(partition);
    struct place place = {
        .watermark = partition_watermark(partition),
        .read_to = partition->next,
        .time_ms = partition->message_ms,
    };

    /* while the worker reads back, the committed place stays valid */
    if (place.watermark < partition->start.watermark)
        place.watermark = partition->start.watermark;
    if (place.read_to < partition->start.read_to)
        place.read_to = partition->start.read_to;
    place.read_back = partition->start.read_back;
    for (uint32_t i = partition->first_time; i != partition->next_time; i++) {
        const struct log_time *time = &partition->times[i % LOG_TIMES];

        if (i != partition->first_time && time->ms > from_ms)
            break;
        if (time->from > place.read_back)
            place.read_back = time->from;
    }
    if (place.read_back > place.watermark)
        place.read_back = place.watermark;
    return place;
}

/* ---- the worker's place ---------------------------------------------------------------------- */

void place_write(const struct place *place, char text[PLACE_TEXT_MAX])
{
    (void)snprintf(text, PLACE_TEXT_MAX, "blkin1 %" PRId64 " %" PRId64 " %" PRId64,
                   place->read_back, place->read_to, place->time_ms);
}

struct place place_read(int64_t watermark, struct text text)
{
    struct place place = {watermark, watermark, watermark, 0};
    char copy[PLACE_TEXT_MAX] = "";
    int64_t read_back, read_to, time_ms = 0;

    if (text.length >= sizeof(copy))
        return place;
    (void)text_copy(copy, text);
    if (sscanf(copy, "blkin1 %20" SCNd64 " %20" SCNd64 " %20" SCNd64, &read_back, &read_to,
               &time_ms) >= 2 &&
        read_back >= 0 && read_back <= watermark && read_to >= watermark) {
        place.read_back = read_back;
        place.read_to = read_to;
        place.time_ms = time_ms > 0 ? time_ms : 0;
    }
    return place;
}

static int64_t place_smaller(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

struct place place_cut(const struct place *place, int64_t low, int64_t cut)
{
    struct place left = *place;

    left.read_to = cut;
    left.watermark = place_smaller(place->watermark, cut);
    left.read_back = place_smaller(place->read_back, left.watermark);
    if (left.watermark < low)
        left.watermark = low;
    if (left.read_back < low)
        left.read_back = low;
    return left;
}
