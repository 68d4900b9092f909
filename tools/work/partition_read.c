/* Reads messages and adds their spans to the traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "partition_parts.h"

#include "babeltrace-plugin/base/array.h"

/* Traces are scattered in memory. The reader prefetches the buckets of this many spans ahead. */
#define WAITING    32U
#define CACHE_LINE 64

struct waiting {
    struct otlp_span span;
    uint64_t hash;
};

struct message_reading {
    struct partition *partition;
    struct held_message *message;
    struct otlp_origin origin;
    uint32_t service;
    bool is_back;             /* before the watermark: read only to know the decided traces */
    bool is_again;            /* the previous worker has read the message, too */
    struct held_trace *trace; /* of the previous span, mostly also of the next one */
    uint32_t count;
    struct waiting waiting[WAITING];
};

/* ---- the trace of a span --------------------------------------------------------------------- */

static struct held_trace *partition_begin_trace(const struct message_reading *reading,
                                                struct held_trace *before,
                                                const struct waiting *waiting)
{
    struct partition *partition = reading->partition;
    struct held_trace *trace =
        partition_take_item(partition->assembly, &partition->assembly->traces);

    if (!trace)
        return NULL;
    *trace = (struct held_trace){
        .high = waiting->span.trace_id_high,
        .low = waiting->span.trace_id,
        .first_offset = reading->message->offset,
        .first_ms = partition->time_ms,
    };
    if (before) {
        before->is_forgotten = true;
        table_remove(&partition->table, &before->in_table);
    }
    table_add(&partition->table, &trace->in_table, waiting->hash);
    if (reading->is_back) {
        partition_decide(partition, trace);
    } else {
        partition_append(&partition->open_traces, trace);
        partition->assembly->counts->traces_open++;
    }
    return trace;
}

static struct held_trace *partition_find_trace(const struct message_reading *reading,
                                               const struct waiting *waiting)
{
    const uint64_t high = waiting->span.trace_id_high, low = waiting->span.trace_id;
    struct partition *partition = reading->partition;
    struct held_trace *trace;

    if (reading->trace && partition_has_ids(reading->trace, high, low))
        return reading->trace;
    table_find(trace, &partition->table, waiting->hash, in_table,
               partition_has_ids(trace, high, low));
    if (!trace ||
        (trace->is_decided && !partition_is_remembered(partition, trace, partition->time_ms)))
        return partition_begin_trace(reading, trace, waiting);
    return trace;
}

/* ---- the origin of a span -------------------------------------------------------------------- */

static uint32_t partition_name_id(const struct message_reading *reading, struct text name)
{
    return names_id(reading->partition->assembly->names, text_cut(name, WORK_NAME_MAX));
}

/* Most spans have the origin of the previous span. */
static bool partition_is_same_origin(const struct message_reading *reading,
                                     const struct otlp_origin *origin)
{
    const struct otlp_origin *before = &reading->origin;

    return origin->number == before->number &&
           (origin->scope_number == before->scope_number ||
            (text_equal(origin->scope, before->scope) &&
             text_equal(origin->scope_schema, before->scope_schema)));
}

static bool partition_take_origin(struct message_reading *reading, const struct otlp_origin *origin)
{
    struct held_message *message = reading->message;

    if (origin->number != reading->origin.number)
        reading->service = partition_name_id(reading, origin->service);
    if (!ARRAY_FITS(message->origins, message->origins_room, message->origins_count))
        return false;
    message->origins[message->origins_count++] = reading->origin = *origin;
    return true;
}

/* ---- spans ----------------------------------------------------------------------------------- */

/* Assigns field by field, as do the functions below: a struct assignment compiles to a loop, which
 * is slower. */
static void partition_describe(const struct message_reading *reading, const struct otlp_span *span,
                               struct trace_span *described)
{
    described->id = span->id;
    described->parent_id = span->parent_id;
    described->start_ns = span->start_ns;
    described->duration_ns = span->end_ns - span->start_ns;
    described->service = reading->service;
    described->name = partition_name_id(reading, span->name);
    described->remote_service =
        span->peer_service.length ? partition_name_id(reading, span->peer_service) : NAMES_NONE;
    described->kind = (uint8_t)span->kind;
    described->is_error = span->is_error;
    described->is_shared = false;
    described->of = NULL;
}

static void partition_hold(struct message_reading *reading, struct held_trace *trace,
                           const struct otlp_span *span)
{
    struct assembly *assembly = reading->partition->assembly;
    struct held_span *held = NULL;

    if (trace->spans < TRACE_SPANS_MAX)
        held = partition_take_item(assembly, &assembly->spans);
    if (!held) {
        trace->over++;
        return;
    }
    partition_describe(reading, span, &held->span);
    held->span.of = held;
    held->next = NULL;
    held->message = reading->message;
    held->raw = span->raw.data;
    held->raw_length = (uint32_t)span->raw.length;
    held->origin = reading->message->origins_count - 1;
    if (trace->last)
        trace->last->next = held;
    else
        trace->first = held;
    trace->last = held;
    trace->spans++;
}

static void partition_count_in(const struct message_reading *reading)
{
    struct work_counts *counts = reading->partition->assembly->counts;

    if (reading->is_again)
        counts->spans_taken_over++;
    else
        counts->spans_in++;
}

/* Takes a span of a decided trace: counted by the previous worker, or late. */
static void partition_take_decided(const struct message_reading *reading,
                                   const struct held_trace *trace, const struct otlp_span *span)
{
    struct assembly *assembly = reading->partition->assembly;
    struct trace_span described;

    if (reading->is_again && trace->first_offset < reading->partition->start.watermark) {
        assembly->counts->spans_read_back++;
        return;
    }
    partition_describe(reading, span, &described);
    partition_count_in(reading);
    assembly->counts->spans_late++;
    assembly->late(assembly->context, &described);
}

static void partition_take_one(struct message_reading *reading, const struct waiting *waiting)
{
    struct held_trace *trace = partition_find_trace(reading, waiting);
    const struct otlp_span *span = &waiting->span;

    reading->trace = trace;
    if (!trace) {
        reading->partition->assembly->is_starved = true;
        return;
    }
    trace->last_ms = reading->partition->time_ms;
    if (trace->is_decided) {
        partition_take_decided(reading, trace, span);
        return;
    }
    partition_count_in(reading);
    reading->partition->assembly->counts->spans_open++;
    partition_hold(reading, trace, span);
}

/* Returns the first trace of the bucket; NULL: none. */
static const struct held_trace *partition_likely_trace(const struct partition *partition,
                                                       const struct waiting *waiting)
{
    const struct table_link *link = partition->table.buckets[waiting->hash & partition->table.mask];

    return link ? caa_container_of(link, struct held_trace, in_table) : NULL;
}

static void partition_take_waiting(struct message_reading *reading)
{
    const struct partition *partition = reading->partition;

    for (uint32_t i = 0; i < reading->count; i++) {
        const struct held_trace *trace = partition_likely_trace(partition, &reading->waiting[i]);

        __builtin_prefetch(trace, 1);
        __builtin_prefetch((const char *)trace + CACHE_LINE, 1);
    }
    for (uint32_t i = 0; i < reading->count; i++) {
        const struct held_trace *trace = partition_likely_trace(partition, &reading->waiting[i]);

        if (trace)
            __builtin_prefetch(trace->last, 1);
    }
    for (uint32_t i = 0; i < reading->count; i++)
        partition_take_one(reading, &reading->waiting[i]);
    reading->count = 0;
}

static void partition_take_span(void *context, const struct otlp_origin *origin,
                                const struct otlp_span *span)
{
    struct message_reading *reading = context;
    const struct partition *partition = reading->partition;
    struct waiting *waiting;

    if (!partition_is_same_origin(reading, origin)) {
        partition_take_waiting(reading);
        if (!partition_take_origin(reading, origin)) {
            partition->assembly->is_starved = true;
            return;
        }
    }
    waiting = &reading->waiting[reading->count++];
    waiting->span = *span;
    waiting->hash = partition_hash(partition, span->trace_id_high, span->trace_id);
    __builtin_prefetch(&partition->table.buckets[waiting->hash & partition->table.mask], 1);
    if (reading->count == WAITING)
        partition_take_waiting(reading);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void partition_count_message(const struct message_reading *reading,
                                    const struct otlp_decoded *decoded)
{
    struct work_counts *counts = reading->partition->assembly->counts;

    if (reading->is_again)
        return;
    counts->messages++;
    counts->bytes += reading->message->length;
    counts->spans_in += decoded->invalid;
    counts->spans_invalid += decoded->invalid;
    counts->messages_broken += decoded->is_broken;
}

/* Counts missing offsets, except those that the previous worker has read and counted. */
static void partition_count_gap(const struct partition *partition, int64_t offset)
{
    const int64_t expected =
        partition->next > partition->start.read_to ? partition->next : partition->start.read_to;

    if (offset > expected)
        partition->assembly->counts->offsets_missing += (uint64_t)(offset - expected);
}

/* Copies the message, as the caller's bytes may be part of a much larger buffer. Returns NULL when
 * out of memory. */
static struct held_message *partition_copy_message(struct partition *partition,
                                                   const struct log_message *message)
{
    struct held_message *copy = malloc(sizeof(*copy) + message->bytes.length);

    if (!copy)
        return NULL;
    *copy = (struct held_message){.offset = message->offset, .length = message->bytes.length};
    (void)text_copy(copy->bytes, message->bytes);
    if (partition->last_message)
        partition->last_message->next = copy;
    else
        partition->first_message = copy;
    partition->last_message = copy;
    partition->assembly->messages++;
    partition->assembly->counts->open_bytes += copy->length;
    return copy;
}

static void partition_decode(struct partition *partition, struct held_message *message)
{
    struct otlp_decoded decoded;
    struct message_reading reading;

    reading.partition = partition;
    reading.message = message;
    reading.origin = (struct otlp_origin){.number = 0};
    reading.service = NAMES_NONE;
    reading.is_back = message->offset < partition->start.watermark;
    reading.is_again = message->offset < partition->start.read_to;
    reading.trace = NULL;
    reading.count = 0;
    decoded =
        otlp_decode((struct text){message->bytes, message->length}, partition_take_span, &reading);
    partition_take_waiting(&reading);
    partition_count_message(&reading, &decoded);
    partition->assembly->counts->open_bytes += partition_origins_bytes(message);
}

void partition_read(struct partition *partition, const struct log_message *message)
{
    struct held_message *copy;

    partition_count_gap(partition, message->offset);
    if (message->time_ms > partition->time_ms)
        partition->time_ms = message->time_ms;
    else if (message->time_ms < partition->time_ms && message->offset >= partition->start.read_to)
        partition->assembly->counts->messages_skewed++;
    if (message->time_ms > partition->message_ms)
        partition->message_ms = message->time_ms;
    partition_note_time(partition, message->offset);
    partition->next = message->offset; /* traces that close now began before this message */
    partition_pass(partition, partition->time_ms);
    copy = partition_copy_message(partition, message);
    partition->assembly->is_starved |= !copy;
    if (copy)
        partition_decode(partition, copy);
    partition->next = message->offset + 1;
    if (!partition->open_traces.first)
        partition_release_messages(partition);
}
