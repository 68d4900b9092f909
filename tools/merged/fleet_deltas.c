/*
 * What was added up of hosts, as OTLP metrics, written and read.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fleet_deltas.h"

#include "delta_names.h"

#include "tools/otlp/otlp_fields.h"
#include "tools/otlp/otlp_write.h"

#include <math.h>

#define NAME_MAX  PB_TEXT_MAX(FLEET_NAME_MAX)
#define POINT_MAX (256 + 4 * NAME_MAX)
#define FRAME_MAX (1024 + 2 * PB_TEXT_MAX(DELTAS_NAME_MAX))

enum field {
    SAMPLES,
    INCREASE,
    WINDOW_HOSTS,
    WINDOW_ELAPSED,
    WINDOW_INCREASE,
    WINDOW_INTEGRAL,
    WINDOW_MIN,
    WINDOW_MAX,
    WINDOW_DELAY,
    WINDOW_AVERAGE,
    WINDOW_SUM,
    FIELDS
};

static const struct field_kind {
    const char *name;
    const char *unit;
    bool is_gauge;
} fields[FIELDS] = {
    [SAMPLES] = {"samples", "{sample}", false},
    [INCREASE] = {"increase", "1", false},
    [WINDOW_HOSTS] = {"window.hosts", "{host}", false},
    [WINDOW_ELAPSED] = {"window.elapsed", "ns", false},
    [WINDOW_INCREASE] = {"window.increase", "1", false},
    [WINDOW_INTEGRAL] = {"window.integral", "1", false},
    [WINDOW_MIN] = {"window.min", "1", true},
    [WINDOW_MAX] = {"window.max", "1", true},
    [WINDOW_DELAY] = {"window.delay", "ns", true},
    [WINDOW_AVERAGE] = {"window.average", "1", true},
    [WINDOW_SUM] = {"window.sum", "1", true},
};

/* ---- writing --------------------------------------------------------------------------------- */

struct writer {
    const struct deltas_head *head;
    const struct fleet *fleet;
    struct buffer *buffer;
    deltas_emit_fn *emit;
    void *context;
    size_t resource_metrics, scope_metrics, metric, data;
    int open; /* the field whose metric it is; FIELDS: none */
    bool has_message;
};

static char *end_of(const struct writer *writer)
{
    return writer->buffer->data + writer->buffer->length;
}

static void set_end(struct writer *writer, const char *at)
{
    writer->buffer->length = (size_t)(at - writer->buffer->data);
}

static bool begin_message(struct writer *writer)
{
    char *at, *part;

    writer->buffer->length = 0;
    writer->open = FIELDS;
    if (!buffer_reserve(writer->buffer, FRAME_MAX))
        return false;
    at = otlp_begin(end_of(writer), PB_BYTES(1), &writer->resource_metrics, writer->buffer->data);
    *at++ = PB_BYTES(1);
    part = at++;
    at = otlp_put_attribute(at, PB_BYTES(1), "service.name", text_of(DELTAS_SERVICE));
    at =
        otlp_put_attribute(at, PB_BYTES(1), "service.instance.id", text_of(writer->head->instance));
    at = otlp_put_attribute(at, PB_BYTES(1), "messaging.consumer.group.name",
                            text_of(writer->head->group));
    at = pb_end(part, at);
    at = otlp_begin(at, PB_BYTES(2), &writer->scope_metrics, writer->buffer->data);
    set_end(writer, at);
    writer->has_message = true;
    return true;
}

static void end_metric(struct writer *writer)
{
    if (writer->open != FIELDS) {
        otlp_end(writer->buffer->data, writer->data, writer->buffer->length);
        otlp_end(writer->buffer->data, writer->metric, writer->buffer->length);
    }
    writer->open = FIELDS;
}

static bool end_message(struct writer *writer)
{
    end_metric(writer);
    otlp_end(writer->buffer->data, writer->scope_metrics, writer->buffer->length);
    otlp_end(writer->buffer->data, writer->resource_metrics, writer->buffer->length);
    writer->has_message = false;
    return writer->emit(writer->context, writer->buffer->data, writer->buffer->length);
}

static void begin_metric(struct writer *writer, int field)
{
    /* what hosts there are now is no sum */
    const bool is_gauge =
        fields[field].is_gauge || (writer->head->is_cumulative && field == WINDOW_HOSTS);
    char name[64], *at;

    (void)snprintf(name, sizeof(name), FLEET_DELTAS_PREFIX "%s", fields[field].name);
    at = otlp_begin(end_of(writer), PB_BYTES(2), &writer->metric, writer->buffer->data);
    at = otlp_put_text(at, PB_BYTES(1), text_of(name));
    at = otlp_put_text(at, PB_BYTES(3), text_of(fields[field].unit));
    at = otlp_begin(at, is_gauge ? PB_BYTES(5) : PB_BYTES(7), &writer->data, writer->buffer->data);
    if (!is_gauge) {
        *at++ = PB_VARINT(2);
        *at++ = writer->head->is_cumulative ? CUMULATIVE : DELTA;
        *at++ = PB_VARINT(3); /* monotonic */
        *at++ = field != WINDOW_INTEGRAL;
    }
    set_end(writer, at);
    writer->open = field;
}

/* In another message, if this one is full. */
static bool make_room(struct writer *writer, int field)
{
    const size_t size = FRAME_MAX + POINT_MAX;

    if (writer->open != field)
        end_metric(writer);
    if (writer->has_message && writer->buffer->length + size > DELTAS_MESSAGE_MAX &&
        !end_message(writer))
        return false;
    if ((!writer->has_message && !begin_message(writer)) || !buffer_reserve(writer->buffer, size))
        return false;
    if (writer->open != field)
        begin_metric(writer, field);
    return true;
}

/* One for which there was no room has no attribute. */
static char *put_name(const struct writer *writer, char *at, const char *key, uint32_t id)
{
    return id == NAMES_OTHER ? at
                             : otlp_put_attribute(at, PB_BYTES(7), key,
                                                  names_text(fleet_names(writer->fleet), id));
}

static bool put_point(struct writer *writer, int field, const struct fleet_row *row,
                      const struct fleet_window *window, uint64_t value, double real)
{
    const int64_t begin = window ? window->number * FLEET_WINDOW_NS : writer->head->start_ns;
    const int64_t end = window ? begin + FLEET_WINDOW_NS : writer->head->end_ns;
    char *at, *point;

    if (!make_room(writer, field))
        return false;
    at = end_of(writer);
    *at++ = PB_BYTES(1);
    point = at++;
    *at++ = PB_FIXED64(2);
    at = pb_put_fixed64(at, (uint64_t)begin);
    *at++ = PB_FIXED64(3);
    at = pb_put_fixed64(at, (uint64_t)end);
    if (field == WINDOW_INTEGRAL || field == WINDOW_MIN || field == WINDOW_MAX ||
        field == WINDOW_AVERAGE || field == WINDOW_SUM) {
        at = otlp_put_double(at, PB_FIXED64(4), real);
    } else {
        *at++ = PB_FIXED64(6);
        at = pb_put_fixed64(at, value);
    }
    at = put_name(writer, at, "hosts", row->hosts);
    at = put_name(writer, at, "metric", row->metric);
    at = put_name(writer, at, "instance", row->instance);
    if (field == SAMPLES || writer->head->is_cumulative) {
        at = put_name(writer, at, "unit", row->unit);
        at = otlp_put_attribute(at, PB_BYTES(7), "kind",
                                text_of(row->is_counter ? "counter" : "gauge"));
    }
    set_end(writer, pb_end(point, at));
    return true;
}

static bool put_window(struct writer *writer, int field, const struct fleet_row *row,
                       const struct fleet_window *window)
{
    const uint64_t values[FIELDS] = {
        [WINDOW_HOSTS] = window->hosts,
        [WINDOW_ELAPSED] = window->elapsed_ns,
        [WINDOW_INCREASE] = window->increase,
        [WINDOW_DELAY] = (uint64_t)window->delay_ns,
    };
    const double reals[FIELDS] = {
        [WINDOW_INTEGRAL] = window->integral,
        [WINDOW_MIN] = window->min,
        [WINDOW_MAX] = window->max,
        [WINDOW_AVERAGE] = fleet_average(row, window),
        [WINDOW_SUM] = fleet_average(row, window) * (double)window->hosts,
    };
    const bool is_shown = field == WINDOW_HOSTS || field == WINDOW_MIN || field == WINDOW_MAX;
    const bool is_left_out = (writer->head->is_cumulative ? field < WINDOW_AVERAGE && !is_shown
                                                          : field >= WINDOW_AVERAGE) ||
                             (field == WINDOW_HOSTS && window->hosts == 0) ||
                             (field == WINDOW_INCREASE && !row->is_counter) ||
                             (field == WINDOW_INTEGRAL && row->is_counter);

    return is_left_out || put_point(writer, field, row, window, values[field], reals[field]);
}

static bool put_row(struct writer *writer, int field, const struct fleet_row *row)
{
    if (row->samples == 0 || (field == INCREASE && !row->is_counter))
        return true;
    if (field == SAMPLES || field == INCREASE)
        return put_point(writer, field, row, NULL, field == SAMPLES ? row->samples : row->increase,
                         0);
    if (writer->head->is_cumulative) {
        const struct fleet_window *shown = fleet_shown(row, writer->head->end_ns);

        return !shown || put_window(writer, field, row, shown);
    }
    for (size_t i = 0; i < FLEET_WINDOWS; i++) {
        if (row->windows[i].elapsed_ns && !put_window(writer, field, row, &row->windows[i]))
            return false;
    }
    return true;
}

bool fleet_deltas_write(const struct deltas_head *head, const struct fleet *fleet,
                        struct buffer *buffer, deltas_emit_fn *emit, void *context)
{
    struct writer writer = {head, fleet, buffer, emit, context, .open = FIELDS};

    for (int field = 0; field < FIELDS; field++) {
        for (size_t i = 0; i < fleet_rows(fleet); i++) {
            if (!put_row(&writer, field, fleet_row(fleet, i)))
                return false;
        }
    }
    return !writer.has_message || end_message(&writer);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct fleet *fleet;
    int64_t now_ns;
    int field;
};

struct point {
    struct text hosts, metric, instance, unit, kind;
    int64_t start_ns, end_ns;
    uint64_t value;
};

static void take_attribute(struct point *point, struct text attribute)
{
    struct text *const texts[] = {&point->hosts, &point->metric, &point->instance, &point->unit,
                                  &point->kind};
    static const char *const keys[] = {"hosts", "metric", "instance", "unit", "kind"};
    const struct text key = otlp_find(attribute, OTLP_ATTRIBUTE_KEY);

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        if (text_is(key, keys[i]))
            *texts[i] = otlp_find(otlp_find(attribute, OTLP_ATTRIBUTE_VALUE), OTLP_VALUE_STRING);
    }
}

static struct point read_point(struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct point point = {.value = 0};
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(2, PB_TYPE_FIXED64))
            point.start_ns = (int64_t)field.value;
        else if (field.tag == PB_TAG(3, PB_TYPE_FIXED64))
            point.end_ns = (int64_t)field.value;
        else if (field.tag == PB_TAG(4, PB_TYPE_FIXED64) || field.tag == PB_TAG(6, PB_TYPE_FIXED64))
            point.value = field.value;
        else if (field.tag == PB_TAG(7, PB_TYPE_BYTES))
            take_attribute(&point, pb_text(&field));
    }
    return point;
}

static void add_to_window(const struct reading *reading, struct fleet_row *row,
                          const struct point *point)
{
    const double real = pb_double(point->value);
    struct fleet_window *window;

    if (point->start_ns <= 0 || point->start_ns > reading->now_ns ||
        point->end_ns != point->start_ns + FLEET_WINDOW_NS)
        return;
    window = fleet_window_of(row, point->start_ns / FLEET_WINDOW_NS);
    if (!window)
        return;
    switch (reading->field) {
    case WINDOW_HOSTS:
        window->hosts += point->value;
        break;
    case WINDOW_ELAPSED:
        window->elapsed_ns += point->value;
        break;
    case WINDOW_INCREASE:
        window->increase += point->value;
        break;
    case WINDOW_INTEGRAL:
        window->integral += isfinite(real) ? real : 0;
        break;
    case WINDOW_MIN:
        window->min = fmin(window->min, real);
        break;
    case WINDOW_MAX:
        window->max = fmax(window->max, real);
        break;
    case WINDOW_DELAY:
        if ((int64_t)point->value > window->delay_ns)
            window->delay_ns = (int64_t)point->value;
        break;
    default:
        break;
    }
}

static bool add_point(const struct reading *reading, const struct point *point)
{
    struct fleet_row *row =
        fleet_row_of(reading->fleet, point->hosts, point->metric, point->instance);

    if (!row)
        return false;
    if (reading->field == SAMPLES) {
        row->samples += point->value;
        fleet_set_unit(reading->fleet, row, point->unit, text_is(point->kind, "counter"));
    } else if (reading->field == INCREASE) {
        row->increase += point->value;
    } else {
        add_to_window(reading, row, point);
    }
    return true;
}

static bool add_points(const struct reading *reading, struct text data)
{
    struct pb_reader reader = pb_reader_of(data);
    struct pb_member field;

    while (pb_next(&reader, &field)) {
        if (field.tag == PB_TAG(1, PB_TYPE_BYTES)) {
            const struct point point = read_point(pb_text(&field));

            if (!add_point(reading, &point))
                return false;
        }
    }
    return true;
}

static int field_of(struct text name)
{
    const size_t length = strlen(FLEET_DELTAS_PREFIX);
    int field = 0;

    if (name.length < length || memcmp(name.data, FLEET_DELTAS_PREFIX, length) != 0)
        return FIELDS;
    name = (struct text){name.data + length, name.length - length};
    while (field < FIELDS && !text_is(name, fields[field].name))
        field++;
    return field;
}

static bool add_metric(struct reading *reading, struct text message)
{
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    reading->field = field_of(otlp_find(message, (enum otlp_field)PB_TAG(1, PB_TYPE_BYTES)));
    while (reading->field != FIELDS && pb_next(&reader, &field)) {
        if ((field.tag == PB_TAG(5, PB_TYPE_BYTES) || field.tag == PB_TAG(7, PB_TYPE_BYTES)) &&
            !add_points(reading, pb_text(&field)))
            return false;
    }
    return true;
}

/* Request, resource metrics, scope metrics: in each, those of the next level are in one field. */
static bool add_level(struct reading *reading, struct text message, int level)
{
    static const uint32_t tags[] = {PB_TAG(1, PB_TYPE_BYTES), PB_TAG(2, PB_TYPE_BYTES),
                                    PB_TAG(2, PB_TYPE_BYTES)};
    struct pb_reader reader = pb_reader_of(message);
    struct pb_member field;

    if (level == 3)
        return add_metric(reading, message);
    while (pb_next(&reader, &field)) {
        if (field.tag == tags[level] && !add_level(reading, pb_text(&field), level + 1))
            return false;
    }
    return true;
}

bool fleet_deltas_read(const char *data, size_t length, struct fleet *fleet, int64_t now_ns)
{
    struct reading reading = {fleet, now_ns, FIELDS};

    return add_level(&reading, (struct text){data, length}, 0);
}
