/* Writes kept traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "keeper.h"

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/otlp/otlp_write.h"

#include <stdlib.h>

/* The bytes around the spans of an origin. */
#define AROUND_MAX 64U

struct keeper {
    /* for a topic */
    keeper_emit_fn *emit;
    void *context;
    uint32_t partitions;
    struct buffer *messages;        /* for each partition, the message that is being filled */
    const struct held_span **spans; /* of the trace, sorted by origin */
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
                              .messages = calloc(partitions, sizeof(*keeper->messages)),
                              .spans = calloc(TRACE_SPANS_MAX, sizeof(*keeper->spans))};
    if (keeper->messages && keeper->spans)
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

static int keeper_compare_origins(const struct held_span *a, const struct held_span *b)
{
    const struct otlp_origin *left = held_origin(a), *right = held_origin(b);
    int order = left == right ? 0 : text_compare(left->resource, right->resource);

    if (!order && left != right)
        order = text_compare(left->schema, right->schema);
    if (!order && left != right)
        order = text_compare(left->scope, right->scope);
    if (!order && left != right)
        order = text_compare(left->scope_schema, right->scope_schema);
    return order;
}

static int keeper_by_origin(const void *a, const void *b)
{
    const struct held_span *left = *(const struct held_span *const *)a;
    const struct held_span *right = *(const struct held_span *const *)b;
    const int origins = keeper_compare_origins(left, right);

    if (origins)
        return origins;
    return (left->span.start_ns > right->span.start_ns) -
           (left->span.start_ns < right->span.start_ns);
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

/* Returns the number of first spans that have one origin and fit into `room`. Sets *size to their
 * bytes. */
static uint32_t run_length(const struct held_span *const *spans, uint32_t count, size_t room,
                           size_t *size)
{
    const struct otlp_origin *origin = held_origin(spans[0]);
    uint32_t run = 0;

    *size = keeper_origin_size(origin);
    while (run < count && (run == 0 || keeper_compare_origins(spans[0], spans[run]) == 0) &&
           *size + keeper_size_of(spans[run]) <= room)
        *size += keeper_size_of(spans[run++]);
    return run;
}

/* Appends a ResourceSpans. */
static void keeper_put_run(struct buffer *message, const struct held_span *const *spans,
                           uint32_t count)
{
    const struct otlp_origin *origin = held_origin(spans[0]);
    struct otlp_origin_at places;
    char *at = otlp_resource_begin(message, origin->resource, origin->schema, &places);

    at = otlp_scope_begin(message, at, origin->scope, origin->scope_schema, &places);
    for (uint32_t i = 0; i < count; i++)
        at = otlp_put_raw(at, PB_BYTES(2), (struct text){spans[i]->raw, spans[i]->raw_length});
    otlp_origin_end(message, &places, at);
}

/* Keeps a trace in one message if it fits. */
static bool keeper_put_spans(struct keeper *keeper, uint32_t partition, uint32_t count,
                             struct work_counts *counts)
{
    const struct held_span *const *spans = keeper->spans;
    struct buffer *message = &keeper->messages[partition];

    while (count) {
        size_t size;
        uint32_t run = run_length(spans, count, KEPT_MESSAGE_MAX - message->length, &size);

        if (run == 0 && message->length) {
            if (!keeper_emit_message(keeper, partition))
                return false;
            continue;
        }
        if (run == 0) {
            counts->spans_too_large++;
            run = 1;
        } else {
            if (!buffer_reserve(message, size))
                return false;
            keeper_put_run(message, spans, run);
        }
        spans += run;
        count -= run;
    }
    return true;
}

static bool keeper_add_to_topic(struct keeper *keeper, const struct held_trace *trace,
                                struct work_counts *counts)
{
    const uint32_t partition = kafka_partition(trace->high, trace->low, keeper->partitions);
    size_t size = 0;
    uint32_t count = 0;

    for (const struct held_span *span = trace->first; span; span = span->next) {
        keeper->spans[count++] = span;
        size += keeper_size_of(span) + keeper_origin_size(held_origin(span));
    }
    qsort(keeper->spans, count, sizeof(*keeper->spans), keeper_by_origin);
    if (keeper->messages[partition].length + size > KEPT_MESSAGE_MAX &&
        !keeper_emit_message(keeper, partition))
        return false;
    return keeper_put_spans(keeper, partition, count, counts);
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

/* ---- either ---------------------------------------------------------------------------------- */

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
    free(keeper->spans);
    free(keeper);
}
