/*
 * Deltas as OTLP metrics, read: from whoever writes to the topic.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "delta_names.h"
#include "deltas.h"

#include "tools/otlp/otlp_fields.h"
#include "tools/otlp/otlp_decode.h"

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
    if (text_is(metric, DELTAS_SPAN_CALLS)) {
        row->spans += point->value;
        row->ever += point->value;
    } else if (text_is(metric, DELTAS_SPAN_ERRORS)) {
        row->errors += point->value;
    } else if (text_is(metric, DELTAS_SPAN_DURATION)) {
        return histogram_merge(&row->duration, &point->histogram);
    } else if (text_is(metric, DELTAS_SPAN_SELF_TIME)) {
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
    if (text_is(metric, DELTAS_EDGE_CALLS))
        edge->calls += point->value;
    else if (text_is(metric, DELTAS_EDGE_ERRORS))
        edge->errors += point->value;
    else if (text_is(metric, DELTAS_EDGE_DURATION))
        return histogram_merge(&edge->duration, &point->histogram);
    return true;
}

static bool begins(struct text text, const char *prefix)
{
    return text.length > strlen(prefix) && memcmp(text.data, prefix, strlen(prefix)) == 0;
}

static bool take_point(const struct reading *reading, struct text metric, const struct point *point)
{
    const size_t length = strlen(DELTAS_PREFIX);

    reading->head->start_ns = point->start_ns;
    reading->head->end_ns = point->end_ns;
    if (begins(metric, DELTAS_PREFIX))
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
        strcmp(service, DELTAS_SERVICE) != 0)
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
