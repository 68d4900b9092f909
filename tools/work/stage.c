/* SPDX-License-Identifier: BSD-2-Clause */
#include "stage.h"

#include "babeltrace-plugin/encode/encoder.h"
#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/otlp/otlp_write.h"

#include <fnmatch.h>
#include <stdlib.h>

/* The most bytes of protobuf's tags and lengths around one span, or around one part of an origin.
 */
#define AROUND_MAX 64U

struct keeper {
    /* for a topic */
    keeper_emit_fn *emit;
    void *context;
    uint32_t partitions;
    struct buffer *messages; /* for each partition, the message that is being filled */
    /* for an exporter */
    struct exporter *exporter;
    struct endpoint_table *endpoints;
    struct span whole;
};

/* ---- a topic --------------------------------------------------------------------------------- */

struct keeper *keeper_new_topic(uint32_t partitions, keeper_emit_fn *emit, void *context)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));

    if (!keeper)
        return NULL;
    *keeper = (struct keeper){.emit = emit,
                              .context = context,
                              .partitions = partitions,
                              .messages = calloc(partitions, sizeof(*keeper->messages))};
    if (keeper->messages)
        return keeper;
    keeper_free(keeper);
    return NULL;
}

static bool keeper_emit_message(struct keeper *keeper, uint32_t partition)
{
    struct buffer *message = &keeper->messages[partition];
    const size_t length = message->length;

    message->length = 0;
    return length == 0 || keeper->emit(keeper->context, partition, message->data, length);
}

static bool keeper_has_same_origin(const struct held_span *a, const struct held_span *b)
{
    const struct otlp_origin *left = held_origin(a), *right = held_origin(b);

    return left == right ||
           (text_equal(left->resource, right->resource) &&
            text_equal(left->schema, right->schema) && text_equal(left->scope, right->scope) &&
            text_equal(left->scope_schema, right->scope_schema));
}

static size_t keeper_origin_size(const struct otlp_origin *origin)
{
    return 2 * AROUND_MAX + origin->resource.length + origin->schema.length + origin->scope.length +
           origin->scope_schema.length;
}

static size_t keeper_size_of(const struct held_span *span)
{
    return AROUND_MAX + span->raw_length;
}

/* Returns the end of the run of spans that have one origin and fit into `room`. Sets *size to their
 * bytes. */
static const struct held_span *keeper_run_end(const struct held_span *first, size_t room,
                                              size_t *size)
{
    const struct held_span *span = first;

    *size = keeper_origin_size(held_origin(first));
    while (span && keeper_has_same_origin(first, span) && *size + keeper_size_of(span) <= room) {
        *size += keeper_size_of(span);
        span = span->next;
    }
    return span;
}

/* Appends a ResourceSpans. */
static void keeper_put_run(struct buffer *message, const struct held_span *first,
                           const struct held_span *end)
{
    const struct otlp_origin *origin = held_origin(first);
    struct otlp_origin_at places;
    char *at = otlp_resource_begin(message, origin->resource, origin->schema, &places);

    at = otlp_scope_begin(message, at, origin->scope, origin->scope_schema, &places);
    for (const struct held_span *span = first; span != end; span = span->next)
        at = otlp_put_raw(at, PB_BYTES(2), (struct text){span->raw, span->raw_length});
    otlp_origin_end(message, &places, at);
}

static bool keeper_put_spans(struct keeper *keeper, uint32_t partition,
                             const struct held_span *span, struct work_counts *counts)
{
    struct buffer *message = &keeper->messages[partition];

    while (span) {
        size_t size;
        const struct held_span *end =
            keeper_run_end(span, KEPT_MESSAGE_MAX - message->length, &size);

        if (end == span && message->length) {
            if (!keeper_emit_message(keeper, partition))
                return false;
            continue;
        }
        if (end == span) {
            counts->spans_too_large++;
            end = span->next;
        } else {
            if (!buffer_reserve(message, size))
                return false;
            keeper_put_run(message, span, end);
        }
        span = end;
    }
    return true;
}

/* Writes a trace into one message if the trace fits. */
static bool keeper_add_to_topic(struct keeper *keeper, const struct held_trace *trace,
                                struct work_counts *counts)
{
    const uint32_t partition = kafka_partition(trace->high, trace->low, keeper->partitions);
    size_t size = 0;

    for (const struct held_span *span = trace->first; span; span = span->next)
        size += keeper_size_of(span) + keeper_origin_size(held_origin(span));
    if (keeper->messages[partition].length + size > KEPT_MESSAGE_MAX &&
        !keeper_emit_message(keeper, partition))
        return false;
    return keeper_put_spans(keeper, partition, trace->first, counts);
}

/* ---- an exporter ----------------------------------------------------------------------------- */

struct keeper *keeper_new_exporter(const struct exporter_options *options,
                                   const struct exporter_callbacks *callbacks, struct error *error)
{
    struct keeper *keeper = calloc(1, sizeof(*keeper));

    error_set(error, "out of memory");
    if (!keeper)
        return NULL;
    keeper->endpoints = endpoint_table_new();
    if (keeper->endpoints)
        keeper->exporter = exporter_new(options, callbacks, error);
    if (keeper->exporter)
        return keeper;
    keeper_free(keeper);
    return NULL;
}

static bool keeper_add_to_exporter(struct keeper *keeper, const struct held_trace *trace)
{
    for (const struct held_span *span = trace->first; span; span = span->next) {
        struct otlp_span fast;

        if (!otlp_read_span((struct text){span->raw, span->raw_length}, &fast) ||
            !otlp_decode_span(held_origin(span), &fast, keeper->endpoints, &keeper->whole))
            return false;
        exporter_add(keeper->exporter, &keeper->whole);
    }
    return true;
}

/* ---- both kinds of keepers ------------------------------------------------------------------- */

bool keeper_add(struct keeper *keeper, const struct held_trace *trace, struct work_counts *counts)
{
    counts->traces_kept++;
    counts->spans_kept += trace->spans;
    return keeper->exporter ? keeper_add_to_exporter(keeper, trace)
                            : keeper_add_to_topic(keeper, trace, counts);
}

bool keeper_flush(struct keeper *keeper, struct error *error)
{
    if (keeper->exporter) {
        exporter_flush(keeper->exporter);
        return !exporter_has_failed(keeper->exporter, error);
    }
    for (uint32_t i = 0; i < keeper->partitions; i++) {
        if (!keeper_emit_message(keeper, i))
            return error_set(error, "cannot write a message of kept traces");
    }
    return true;
}

bool keeper_exporter_counts(struct keeper *keeper, struct exporter_counts *counts)
{
    if (keeper->exporter)
        *counts = exporter_counts(keeper->exporter);
    return keeper->exporter != NULL;
}

void keeper_free(struct keeper *keeper)
{
    struct error error;

    if (!keeper)
        return;
    if (keeper->exporter)
        (void)exporter_close(keeper->exporter, &error);
    exporter_free(keeper->exporter);
    endpoint_table_free(keeper->endpoints);
    free(keeper->whole.log);
    for (uint32_t i = 0; keeper->messages && i < keeper->partitions; i++)
        buffer_free(&keeper->messages[i]);
    free(keeper->messages);
    free(keeper);
}

/* ---- the stage ------------------------------------------------------------------------------- */

#define STAGE_NAMES_MAX 65536U
#define NAMES_BYTES_MAX (16U << 20)

/* Looks for a tag in the attributes of the span and of its resource. The resource has another key
 * for the host. */
static bool work_stage_has_tag(void *context, const struct trace_span *span, struct text key,
                               const char *glob)
{
    const struct held_span *held = span->of;
    char value[WORK_NAME_MAX];

    (void)context;
    if (!otlp_attribute_text((struct text){held->raw, held->raw_length}, OTLP_SPAN_ATTRIBUTE, key,
                             value, sizeof(value)) &&
        !otlp_attribute_text(held_origin(held)->resource, OTLP_RESOURCE_ATTRIBUTE,
                             text_is(key, RESOURCE_HOST_TAG) ? text_of("host.name") : key, value,
                             sizeof(value)))
        return false;
    return !glob || fnmatch(glob, value, 0) == 0;
}

static struct text work_stage_own_name(const struct trace_span *span, bool is_service)
{
    const struct held_span *held = span->of;
    struct otlp_span fast;

    if (is_service)
        return held_origin(held)->service;
    return otlp_read_span((struct text){held->raw, held->raw_length}, &fast) ? fast.name
                                                                             : text_of("");
}

/* Returns false when out of memory. */
static bool work_stage_keep_if_wanted(struct work_stage *stage, const struct held_trace *trace)
{
    const struct tail_trace tail = {
        .model = &stage->model,
        .trace_id = trace->low,
        .has_tag = work_stage_has_tag,
        .own_name = work_stage_own_name,
    };

    return !stage->keeper || !tail_rules_fit(stage->rules, &tail, stage->statistics) ||
           keeper_add(stage->keeper, trace, &stage->counts);
}

static void work_stage_close_trace(void *context, const struct held_trace *trace)
{
    struct work_stage *stage = context;
    bool has_room = true;

    trace_model_clear(&stage->model);
    for (const struct held_span *span = trace->first; span; span = span->next)
        has_room = has_room && trace_model_add(&stage->model, &span->span);
    has_room = has_room && trace_model_link(&stage->model);
    if (has_room) {
        stage->counts.traces_incomplete += !trace_model_is_whole(&stage->model);
        has_room = work_stage_keep_if_wanted(stage, trace);
        has_room = statistics_add_trace(stage->statistics, &stage->model) && has_room;
    }
    stage->assembly.is_starved |= !has_room;
}

static void work_stage_count_late(void *context, const struct trace_span *span)
{
    struct work_stage *stage = context;

    stage->assembly.is_starved |= !statistics_add_span(stage->statistics, span);
}

bool work_stage_open(struct work_stage *stage, int64_t wait_ms)
{
    stage->names = names_new(STAGE_NAMES_MAX, NAMES_BYTES_MAX);
    stage->statistics = stage->names ? statistics_new(stage->names) : NULL;
    stage->assembly = (struct assembly){
        .wait_ms = wait_ms,
        .names = stage->names,
        .counts = &stage->counts,
        .close = work_stage_close_trace,
        .late = work_stage_count_late,
        .context = stage,
    };
    assembly_open(&stage->assembly);
    return stage->statistics != NULL;
}

void work_stage_close(struct work_stage *stage)
{
    keeper_free(stage->keeper);
    tail_rules_free(stage->rules);
    trace_model_destroy(&stage->model);
    statistics_free(stage->statistics);
    names_free(stage->names);
    assembly_close(&stage->assembly);
}
