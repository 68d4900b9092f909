/*
 * What was added up of hosts, as OTLP metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fleet_deltas.h"

#include <string.h>

#define PREFIX "blkin.hosts."

/* ---- which there are ------------------------------------------------------------------------- */

/* What it is of: a row, a window, or what a collector is told instead of a window's sums. */
enum of { OF_ROW, OF_WINDOW, OF_WINDOW_SHOWN };

#define ROW(member)    OF_ROW, offsetof(struct fleet_row, member)
#define WINDOW(member) OF_WINDOW, offsetof(struct fleet_window, member)
#define SHOWN          OF_WINDOW_SHOWN, 0
#define NAMED(name, unit, shape)           \
    {                                      \
        PREFIX, name, unit, METRIC_##shape \
    }

enum {
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

static const struct field {
    struct metric metric;
    enum of of;
    size_t offset; /* of eight bytes */
    bool is_double;
    bool is_shown; /* a collector is told this of the window, too */
} fields[FIELDS] = {
    [SAMPLES] = {NAMED("samples", "{sample}", COUNTER), ROW(samples), false, true},
    [INCREASE] = {NAMED("increase", "1", COUNTER), ROW(increase), false, true},
    [WINDOW_HOSTS] = {NAMED("window.hosts", "{host}", COUNTER), WINDOW(hosts), false, true},
    [WINDOW_ELAPSED] = {NAMED("window.elapsed", "ns", COUNTER), WINDOW(elapsed_ns), false, false},
    [WINDOW_INCREASE] = {NAMED("window.increase", "1", COUNTER), WINDOW(increase), false, false},
    [WINDOW_INTEGRAL] = {NAMED("window.integral", "1", SUM), WINDOW(integral), true, false},
    [WINDOW_MIN] = {NAMED("window.min", "1", GAUGE), WINDOW(min), true, true},
    [WINDOW_MAX] = {NAMED("window.max", "1", GAUGE), WINDOW(max), true, true},
    [WINDOW_DELAY] = {NAMED("window.delay", "ns", GAUGE), WINDOW(delay_ns), false, false},
    [WINDOW_AVERAGE] = {NAMED("window.average", "1", GAUGE), SHOWN, true, true},
    [WINDOW_SUM] = {NAMED("window.sum", "1", GAUGE), SHOWN, true, true},
};

/* ---- writing --------------------------------------------------------------------------------- */

struct writing {
    struct otlp_metrics_writer metrics;
    const struct deltas_head *head;
    const struct names *names;
};

/* One for which there was no room has no attribute. */
static void fleet_add_name(const struct writing *writing, struct metric_point *point,
                           const char *key, uint32_t id)
{
    if (id != NAMES_OTHER)
        metric_point_add(point, key, names_text(writing->names, id));
}

static bool put_point(struct writing *writing, size_t i, const struct fleet_row *row,
                      struct metric_point *point)
{
    struct metric metric = fields[i].metric;

    if (writing->head->is_cumulative && i == WINDOW_HOSTS)
        metric.shape = METRIC_GAUGE; /* what hosts there are now is no sum */
    point->is_double = fields[i].is_double;
    fleet_add_name(writing, point, "hosts", row->hosts);
    fleet_add_name(writing, point, "metric", row->metric);
    fleet_add_name(writing, point, "instance", row->instance);
    if (i == SAMPLES || writing->head->is_cumulative) {
        fleet_add_name(writing, point, "unit", row->unit);
        metric_point_add(point, "kind", text_of(row->is_counter ? "counter" : "gauge"));
    }
    return otlp_metrics_put(&writing->metrics, &metric, point);
}

static bool fleet_put_window(struct writing *writing, size_t i, const struct fleet_row *row,
                             const struct fleet_window *window)
{
    const double average = fleet_average(row, window);
    const double shown = i == WINDOW_SUM ? average * (double)window->hosts : average;
    struct metric_point point = {.start_ns = window->number * FLEET_WINDOW_NS,
                                 .end_ns = (window->number + 1) * FLEET_WINDOW_NS};

    if ((i == WINDOW_HOSTS && window->hosts == 0) || (i == WINDOW_INCREASE && !row->is_counter) ||
        (i == WINDOW_INTEGRAL && row->is_counter))
        return true;
    memcpy(&point.value,
           fields[i].of == OF_WINDOW ? (const char *)window + fields[i].offset
                                     : (const char *)&shown,
           sizeof(point.value));
    return put_point(writing, i, row, &point);
}

static bool fleet_put_row(struct writing *writing, size_t i, const struct fleet_row *row)
{
    const struct deltas_head *head = writing->head;
    struct metric_point point = {.start_ns = head->start_ns, .end_ns = head->end_ns};

    if (row->samples == 0 || (i == INCREASE && !row->is_counter))
        return true;
    if (fields[i].of == OF_ROW) {
        memcpy(&point.value, (const char *)row + fields[i].offset, sizeof(point.value));
        return put_point(writing, i, row, &point);
    }
    if (head->is_cumulative) {
        const struct fleet_window *shown = fleet_shown(row, head->end_ns);

        return !shown || fleet_put_window(writing, i, row, shown);
    }
    for (size_t k = 0; k < FLEET_WINDOWS; k++) {
        if (row->windows[k].elapsed_ns && !fleet_put_window(writing, i, row, &row->windows[k]))
            return false;
    }
    return true;
}

bool fleet_deltas_write(const struct deltas_head *head, const struct fleet *fleet,
                        struct buffer *buffer, otlp_metrics_emit_fn *emit, void *context)
{
    struct writing writing = {deltas_writer(head, buffer, emit, context), head, fleet_names(fleet)};

    for (size_t i = 0; i < FIELDS; i++) {
        const bool is_written =
            head->is_cumulative ? fields[i].is_shown : fields[i].of != OF_WINDOW_SHOWN;

        for (size_t k = 0; is_written && k < fleet_rows(fleet); k++) {
            if (!fleet_put_row(&writing, i, fleet_row(fleet, k)))
                return false;
        }
    }
    return otlp_metrics_end(&writing.metrics, false);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct fleet *fleet;
    int64_t now_ns;
    bool is_starved;
};

void fleet_window_merge(struct fleet_row *row, int64_t number, const struct fleet_window *part)
{
    struct fleet_window *window = fleet_window_of(row, number);

    if (!window)
        return;
    window->hosts += part->hosts;
    window->elapsed_ns += part->elapsed_ns;
    window->increase += part->increase;
    window->integral += isfinite(part->integral) ? part->integral : 0;
    window->min = fmin(window->min, part->min);
    window->max = fmax(window->max, part->max);
    if (part->delay_ns > window->delay_ns)
        window->delay_ns = part->delay_ns;
}

static void add_to_row(const struct reading *reading, const struct field *field,
                       struct fleet_row *row, const struct metric_point *point)
{
    struct fleet_window part = FLEET_WINDOW_EMPTY;

    if (field == &fields[SAMPLES]) {
        row->samples += point->value;
        fleet_set_unit(reading->fleet, row, metric_attribute(point, "unit"),
                       text_is(metric_attribute(point, "kind"), "counter"));
    } else if (field == &fields[INCREASE]) {
        row->increase = fleet_increase_sum(row->increase, point->value);
    } else if (field->of == OF_WINDOW && point->start_ns > 0 &&
               point->start_ns <= reading->now_ns &&
               point->end_ns == point->start_ns + FLEET_WINDOW_NS) {
        memcpy((char *)&part + field->offset, &point->value, sizeof(point->value));
        fleet_window_merge(row, point->start_ns / FLEET_WINDOW_NS, &part);
    }
}

static bool fleet_take_point(void *context, struct text name, const struct metric_point *point)
{
    struct reading *reading = context;
    struct fleet_row *row;

    for (size_t i = 0; i < FIELDS; i++) {
        if (!text_is(name, fields[i].metric.name))
            continue;
        row = fleet_row_of(reading->fleet, metric_attribute(point, "hosts"),
                           metric_attribute(point, "metric"), metric_attribute(point, "instance"));
        reading->is_starved = row == NULL;
        if (row)
            add_to_row(reading, &fields[i], row, point);
    }
    return !reading->is_starved;
}

bool fleet_deltas_read(const char *data, size_t length, struct fleet *fleet, int64_t now_ns)
{
    struct reading reading = {fleet, now_ns, false};
    struct otlp_metrics_origin origin = {"", ""};
    struct error ignored = {""};

    (void)otlp_metrics_read((struct text){data, length}, PREFIX, &origin, fleet_take_point,
                            &reading, &ignored);
    return !reading.is_starved;
}
