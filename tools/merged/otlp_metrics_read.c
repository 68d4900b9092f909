/*
 * Metrics of workers, read: from whoever writes to the topic. Numbers of fields:
 * opentelemetry/proto/metrics/v1/metrics.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_metrics.h"

#include "tools/otlp/otlp_fields.h"
#include "tools/otlp/otlp_decode.h"

struct reading {
    const char *prefix;
    struct otlp_metrics_origin *origin;
    otlp_metrics_take_fn *take;
    void *context;
    struct error *error;
};

static bool broken(const struct reading *reading, const char *what)
{
    return error_set(reading->error, "not deltas of a worker: %s", what);
}

struct text metric_attribute(const struct metric_point *point, const char *key)
{
    for (size_t i = 0; i < point->attribute_count; i++) {
        if (text_is(point->attributes[i].key, key))
            return point->attributes[i].value;
    }
    return (struct text){NULL, 0};
}

/* ---- data points ----------------------------------------------------------------------------- */

static bool take_time(struct metric_point *point, const struct pb_member *field)
{
    if (field->tag == PB_TAG(2, PB_TYPE_FIXED64))
        point->start_ns = (int64_t)field->value;
    else if (field->tag == PB_TAG(3, PB_TYPE_FIXED64))
        point->end_ns = (int64_t)field->value;
    else
        return false;
    return true;
}

static void take_attribute(struct metric_point *point, struct text attribute)
{
    if (point->attribute_count < OTLP_METRICS_ATTRIBUTES_MAX)
        point->attributes[point->attribute_count++] = (struct metric_attribute){
            otlp_find(attribute, OTLP_ATTRIBUTE_KEY),
            otlp_find(otlp_find(attribute, OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING)};
}

static bool read_number(struct text message, struct metric_point *point)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(7, PB_TYPE_BYTES))
            take_attribute(point, pb_text(&field));
        else if (!take_time(point, &field) && (field.tag == PB_TAG(4, PB_TYPE_FIXED64) ||
                                               field.tag == PB_TAG(6, PB_TYPE_FIXED64)))
            point->value = field.value;
    }
    return !pb_is_broken(&reader);
}

/* The scale is known, wherever in the point it is. */
static bool metrics_read_buckets(struct text buckets, int scale, struct histogram *histogram)
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

static bool read_histogram(struct text message, struct metric_point *point,
                           struct histogram *histogram)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    struct text buckets = {"", 0};
    uint64_t count = 0;
    int64_t scale = 0;
    double min = 0, max = 0;

    while (pb_next(&reader, &field)) {
        if (take_time(point, &field))
            continue;
        switch (field.tag) {
        case PB_TAG(1, PB_TYPE_BYTES):
            take_attribute(point, pb_text(&field));
            break;
        case PB_TAG(4, PB_TYPE_FIXED64):
            count = field.value;
            break;
        case PB_TAG(5, PB_TYPE_FIXED64):
            histogram->sum = pb_double(field.value);
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
        !is_time(max) || min > max || !(histogram->sum >= 0) ||
        !metrics_read_buckets(buckets, (int)scale, histogram))
        return false;
    histogram->count += histogram->zeros;
    histogram->min = (int64_t)min;
    histogram->max = (int64_t)max;
    return histogram->count == count;
}

static bool read_point(const struct reading *reading, struct text name, struct text message,
                       bool is_histogram)
{
    struct histogram histogram = {.count = 0};
    struct metric_point point = {.histogram = is_histogram ? &histogram : NULL};
    const bool is_right = (is_histogram ? read_histogram(message, &point, &histogram)
                                        : read_number(message, &point)) ||
                          broken(reading, "a data point of it is damaged");
    const bool is_taken = is_right && reading->take(reading->context, name, &point);

    histogram_clear(&histogram);
    return is_taken;
}

/* ---- around them ----------------------------------------------------------------------------- */

static bool read_data(const struct reading *reading, struct text name, struct text data,
                      bool is_histogram)
{
    struct pb_reader reader = pb_reader_of(data);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(1, PB_TYPE_BYTES) &&
            !read_point(reading, name, pb_text(&field), is_histogram))
            return false;
    }
    return !pb_is_broken(&reader) || broken(reading, "a metric of it is damaged");
}

static bool read_metric(const struct reading *reading, struct text message)
{
    struct text name = otlp_find(message, (enum otlp_field)PB_TAG(1, PB_TYPE_BYTES));
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    if (!text_begins(name, reading->prefix))
        return true;
    name = text_after(name, strlen(reading->prefix));
    while (pb_next(&reader, &field)) {
        const bool is_histogram = field.tag == PB_TAG(10, PB_TYPE_BYTES);

        if ((is_histogram || field.tag == PB_TAG(5, PB_TYPE_BYTES) ||
             field.tag == PB_TAG(7, PB_TYPE_BYTES)) &&
            !read_data(reading, name, pb_text(&field), is_histogram))
            return false;
    }
    return !pb_is_broken(&reader) || broken(reading, "a metric of it is damaged");
}

/* Is it a worker's? Then its names are taken. */
static bool read_resource(const struct reading *reading, struct text resource)
{
    struct otlp_metrics_origin *origin = reading->origin;
    char service[OTLP_METRICS_NAME_MAX];

    if (!otlp_resource_attribute(resource, text_of("service.name"), service, sizeof(service)) ||
        strcmp(service, "blkin-work") != 0)
        return false;
    (void)otlp_resource_attribute(resource, text_of("service.instance.id"), origin->instance,
                                  sizeof(origin->instance));
    (void)otlp_resource_attribute(resource, text_of("messaging.consumer.group.name"), origin->group,
                                  sizeof(origin->group));
    return true;
}

/* A request has resource metrics, these have scope metrics, and these have metrics. */
enum level { REQUEST, RESOURCE, SCOPE, METRIC };

static bool read_level(const struct reading *reading, struct text message, enum level level)
{
    const uint32_t tag = PB_TAG(level == REQUEST ? 1 : 2, PB_TYPE_BYTES);
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    if (level == METRIC)
        return read_metric(reading, message);
    if (level == RESOURCE &&
        !read_resource(reading, otlp_find(message, OTLP_RESOURCE_SPANS_RESOURCE)))
        return true;
    while (pb_next(&reader, &field)) {
        if (field.tag == tag && !read_level(reading, pb_text(&field), level + 1))
            return false;
    }
    return !pb_is_broken(&reader) ||
           broken(reading, level == REQUEST ? "expected OTLP metrics" : "its metrics are damaged");
}

bool otlp_metrics_read(struct text request, const char *prefix, struct otlp_metrics_origin *origin,
                       otlp_metrics_take_fn *take, void *context, struct error *error)
{
    const struct reading reading = {prefix, origin, take, context, error};

    origin->instance[0] = origin->group[0] = '\0';
    return read_level(&reading, request, REQUEST) &&
           (origin->instance[0] || broken(&reading, "they are of somebody else"));
}
