/*
 * Points of hosts as OTLP metrics, written and read. Numbers of fields:
 * opentelemetry/proto/metrics/v1/metrics.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_points.h"

#include "otlp_fields.h"
#include "otlp_write.h"

#include <stdlib.h>

#define INSTANCE "instance"
#define NAME_MAX PB_TEXT_MAX(FLEET_NAME_MAX)
/* Of a data point, and of what is around one. */
#define POINT_MAX (128 + NAME_MAX)
#define FRAME_MAX (128 + 2 * NAME_MAX)

enum { TEMPORALITY_DELTA = 1 };

/* ---- writing --------------------------------------------------------------------------------- */

static int compare_texts(struct text a, struct text b)
{
    const size_t length = a.length < b.length ? a.length : b.length;
    const int order = length ? memcmp(a.data, b.data, length) : 0;

    return order ? order : (a.length > b.length) - (a.length < b.length);
}

static int compare(const void *one, const void *other)
{
    const struct fleet_point *a = one, *b = other;
    int order = compare_texts(a->metric, b->metric);

    if (!order)
        order = compare_texts(a->instance, b->instance);
    return order ? order : (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static struct text cut(struct text name)
{
    return (struct text){name.data, name.length < FLEET_NAME_MAX ? name.length : FLEET_NAME_MAX};
}

static char *put_point(char *at, const struct fleet_point *point)
{
    char *length;

    *at++ = PB_BYTES(1);
    length = at++;
    *at++ = PB_FIXED64(2);
    at = pb_put_fixed64(at, (uint64_t)point->start_ns);
    *at++ = PB_FIXED64(3);
    at = pb_put_fixed64(at, (uint64_t)point->end_ns);
    *at++ = PB_FIXED64(6);
    at = pb_put_fixed64(at, point->value);
    if (point->instance.length)
        at = otlp_put_attribute(at, PB_BYTES(7), INSTANCE, cut(point->instance));
    return pb_end(length, at);
}

static bool is_of_metric(const struct fleet_point *point, const struct fleet_point *first)
{
    return text_equal(point->metric, first->metric) && text_equal(point->unit, first->unit) &&
           point->is_counter == first->is_counter;
}

/* All of one metric. Returns how many: 0 when out of memory or room. */
static size_t put_metric(const struct fleet_point *points, size_t count, struct buffer *buffer)
{
    const size_t before = buffer->length;
    size_t metric, data, written = 0;
    char *at;

    if (!buffer_reserve(buffer, FRAME_MAX))
        return 0;
    at = otlp_begin(buffer->data + buffer->length, PB_BYTES(2), &metric, buffer->data);
    at = otlp_put_text(at, PB_BYTES(1), cut(points->metric));
    at = otlp_put_text(at, PB_BYTES(3), cut(points->unit));
    at = otlp_begin(at, points->is_counter ? PB_BYTES(7) : PB_BYTES(5), &data, buffer->data);
    if (points->is_counter) {
        *at++ = PB_VARINT(2);
        *at++ = TEMPORALITY_DELTA;
        *at++ = PB_VARINT(3); /* monotonic */
        *at++ = 1;
    }
    buffer->length = (size_t)(at - buffer->data);
    while (written < count && is_of_metric(&points[written], points) &&
           buffer->length + POINT_MAX < OTLP_POINTS_BYTES && buffer_reserve(buffer, POINT_MAX)) {
        at = put_point(buffer->data + buffer->length, &points[written++]);
        buffer->length = (size_t)(at - buffer->data);
    }
    otlp_end(buffer->data, data, buffer->length);
    otlp_end(buffer->data, metric, buffer->length);
    if (written == 0)
        buffer->length = before;
    return written;
}

size_t otlp_points_write(struct text host, struct fleet_point *points, size_t count,
                         struct buffer *buffer)
{
    size_t resource_metrics, scope_metrics, written = 0, more = 1;
    char *at, *part;

    qsort(points, count, sizeof(*points), compare);
    buffer->length = 0;
    if (!buffer_reserve(buffer, FRAME_MAX))
        return 0;
    at = otlp_begin(buffer->data, PB_BYTES(1), &resource_metrics, buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = pb_end(part, otlp_put_attribute(at, PB_BYTES(1), "host.name", cut(host)));
    at = otlp_begin(at, PB_BYTES(2), &scope_metrics, buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = pb_end(part, PB_PUT_LITERAL(at, PB_BYTES(1), "blkin"));
    buffer->length = (size_t)(at - buffer->data);
    for (; written < count && more; written += more)
        more = put_metric(points + written, count - written, buffer);
    otlp_end(buffer->data, scope_metrics, buffer->length);
    otlp_end(buffer->data, resource_metrics, buffer->length);
    return written;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    otlp_point_fn *call;
    void *context;
    struct otlp_points_read *told;
    struct fleet_point point; /* what is known of it so far */
};

static struct text attribute(struct text message, uint32_t tag, const char *key)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == tag && text_is(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY), key))
            return otlp_find(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING);
    }
    return (struct text){"", 0};
}

static bool read_point(struct reading *reading, struct text message)
{
    struct fleet_point *point = &reading->point;
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;
    bool has_value = false;

    point->start_ns = point->end_ns = 0;
    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(2, PB_TYPE_FIXED64))
            point->start_ns = (int64_t)field.value;
        else if (field.tag == PB_TAG(3, PB_TYPE_FIXED64))
            point->end_ns = (int64_t)field.value;
        else if (field.tag == PB_TAG(6, PB_TYPE_FIXED64)) {
            point->value = field.value;
            has_value = (int64_t)field.value >= 0;
        }
    }
    if (pb_is_broken(&reader))
        return false;
    if (!has_value) {
        reading->told->refused++;
        return true;
    }
    point->instance = attribute(message, PB_TAG(7, PB_TYPE_BYTES), INSTANCE);
    reading->told->points++;
    reading->call(reading->context, point);
    return true;
}

static bool read_points(struct reading *reading, struct text data)
{
    struct pb_reader reader = pb_reader_of(data);
    struct pb_member field;
    uint64_t temporality = 0;

    while (reading->point.is_counter && pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(2, PB_TYPE_VARINT))
            temporality = field.value;
    }
    reader = pb_reader_of(data);
    while (pb_next(&reader, &field)) {
        if (field.tag != PB_TAG(1, PB_TYPE_BYTES))
            continue;
        if (reading->point.is_counter && temporality != TEMPORALITY_DELTA)
            reading->told->refused++;
        else if (!read_point(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

static bool read_metric(struct reading *reading, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    reading->point.metric = otlp_find(message, (enum otlp_field)PB_TAG(1, PB_TYPE_BYTES));
    reading->point.unit = otlp_find(message, (enum otlp_field)PB_TAG(3, PB_TYPE_BYTES));
    while (pb_next(&reader, &field)) {
        reading->point.is_counter = field.tag == PB_TAG(7, PB_TYPE_BYTES);
        if ((reading->point.is_counter || field.tag == PB_TAG(5, PB_TYPE_BYTES)) &&
            !read_points(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

typedef bool read_fn(struct reading *reading, struct text message);

static bool read_each(struct reading *reading, struct text message, int number, read_fn *read)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(number, PB_TYPE_BYTES) && !read(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

static bool read_scope(struct reading *reading, struct text message)
{
    return read_each(reading, message, 2, read_metric);
}

static bool read_resource(struct reading *reading, struct text message)
{
    reading->point.host = attribute(otlp_find(message, OTLP_RESOURCE_SPANS_RESOURCE),
                                    PB_TAG(1, PB_TYPE_BYTES), "host.name");
    return read_each(reading, message, 2, read_scope);
}

struct otlp_points_read otlp_points_read(struct text request, otlp_point_fn *call, void *context)
{
    struct otlp_points_read told = {.points = 0};
    struct reading reading = {.call = call, .context = context, .told = &told};

    told.is_broken = !read_each(&reading, request, 1, read_resource);
    return told;
}
