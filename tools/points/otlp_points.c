/*
 * Points of hosts as OTLP metrics, written and read. Numbers of fields:
 * opentelemetry/proto/metrics/v1/metrics.proto.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_points.h"

#include "tools/otlp/otlp_fields.h"
#include "otlp_names.h"
#include "tools/otlp/otlp_write.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

#define NAME_MAX PB_TEXT_MAX(FLEET_NAME_MAX)
#define NS_PER_S 1e9
/* Upper limits: the bytes of a data point, and those of a metric without its points. */
#define POINT_MAX (1024 + NAME_MAX)
#define FRAME_MAX (128 + 2 * PB_TEXT_MAX(FLEET_NAME_MAX + sizeof(OTLP_OURS)))

enum { TEMPORALITY_DELTA = 1 };

/* ---- writing --------------------------------------------------------------------------------- */

static int points_compare(const void *one, const void *other)
{
    const struct fleet_point *a = one, *b = other;
    int order = text_compare(a->metric, b->metric);

    if (!order)
        order = text_compare(a->instance, b->instance);
    return order ? order : (a->end_ns > b->end_ns) - (a->end_ns < b->end_ns);
}

static struct text points_cut(struct text name)
{
    return text_cut(name, FLEET_NAME_MAX);
}

static char *points_put_integer(char *at, const char *key, uint64_t value)
{
    char *attribute, *any;

    *at++ = PB_BYTES(7);
    attribute = at++;
    at = otlp_put_text(at, PB_BYTES(1), text_of(key));
    *at++ = PB_BYTES(2);
    any = at++;
    *at++ = PB_VARINT(3);
    at = pb_put_varint(at, value);
    return pb_end(attribute, pb_end(any, at));
}

/* The number in a part of a text; -1: no number, or not one in the form that we write. */
static int64_t points_number_in(struct text text, size_t from, size_t to)
{
    int64_t number = 0;

    if (from >= to || to - from > 10 || (text.data[from] == '0' && to - from > 1))
        return -1;
    for (size_t i = from; i < to; i++) {
        if (!isdigit((unsigned char)text.data[i]))
            return -1;
        number = number * 10 + (text.data[i] - '0');
    }
    return number;
}

static char *points_put_process(char *at, struct text instance)
{
    size_t open = instance.length;
    int64_t pid = -1;

    while (open && instance.data[open - 1] != '[')
        open--;
    if (open > 1 && instance.data[instance.length - 1] == ']')
        pid = points_number_in(instance, open, instance.length - 1);
    if (pid < 0)
        return otlp_put_attribute(at, PB_BYTES(7), otlp_instance_key(OTLP_INSTANCE_PROCESS),
                                  points_cut(instance));
    at = otlp_put_attribute(at, PB_BYTES(7), otlp_instance_key(OTLP_INSTANCE_PROCESS),
                            points_cut((struct text){instance.data, open - 1}));
    return points_put_integer(at, "process.pid", (uint64_t)pid);
}

static char *points_put_instance(char *at, enum otlp_instance kind, struct text instance)
{
    const bool is_cpu = instance.length > 3 && memcmp(instance.data, "cpu", 3) == 0;
    const int64_t cpu = is_cpu ? points_number_in(instance, 3, instance.length) : -1;

    if (instance.length == 0)
        return at;
    if (kind == OTLP_INSTANCE_PROCESS)
        return points_put_process(at, instance);
    if (kind == OTLP_INSTANCE_CPU && cpu >= 0)
        return points_put_integer(at, "cpu.logical_number", (uint64_t)cpu);
    if (kind == OTLP_INSTANCE_CPU)
        kind = OTLP_INSTANCE_OTHER;
    return otlp_put_attribute(at, PB_BYTES(7), otlp_instance_key(kind), points_cut(instance));
}

static char *points_put_point(char *at, const struct fleet_point *point,
                              const struct otlp_name *name)
{
    char *length;

    *at++ = PB_BYTES(1);
    length = at++;
    *at++ = PB_FIXED64(2);
    at = pb_put_fixed64(at, (uint64_t)point->start_ns);
    *at++ = PB_FIXED64(3);
    at = pb_put_fixed64(at, (uint64_t)point->end_ns);
    if (otlp_is_ns(point->unit)) {
        at = otlp_put_double(at, PB_FIXED64(4), (double)point->value / NS_PER_S);
    } else {
        *at++ = PB_FIXED64(6);
        at = pb_put_fixed64(at, point->value);
    }
    for (size_t i = 0; name && i < 2 && name->attributes[i].key; i++)
        at = otlp_put_attribute(at, PB_BYTES(7), name->attributes[i].key,
                                text_of(name->attributes[i].value));
    at = points_put_instance(at, otlp_instance_of(point->metric), point->instance);
    return pb_end(length, at);
}

/* OpenTelemetry's name of the metric; NULL: it has none. With another unit than the key's, it is a
 * foreign metric of the same key. */
static const struct otlp_name *points_name_of(const struct fleet_point *point)
{
    const struct otlp_name *name = otlp_name_of(point->metric);

    return name && text_is(point->unit, name->key_unit) ? name : NULL;
}

/* Several of our keys may have one OpenTelemetry name; those are neighbours. */
static bool points_is_of_metric(const struct fleet_point *point, const struct otlp_name *name,
                                const struct fleet_point *first, const struct otlp_name *first_name)
{
    if (point->is_counter != first->is_counter || !name != !first_name)
        return false;
    return name ? strcmp(name->name, first_name->name) == 0
                : text_equal(point->metric, first->metric) && text_equal(point->unit, first->unit);
}

static char *points_put_name(char *at, const struct fleet_point *point,
                             const struct otlp_name *name)
{
    char ours[sizeof(OTLP_OURS) + FLEET_NAME_MAX];
    char *end;

    if (name)
        return otlp_put_text(at, PB_BYTES(1), text_of(name->name));
    /* not shortened, so that two long keys stay different */
    end = text_copy(text_copy(ours, text_of(OTLP_OURS)), points_cut(point->metric));
    return otlp_put_text(at, PB_BYTES(1), (struct text){ours, (size_t)(end - ours)});
}

/* Puts the points of one metric. Returns how many; 0 when out of memory or room. */
static size_t points_put_metric(const struct fleet_point *points, size_t count,
                                struct buffer *buffer)
{
    const struct otlp_name *const first = points_name_of(points), *name = first;
    const size_t before = buffer->length;
    size_t metric, data, written = 0;
    char *at;

    if (!buffer_reserve(buffer, FRAME_MAX))
        return 0;
    at = otlp_begin(buffer->data + buffer->length, PB_BYTES(2), &metric, buffer->data);
    at = points_put_name(at, points, first);
    at = otlp_put_text(at, PB_BYTES(3),
                       first                      ? text_of(first->unit)
                       : otlp_is_ns(points->unit) ? text_of("s")
                                                  : points_cut(points->unit));
    at = otlp_begin(at, points->is_counter ? PB_BYTES(7) : PB_BYTES(5), &data, buffer->data);
    if (points->is_counter) {
        *at++ = PB_VARINT(2);
        *at++ = TEMPORALITY_DELTA;
        *at++ = PB_VARINT(3); /* monotonic */
        *at++ = 1;
    }
    buffer->length = (size_t)(at - buffer->data);
    while (written < count && buffer->length + POINT_MAX < OTLP_POINTS_BYTES) {
        const struct fleet_point *point = &points[written];

        if (written && !text_equal(point->metric, point[-1].metric))
            name = points_name_of(point);
        if (!points_is_of_metric(point, name, points, first) || !buffer_reserve(buffer, POINT_MAX))
            break;
        at = points_put_point(buffer->data + buffer->length, point, name);
        buffer->length = (size_t)(at - buffer->data);
        written++;
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

    qsort(points, count, sizeof(*points), points_compare);
    buffer->length = 0;
    if (!buffer_reserve(buffer, FRAME_MAX))
        return 0;
    at = otlp_begin(buffer->data, PB_BYTES(1), &resource_metrics, buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = pb_end(part, otlp_put_attribute(at, PB_BYTES(1), "host.name", points_cut(host)));
    at = otlp_begin(at, PB_BYTES(2), &scope_metrics, buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = pb_end(part, PB_PUT_LITERAL(at, PB_BYTES(1), "blkin"));
    buffer->length = (size_t)(at - buffer->data);
    for (; written < count && more; written += more)
        more = points_put_metric(points + written, count - written, buffer);
    otlp_end(buffer->data, scope_metrics, buffer->length);
    otlp_end(buffer->data, resource_metrics, buffer->length);
    return written;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    otlp_point_fn *call;
    void *context;
    struct otlp_points_read *told;
    struct fleet_point point;      /* as far as it is read */
    struct text name, unit;        /* of the metric, as the message has them */
    const struct otlp_name *first; /* the `count` entries of this name; NULL: not OpenTelemetry's */
    size_t count;
    char instance[FLEET_NAME_MAX + 32];
};

/* The value of an attribute, which is a message; empty if there is none. */
static struct text points_attribute_value(struct text message, uint32_t tag, const char *key)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == tag && text_is(otlp_find(pb_text(&field), OTLP_ATTRIBUTE_KEY), key))
            return otlp_find(pb_text(&field), OTLP_ATTRIBUTE_VALUE);
    }
    return (struct text){"", 0};
}

static struct text points_attribute(struct text message, uint32_t tag, const char *key)
{
    return otlp_find(points_attribute_value(message, tag, key), OTLP_VALUE_STRING);
}

static struct text points_text_attribute(struct text point, const char *key)
{
    return points_attribute(point, PB_TAG(7, PB_TYPE_BYTES), key);
}

static bool points_integer_attribute(struct text point, const char *key, uint64_t *value)
{
    struct pb_reader reader =
        pb_reader_of(points_attribute_value(point, PB_TAG(7, PB_TYPE_BYTES), key));
    struct pb_member field;
    bool found = false;

    while (pb_next(&reader, &field)) {
        if (field.tag == (uint32_t)OTLP_VALUE_INT) {
            *value = field.value;
            found = true;
        }
    }
    return found;
}

/* Chooses among entries of one name by the attributes of the point. */
static const struct otlp_name *points_find_name(const struct reading *reading, struct text point)
{
    for (size_t i = 0; i < reading->count; i++) {
        const struct otlp_name *name = &reading->first[i];
        size_t k = 0;

        while (k < 2 && name->attributes[k].key &&
               text_is(points_text_attribute(point, name->attributes[k].key),
                       name->attributes[k].value))
            k++;
        if (k == 2 || !name->attributes[k].key)
            return name;
    }
    return NULL;
}

/* Our key without its prefix; a foreign name stays as it is. */
static struct text points_own_key(struct text name)
{
    const size_t length = strlen(OTLP_OURS);

    return name.length > length && text_begins(name, OTLP_OURS) ? text_after(name, length) : name;
}

static struct text points_print_instance(struct reading *reading, struct text begin,
                                         const char *between, uint64_t number, const char *end)
{
    const struct text name = points_cut(begin);
    char *at = text_copy(reading->instance, name);

    at += snprintf(at, sizeof(reading->instance) - name.length, "%s%llu%s", between,
                   (unsigned long long)number, end);
    return (struct text){reading->instance, (size_t)(at - reading->instance)};
}

static struct text points_read_instance(struct reading *reading, struct text point)
{
    const enum otlp_instance kind = otlp_instance_of(reading->point.metric);
    const char *key = otlp_instance_key(kind);
    struct text instance = key ? points_text_attribute(point, key) : (struct text){"", 0};
    uint64_t number;

    if (kind == OTLP_INSTANCE_CPU && points_integer_attribute(point, "cpu.logical_number", &number))
        return points_print_instance(reading, text_of("cpu"), "", number, "");
    if (kind == OTLP_INSTANCE_PROCESS && instance.length &&
        points_integer_attribute(point, "process.pid", &number))
        return points_print_instance(reading, instance, "[", number, "]");
    return instance.length ? instance
                           : points_text_attribute(point, otlp_instance_key(OTLP_INSTANCE_OTHER));
}

/* Converts seconds to ns. Returns false for a number that is no duration. */
static bool points_read_seconds(double seconds, uint64_t *ns)
{
    if (!(seconds >= 0) || seconds > (double)INT64_MAX / NS_PER_S / 2)
        return false;
    *ns = (uint64_t)llround(seconds * NS_PER_S);
    return true;
}

static bool points_read_point(struct reading *reading, struct text message)
{
    struct fleet_point *point = &reading->point;
    struct pb_reader reader = pb_reader_of(message);
    const struct otlp_name *name = points_find_name(reading, message);
    struct pb_member field;
    bool has_value = false, is_seconds;

    point->start_ns = point->end_ns = 0;
    point->metric = name ? text_of(name->key) : points_own_key(reading->name);
    point->unit = name ? text_of(name->key_unit) : reading->unit;
    /* our own durations are in seconds, too */
    is_seconds = text_is(reading->unit, "s") &&
                 (name ? otlp_is_ns(point->unit) : point->metric.length < reading->name.length);
    if (is_seconds)
        point->unit = text_of("ns");
    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(2, PB_TYPE_FIXED64))
            point->start_ns = (int64_t)field.value;
        else if (field.tag == PB_TAG(3, PB_TYPE_FIXED64))
            point->end_ns = (int64_t)field.value;
        else if (field.tag == PB_TAG(4, PB_TYPE_FIXED64))
            has_value = is_seconds && points_read_seconds(pb_double(field.value), &point->value);
        else if (field.tag == PB_TAG(6, PB_TYPE_FIXED64) && is_seconds)
            has_value = (int64_t)field.value >= 0 &&
                        points_read_seconds((double)field.value, &point->value);
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
    point->instance = points_read_instance(reading, message);
    reading->told->points++;
    reading->call(reading->context, point);
    return true;
}

static bool points_read_points(struct reading *reading, struct text data)
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
        else if (!points_read_point(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

static bool points_read_metric(struct reading *reading, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    reading->name = otlp_find(message, (enum otlp_field)PB_TAG(1, PB_TYPE_BYTES));
    reading->unit = otlp_find(message, (enum otlp_field)PB_TAG(3, PB_TYPE_BYTES));
    reading->first = otlp_names_called(reading->name, reading->unit, &reading->count);
    while (pb_next(&reader, &field)) {
        reading->point.is_counter = field.tag == PB_TAG(7, PB_TYPE_BYTES);
        if ((reading->point.is_counter || field.tag == PB_TAG(5, PB_TYPE_BYTES)) &&
            !points_read_points(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

typedef bool read_fn(struct reading *reading, struct text message);

static bool points_read_each(struct reading *reading, struct text message, int number,
                             read_fn *read)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(number, PB_TYPE_BYTES) && !read(reading, pb_text(&field)))
            return false;
    }
    return !pb_is_broken(&reader);
}

static bool points_read_scope(struct reading *reading, struct text message)
{
    return points_read_each(reading, message, 2, points_read_metric);
}

static bool points_read_resource(struct reading *reading, struct text message)
{
    reading->point.host = points_attribute(otlp_find(message, OTLP_RESOURCE_SPANS_RESOURCE),
                                           PB_TAG(1, PB_TYPE_BYTES), "host.name");
    return points_read_each(reading, message, 2, points_read_scope);
}

struct otlp_points_read otlp_points_read(struct text request, otlp_point_fn *call, void *context)
{
    struct otlp_points_read told = {.points = 0};
    struct reading reading = {.call = call, .context = context, .told = &told};

    told.is_broken = !points_read_each(&reading, request, 1, points_read_resource);
    return told;
}
