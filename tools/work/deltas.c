/*
 * Deltas as OTLP metrics. Numbers of fields: opentelemetry/proto/metrics/v1/metrics.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "deltas.h"

#include "output/encoder.h"
#include "output/otlp_decode.h"
#include "output/otlp_fields.h"
#include "output/protobuf.h"

enum temporality { DELTA = 1, CUMULATIVE = 2 };

#define RESOURCE_SERVICE "blkin-work"
#define PREFIX           "blkin.work."

/* What is written around a data point, and around a message, at most; without texts. */
#define POINT_MAX 256U
#define FRAME_MAX 1024U

/* ---- writing --------------------------------------------------------------------------------- */

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
    *at++ = tag;
    writer->lengths[level] = (size_t)(at - writer->buffer->data);
    return at + PB_PADDED;
}

static void close_level(struct writer *writer, int level)
{
    const size_t from = writer->lengths[level] + PB_PADDED;

    pb_put_padded(writer->buffer->data + writer->lengths[level],
                  (uint32_t)(writer->buffer->length - from), PB_PADDED);
}

static char *put_text(char *at, char tag, struct text text)
{
    bool cut;

    *at++ = tag;
    return pb_put_text(at, text, LIMIT_NAME, &cut);
}

/* A message KeyValue of a text, in a field of this tag. */
static char *put_attribute(char *at, char tag, const char *key, struct text value)
{
    char *attribute, *any;

    *at++ = tag;
    attribute = at++;
    at = put_text(at, PB_BYTES(1), text_of(key));
    *at++ = PB_BYTES(2);
    any = at++;
    at = put_text(at, PB_BYTES(1), value);
    return pb_end(attribute, pb_end(any, at));
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
    at = put_attribute(at, PB_BYTES(1), "service.name", text_of(RESOURCE_SERVICE));
    at = put_attribute(at, PB_BYTES(1), "service.instance.id", text_of(head->instance));
    at = put_attribute(at, PB_BYTES(1), "messaging.consumer.group.name", text_of(head->group));
    at = pb_end(part, at);
    at = open_level(writer, SCOPE_METRICS, at, PB_BYTES(2));
    *at++ = PB_BYTES(1);
    part = at++;
    at = put_text(at, PB_BYTES(1), text_of("blkin"));
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
    at = put_text(at, PB_BYTES(1), text_of(metric->name));
    at = put_text(at, PB_BYTES(3), text_of(metric->unit));
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
        at = put_attribute(at, tag, key->first_key, names_text(writer->names, key->first));
    if (key->second != NAMES_OTHER)
        at = put_attribute(at, tag, key->second_key, names_text(writer->names, key->second));
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

static char *put_double(char *at, char tag, double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    *at++ = tag;
    return pb_put_fixed64(at, bits);
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
    at = put_double(at, PB_FIXED64(5), histogram->sum);
    *at++ = PB_VARINT(6);
    at = pb_put_varint(at, zigzag(HISTOGRAM_SCALE));
    *at++ = PB_FIXED64(7);
    at = pb_put_fixed64(at, histogram->zeros);
    at = put_buckets(at, histogram);
    at = put_double(at, PB_FIXED64(12), (double)histogram->min);
    at = put_double(at, PB_FIXED64(13), (double)histogram->max);
    set_end(writer, pb_end(point, at));
    return true;
}

static const struct metric span_calls = {"blkin.span.calls", "{span}", SHAPE_SUM};
static const struct metric span_errors = {"blkin.span.errors", "{span}", SHAPE_SUM};
static const struct metric span_duration = {"blkin.span.duration", "ns", SHAPE_HISTOGRAM};
static const struct metric span_self_time = {"blkin.span.self_time", "ns", SHAPE_HISTOGRAM};
static const struct metric edge_calls = {"blkin.edge.calls", "{call}", SHAPE_SUM};
static const struct metric edge_errors = {"blkin.edge.errors", "{call}", SHAPE_SUM};
static const struct metric edge_duration = {"blkin.edge.duration", "ns", SHAPE_HISTOGRAM};

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

    (void)snprintf(name, sizeof(name), PREFIX "%s", counter->name);
    if (!make_room(writer, &metric, POINT_MAX))
        return false;
    at = end_of(writer);
    *at++ = PB_BYTES(1);
    point = at++;
    at = put_times(writer, at);
    if (counter->kind == WORK_RATIO) {
        at = put_double(at, PB_FIXED64(4), work_counter_ratio(counter, counts));
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

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct deltas_head *head;
    struct statistics *statistics; /* NULL: it is only looked at */
    struct names *names;
    struct error *error;
};

/* A data point of a sum, a gauge or a histogram. */
struct point {
    uint32_t attribute_tag;
    struct text message;
    int64_t start_ns, end_ns;
    uint64_t value; /* of a double its bits */
    struct histogram histogram;
};

static bool broken(const struct reading *reading, const char *what)
{
    error_set(reading->error, "no deltas of a worker: %s", what);
    return false;
}

/* Of a name that is not there: NAMES_OTHER. */
static uint32_t name_of(const struct reading *reading, const struct point *point, const char *key)
{
    struct pb_reader reader = pb_reader_of(point->message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == point->attribute_tag &&
            text_is(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY), key))
            return names_id(
                reading->names,
                otlp_find(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING));
    }
    return NAMES_OTHER;
}

static bool take_time(struct point *point, const struct pb_member *field)
{
    if (field->tag == PB_TAG(2, PB_TYPE_FIXED64))
        point->start_ns = (int64_t)field->value;
    else if (field->tag == PB_TAG(3, PB_TYPE_FIXED64))
        point->end_ns = (int64_t)field->value;
    else
        return false;
    return true;
}

static bool read_number(struct text message, struct point *point)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    *point = (struct point){.attribute_tag = PB_TAG(7, PB_TYPE_BYTES), .message = message};
    while (pb_next(&reader, &field)) {
        if (!take_time(point, &field) &&
            (field.tag == PB_TAG(4, PB_TYPE_FIXED64) || field.tag == PB_TAG(6, PB_TYPE_FIXED64)))
            point->value = field.value;
    }
    return !pb_is_broken(&reader);
}

/* The scale is known, wherever in the point it is. */
static bool read_buckets(struct text buckets, int scale, struct histogram *histogram)
{
    struct pb_reader reader = pb_reader_of(buckets);
    struct pb_member field;
    struct text counts = {"", 0};
    const unsigned char *at, *end;
    int64_t index = 0;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(1, PB_TYPE_VARINT))
            index = pb_zigzag(field.value);
        else if (field.tag == PB_TAG(2, PB_TYPE_BYTES))
            counts = pb_text(&field);
    }
    if (pb_is_broken(&reader) || index < INT32_MIN || index > INT32_MAX - INT64_C(0x7fffff))
        return false;
    at = (const unsigned char *)counts.data;
    end = at + counts.length;
    for (; at < end && index <= INT32_MAX; index++) {
        struct histogram_bucket bucket = {.index = (int32_t)index};

        at = pb_get_varint(at, end, &bucket.count);
        if (!at || (bucket.count && !histogram_add_bucket(histogram, scale, &bucket)))
            return false;
    }
    return true;
}

static bool is_time(double value)
{
    return value >= 0 && value <= 9.2e18;
}

static bool read_histogram(struct text message, struct point *point)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    struct histogram *histogram = &point->histogram;
    struct text buckets = {"", 0};
    uint64_t count = 0;
    int64_t scale = 0;
    double sum = 0, min = 0, max = 0;

    *point = (struct point){.attribute_tag = PB_TAG(1, PB_TYPE_BYTES), .message = message};
    while (pb_next(&reader, &field)) {
        if (take_time(point, &field))
            continue;
        switch (field.tag) {
        case PB_TAG(4, PB_TYPE_FIXED64):
            count = field.value;
            break;
        case PB_TAG(5, PB_TYPE_FIXED64):
            sum = pb_double(field.value);
            break;
        case PB_TAG(6, PB_TYPE_VARINT):
            scale = pb_zigzag(field.value);
            break;
        case PB_TAG(7, PB_TYPE_FIXED64):
            histogram->zeros = field.value;
            break;
        case PB_TAG(8, PB_TYPE_BYTES):
            buckets = pb_text(&field);
            break;
        case PB_TAG(12, PB_TYPE_FIXED64):
            min = pb_double(field.value);
            break;
        case PB_TAG(13, PB_TYPE_FIXED64):
            max = pb_double(field.value);
            break;
        default:
            break;
        }
    }
    if (pb_is_broken(&reader) || scale < INT8_MIN || scale > INT8_MAX || !is_time(min) ||
        !is_time(max) || min > max || !(sum >= 0) || !read_buckets(buckets, (int)scale, histogram))
        return false;
    histogram->count += histogram->zeros;
    histogram->sum = sum;
    histogram->min = (int64_t)min;
    histogram->max = (int64_t)max;
    return histogram->count == count;
}

static void take_counter(const struct reading *reading, struct text name, const struct point *point)
{
    for (size_t i = 0; i < work_counters_count; i++) {
        if (!text_is(name, work_counters[i].name))
            continue;
        reading->head->has_counts = true;
        memcpy((char *)&reading->head->counts + work_counters[i].offset, &point->value,
               sizeof(point->value));
    }
}

/* Adds it to what the metric is of. False: out of memory. */
static bool add_to_row(const struct reading *reading, struct text metric, const struct point *point)
{
    struct statistics_row *row =
        statistics_row_of(reading->statistics, name_of(reading, point, "service.name"),
                          name_of(reading, point, "span.name"));

    if (!row)
        return false;
    if (text_is(metric, span_calls.name)) {
        row->spans += point->value;
        row->ever += point->value;
    } else if (text_is(metric, span_errors.name)) {
        row->errors += point->value;
    } else if (text_is(metric, span_duration.name)) {
        return histogram_merge(&row->duration, &point->histogram);
    } else if (text_is(metric, span_self_time.name)) {
        return histogram_merge(&row->self, &point->histogram);
    }
    return true;
}

static bool add_to_edge(const struct reading *reading, struct text metric,
                        const struct point *point)
{
    struct statistics_edge *edge = statistics_edge_of(
        reading->statistics, name_of(reading, point, "client"), name_of(reading, point, "server"));

    if (!edge)
        return false;
    if (text_is(metric, edge_calls.name))
        edge->calls += point->value;
    else if (text_is(metric, edge_errors.name))
        edge->errors += point->value;
    else if (text_is(metric, edge_duration.name))
        return histogram_merge(&edge->duration, &point->histogram);
    return true;
}

static bool begins(struct text text, const char *prefix)
{
    return text.length > strlen(prefix) && memcmp(text.data, prefix, strlen(prefix)) == 0;
}

static bool take_point(const struct reading *reading, struct text metric, const struct point *point)
{
    const size_t length = strlen(PREFIX);

    reading->head->start_ns = point->start_ns;
    reading->head->end_ns = point->end_ns;
    if (begins(metric, PREFIX))
        take_counter(reading, (struct text){metric.data + length, metric.length - length}, point);
    else if (!reading->statistics)
        return true;
    else if ((begins(metric, "blkin.span.") && !add_to_row(reading, metric, point)) ||
             (begins(metric, "blkin.edge.") && !add_to_edge(reading, metric, point))) {
        error_set(reading->error, "out of memory");
        return false;
    }
    return true;
}

static bool read_points(const struct reading *reading, struct text metric, struct text data,
                        bool is_histogram)
{
    struct pb_reader reader = pb_reader_of(data);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        struct point point;
        bool is_right;

        if (field.tag != PB_TAG(1, PB_TYPE_BYTES))
            continue;
        is_right = is_histogram ? read_histogram(pb_text(&field), &point)
                                : read_number(pb_text(&field), &point);
        if (!is_right)
            (void)broken(reading, "a data point of it is damaged");
        is_right = is_right && take_point(reading, metric, &point);
        histogram_clear(&point.histogram);
        if (!is_right)
            return false;
    }
    return !pb_is_broken(&reader) || broken(reading, "a metric of it is damaged");
}

static bool read_metric(const struct reading *reading, struct text message)
{
    const struct text name = otlp_find(message, (enum otlp_field)PB_TAG(1, PB_TYPE_BYTES));
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        const bool is_histogram = field.tag == PB_TAG(10, PB_TYPE_BYTES);

        if ((is_histogram || field.tag == PB_TAG(5, PB_TYPE_BYTES) ||
             field.tag == PB_TAG(7, PB_TYPE_BYTES)) &&
            !read_points(reading, name, pb_text(&field), is_histogram))
            return false;
    }
    return !pb_is_broken(&reader) || broken(reading, "a metric of it is damaged");
}

static bool read_scope(const struct reading *reading, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(2, PB_TYPE_BYTES) && !read_metric(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader) || broken(reading, "its metrics are damaged");
}

/* Is it a worker's? Then its names are taken. */
static bool read_resource(const struct reading *reading, struct text resource)
{
    char service[DELTAS_NAME_MAX];

    if (!otlp_resource_attribute(resource, text_of("service.name"), service, sizeof(service)) ||
        strcmp(service, RESOURCE_SERVICE) != 0)
        return false;
    (void)otlp_resource_attribute(resource, text_of("service.instance.id"), reading->head->instance,
                                  sizeof(reading->head->instance));
    (void)otlp_resource_attribute(resource, text_of("messaging.consumer.group.name"),
                                  reading->head->group, sizeof(reading->head->group));
    return true;
}

static bool read_resource_metrics(const struct reading *reading, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    if (!read_resource(reading, otlp_find(message, OTLP_RESOURCE_SPANS_RESOURCE)))
        return true;
    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(2, PB_TYPE_BYTES) && !read_scope(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader) || broken(reading, "its metrics are damaged");
}

static bool read_request(const struct reading *reading, struct text request)
{
    struct pb_reader reader = pb_reader_of(request);
    struct pb_member field;

    *reading->head = (struct deltas_head){.start_ns = 0};
    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(1, PB_TYPE_BYTES) &&
            !read_resource_metrics(reading, pb_text(&field)))
            return false;
    }
    if (pb_is_broken(&reader))
        return broken(reading, "these are no OTLP metrics");
    return reading->head->instance[0] || broken(reading, "they are of somebody else");
}

bool deltas_read(const char *data, size_t length, struct deltas_head *head,
                 struct statistics *statistics, struct names *names, struct error *error)
{
    struct reading reading = {head, NULL, names, error};
    const struct text request = {data, length};

    if (!read_request(&reading, request))
        return false;
    reading.statistics = statistics;
    return read_request(&reading, request);
}
