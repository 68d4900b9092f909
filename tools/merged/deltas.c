/*
 * Deltas as OTLP metrics, written. Numbers of fields: opentelemetry/proto/metrics/v1/metrics.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "delta_names.h"
#include "deltas.h"

#include "tools/otlp/otlp_write.h"

/* What is written around a data point, and around a message, at most; without texts. */
#define POINT_MAX 256U
#define FRAME_MAX 1024U

enum shape { SHAPE_SUM, SHAPE_GAUGE, SHAPE_HISTOGRAM };

struct metric {
    const char *name;
    const char *unit;
    enum shape shape;
};

/* The messages that are open, of padded lengths: where these are. */
enum { RESOURCE_METRICS, SCOPE_METRICS, METRIC, DATA, LEVELS };

struct writer {
    const struct deltas_head *head;
    const struct statistics *statistics;
    const struct names *names;
    struct buffer *buffer;
    deltas_emit_fn *emit;
    void *context;
    size_t lengths[LEVELS];
    const struct metric *metric; /* that is open */
};

static char *end_of(const struct writer *writer)
{
    return writer->buffer->data + writer->buffer->length;
}

static void set_end(struct writer *writer, const char *at)
{
    writer->buffer->length = (size_t)(at - writer->buffer->data);
}

static char *open_level(struct writer *writer, int level, char *at, char tag)
{
    return otlp_begin(at, tag, &writer->lengths[level], writer->buffer->data);
}

static void close_level(struct writer *writer, int level)
{
    otlp_end(writer->buffer->data, writer->lengths[level], writer->buffer->length);
}

static bool begin_message(struct writer *writer)
{
    const struct deltas_head *head = writer->head;
    char *at, *part;

    writer->buffer->length = 0;
    if (!buffer_reserve(writer->buffer, FRAME_MAX + 2 * PB_TEXT_MAX(DELTAS_NAME_MAX)))
        return false;
    at = open_level(writer, RESOURCE_METRICS, end_of(writer), PB_BYTES(1));
    *at++ = PB_BYTES(1);
    part = at++;
    at = otlp_put_attribute(at, PB_BYTES(1), "service.name", text_of(DELTAS_SERVICE));
    at = otlp_put_attribute(at, PB_BYTES(1), "service.instance.id", text_of(head->instance));
    at = otlp_put_attribute(at, PB_BYTES(1), "messaging.consumer.group.name", text_of(head->group));
    at = pb_end(part, at);
    at = open_level(writer, SCOPE_METRICS, at, PB_BYTES(2));
    *at++ = PB_BYTES(1);
    part = at++;
    at = otlp_put_text(at, PB_BYTES(1), text_of("blkin"));
    at = pb_end(part, at);
    set_end(writer, at);
    return true;
}

static bool end_message(struct writer *writer)
{
    close_level(writer, SCOPE_METRICS);
    close_level(writer, RESOURCE_METRICS);
    return writer->emit(writer->context, writer->buffer->data, writer->buffer->length);
}

static void begin_metric(struct writer *writer, const struct metric *metric)
{
    static const char tags[] = {
        [SHAPE_SUM] = PB_BYTES(7), [SHAPE_GAUGE] = PB_BYTES(5), [SHAPE_HISTOGRAM] = PB_BYTES(10)};
    char *at = end_of(writer);

    at = open_level(writer, METRIC, at, PB_BYTES(2));
    at = otlp_put_text(at, PB_BYTES(1), text_of(metric->name));
    at = otlp_put_text(at, PB_BYTES(3), text_of(metric->unit));
    at = open_level(writer, DATA, at, tags[metric->shape]);
    if (metric->shape != SHAPE_GAUGE) {
        *at++ = PB_VARINT(2);
        *at++ = writer->head->is_cumulative ? CUMULATIVE : DELTA;
    }
    if (metric->shape == SHAPE_SUM) {
        *at++ = PB_VARINT(3); /* is_monotonic */
        *at++ = 1;
    }
    set_end(writer, at);
    writer->metric = metric;
}

static void end_metric(struct writer *writer)
{
    if (writer->metric) {
        close_level(writer, DATA);
        close_level(writer, METRIC);
    }
    writer->metric = NULL;
}

/* Makes room for a data point of this metric: in another message, if this one is full. */
static bool make_room(struct writer *writer, const struct metric *metric, size_t size)
{
    if (writer->metric != metric)
        end_metric(writer);
    size += FRAME_MAX;
    if (writer->buffer->length + size > DELTAS_MESSAGE_MAX) {
        end_metric(writer);
        if (!end_message(writer) || !begin_message(writer))
            return false;
    }
    if (!buffer_reserve(writer->buffer, size))
        return false;
    if (!writer->metric)
        begin_metric(writer, metric);
    return true;
}

static char *put_times(const struct writer *writer, char *at)
{
    *at++ = PB_FIXED64(2);
    at = pb_put_fixed64(at, (uint64_t)writer->head->start_ns);
    *at++ = PB_FIXED64(3);
    return pb_put_fixed64(at, (uint64_t)writer->head->end_ns);
}

/* What a row or an edge is known by: two names. */
struct key {
    const char *first_key, *second_key;
    uint32_t first, second;
};

static size_t key_size(const struct writer *writer, const struct key *key)
{
    return 2 * POINT_MAX + PB_TEXT_MAX(names_text(writer->names, key->first).length) +
           PB_TEXT_MAX(names_text(writer->names, key->second).length);
}

/* One for which there was no room has no attribute: there may be several. */
static char *put_key(const struct writer *writer, char *at, char tag, const struct key *key)
{
    if (key->first != NAMES_OTHER)
        at = otlp_put_attribute(at, tag, key->first_key, names_text(writer->names, key->first));
    if (key->second != NAMES_OTHER)
        at = otlp_put_attribute(at, tag, key->second_key, names_text(writer->names, key->second));
    return at;
}

static bool put_sum(struct writer *writer, const struct metric *metric, const struct key *key,
                    uint64_t value)
{
    char *at, *point;

    if (value == 0)
        return true;
    if (!make_room(writer, metric, key_size(writer, key)))
        return false;
    at = end_of(writer);
    *at++ = PB_BYTES(1);
    point = at++;
    at = put_times(writer, at);
    *at++ = PB_FIXED64(6);
    at = pb_put_fixed64(at, value);
    at = put_key(writer, at, PB_BYTES(7), key);
    set_end(writer, pb_end(point, at));
    return true;
}

static uint64_t zigzag(int64_t value)
{
    return (uint64_t)value << 1 ^ (value < 0 ? UINT64_MAX : 0);
}

/* From the first bucket that has something to the last one. */
static char *put_buckets(char *at, const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    char *buckets = at, *counts;
    int32_t next;

    if (!histogram_next(histogram, HISTOGRAM_SCALE, &bucket))
        return at;
    *at++ = PB_BYTES(8);
    buckets = at++;
    *at++ = PB_VARINT(1);
    at = pb_put_varint(at, zigzag(bucket.index));
    *at++ = PB_BYTES(2);
    counts = at++;
    next = bucket.index;
    do {
        for (; next < bucket.index; next++)
            *at++ = 0;
        at = pb_put_varint(at, bucket.count);
        next++;
    } while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket));
    return pb_end(buckets, pb_end(counts, at));
}

/* A byte for each bucket, more for each that has something. */
static size_t buckets_size(const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    int32_t first = 0;
    size_t filled = 0;

    while (histogram_next(histogram, HISTOGRAM_SCALE, &bucket)) {
        first = filled++ ? first : bucket.index;
    }
    return filled ? POINT_MAX + (size_t)(bucket.index - first) + filled * PB_VARINT_MAX : 0;
}

static bool put_histogram(struct writer *writer, const struct metric *metric, const struct key *key,
                          const struct histogram *histogram)
{
    char *at, *point;

    if (histogram->count == 0)
        return true;
    if (!make_room(writer, metric, key_size(writer, key) + buckets_size(histogram)))
        return false;
    at = end_of(writer);
    *at++ = PB_BYTES(1);
    point = at++;
    at = put_key(writer, at, PB_BYTES(1), key);
    at = put_times(writer, at);
    *at++ = PB_FIXED64(4);
    at = pb_put_fixed64(at, histogram->count);
    at = otlp_put_double(at, PB_FIXED64(5), histogram->sum);
    *at++ = PB_VARINT(6);
    at = pb_put_varint(at, zigzag(HISTOGRAM_SCALE));
    *at++ = PB_FIXED64(7);
    at = pb_put_fixed64(at, histogram->zeros);
    at = put_buckets(at, histogram);
    at = otlp_put_double(at, PB_FIXED64(12), (double)histogram->min);
    at = otlp_put_double(at, PB_FIXED64(13), (double)histogram->max);
    set_end(writer, pb_end(point, at));
    return true;
}

static const struct metric span_calls = {DELTAS_SPAN_CALLS, "{span}", SHAPE_SUM};
static const struct metric span_errors = {DELTAS_SPAN_ERRORS, "{span}", SHAPE_SUM};
static const struct metric span_duration = {DELTAS_SPAN_DURATION, "ns", SHAPE_HISTOGRAM};
static const struct metric span_self_time = {DELTAS_SPAN_SELF_TIME, "ns", SHAPE_HISTOGRAM};
static const struct metric edge_calls = {DELTAS_EDGE_CALLS, "{call}", SHAPE_SUM};
static const struct metric edge_errors = {DELTAS_EDGE_ERRORS, "{call}", SHAPE_SUM};
static const struct metric edge_duration = {DELTAS_EDGE_DURATION, "ns", SHAPE_HISTOGRAM};

static bool put_row(struct writer *writer, const struct metric *metric,
                    const struct statistics_row *row)
{
    const struct key key = {"service.name", "span.name", row->service, row->name};

    if (metric == &span_calls)
        return put_sum(writer, metric, &key, row->spans);
    if (metric == &span_errors)
        return put_sum(writer, metric, &key, row->errors);
    return put_histogram(writer, metric, &key,
                         metric == &span_duration ? &row->duration : &row->self);
}

static bool put_rows(struct writer *writer, const struct metric *metric)
{
    for (size_t i = 0; i < statistics_rows(writer->statistics); i++) {
        if (!put_row(writer, metric, statistics_row(writer->statistics, i)))
            return false;
    }
    return true;
}

static bool put_edge(struct writer *writer, const struct metric *metric,
                     const struct statistics_edge *edge)
{
    const struct key key = {"client", "server", edge->caller, edge->callee};

    if (metric == &edge_duration)
        return put_histogram(writer, metric, &key, &edge->duration);
    return put_sum(writer, metric, &key, metric == &edge_calls ? edge->calls : edge->errors);
}

static bool put_edges(struct writer *writer, const struct metric *metric)
{
    for (size_t i = 0; i < statistics_edges(writer->statistics); i++) {
        if (!put_edge(writer, metric, statistics_edge(writer->statistics, i)))
            return false;
    }
    return true;
}

static bool put_counter(struct writer *writer, const struct work_counter *counter)
{
    const struct work_counts *counts = &writer->head->counts;
    char name[64];
    const struct metric metric = {name, "1",
                                  counter->kind == WORK_COUNTER ? SHAPE_SUM : SHAPE_GAUGE};
    char *at, *point;

    (void)snprintf(name, sizeof(name), DELTAS_PREFIX "%s", counter->name);
    if (!make_room(writer, &metric, POINT_MAX))
        return false;
    at = end_of(writer);
    *at++ = PB_BYTES(1);
    point = at++;
    at = put_times(writer, at);
    if (counter->kind == WORK_RATIO) {
        at = otlp_put_double(at, PB_FIXED64(4), work_counter_ratio(counter, counts));
    } else {
        *at++ = PB_FIXED64(6);
        at = pb_put_fixed64(at, work_counter_value(counter, counts));
    }
    set_end(writer, pb_end(point, at));
    end_metric(writer);
    return true;
}

bool deltas_write(const struct deltas_head *head, const struct statistics *statistics,
                  struct buffer *buffer, deltas_emit_fn *emit, void *context)
{
    struct writer writer = {
        .head = head,
        .statistics = statistics,
        .names = statistics_names(statistics),
        .buffer = buffer,
        .emit = emit,
        .context = context,
    };
    bool is_right = begin_message(&writer);

    for (size_t i = 0; is_right && !head->is_without_counts && i < work_counters_count; i++)
        is_right = put_counter(&writer, &work_counters[i]);
    is_right = is_right && put_rows(&writer, &span_calls) && put_rows(&writer, &span_errors) &&
               put_rows(&writer, &span_duration) && put_rows(&writer, &span_self_time) &&
               put_edges(&writer, &edge_calls) && put_edges(&writer, &edge_errors) &&
               put_edges(&writer, &edge_duration);
    if (!is_right)
        return false;
    end_metric(&writer);
    return end_message(&writer);
}
