/*
 * Deltas as OTLP metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "deltas.h"

#include <string.h>

/* ---- which there are ------------------------------------------------------------------------- */

#define PREFIX       "blkin."
#define ROW(member)  offsetof(struct statistics_row, member)
#define EDGE(member) offsetof(struct statistics_edge, member)

/* The metric of a member of all rows, or of all edges. */
static const struct delta {
    bool is_edge;
    size_t offset;
    struct metric metric;
} deltas[] = {
    {false, ROW(spans), {PREFIX, "span.calls", "{span}", METRIC_COUNTER}},
    {false, ROW(errors), {PREFIX, "span.errors", "{span}", METRIC_COUNTER}},
    {false, ROW(duration), {PREFIX, "span.duration", "ns", METRIC_HISTOGRAM}},
    {false, ROW(self), {PREFIX, "span.self_time", "ns", METRIC_HISTOGRAM}},
    {true, EDGE(calls), {PREFIX, "edge.calls", "{call}", METRIC_COUNTER}},
    {true, EDGE(errors), {PREFIX, "edge.errors", "{call}", METRIC_COUNTER}},
    {true, EDGE(duration), {PREFIX, "edge.duration", "ns", METRIC_HISTOGRAM}},
};
#define DELTAS (sizeof(deltas) / sizeof(deltas[0]))

/* Attributes of rows and of edges. */
static const char *const keys[2][2] = {{"service.name", "span.name"}, {"client", "server"}};

#define WORK_PREFIX "work."

/* ---- writing --------------------------------------------------------------------------------- */

/* One for which there was no room has no attribute: there may be several. */
static void delta_add_name(struct metric_point *point, const char *key, const struct names *names,
                           uint32_t id)
{
    if (id != NAMES_OTHER)
        metric_point_add(point, key, names_text(names, id));
}

static bool put_delta(struct otlp_metrics_writer *writer, const struct deltas_head *head,
                      const struct statistics *statistics, const struct delta *delta)
{
    const struct names *names = statistics_names(statistics);
    const size_t count =
        delta->is_edge ? statistics_edges(statistics) : statistics_rows(statistics);

    for (size_t i = 0; i < count; i++) {
        struct metric_point point = {.start_ns = head->start_ns, .end_ns = head->end_ns};
        uint32_t first, second;
        const char *of;

        if (delta->is_edge) {
            const struct statistics_edge *edge = statistics_edge(statistics, i);

            first = edge->caller;
            second = edge->callee;
            of = (const char *)edge;
        } else {
            const struct statistics_row *row = statistics_row(statistics, i);

            first = row->service;
            second = row->name;
            of = (const char *)row;
        }
        if (delta->metric.shape == METRIC_HISTOGRAM)
            point.histogram = (const void *)(of + delta->offset);
        else
            memcpy(&point.value, of + delta->offset, sizeof(point.value));
        if (point.histogram ? point.histogram->count == 0 : point.value == 0)
            continue;
        delta_add_name(&point, keys[delta->is_edge][0], names, first);
        delta_add_name(&point, keys[delta->is_edge][1], names, second);
        if (!otlp_metrics_put(writer, &delta->metric, &point))
            return false;
    }
    return true;
}

static bool put_counter(struct otlp_metrics_writer *writer, const struct deltas_head *head,
                        const struct work_counter *counter)
{
    const struct metric metric = {PREFIX WORK_PREFIX, counter->name, "1",
                                  counter->kind == WORK_COUNTER ? METRIC_COUNTER : METRIC_GAUGE};
    const struct metric_point point = {
        .start_ns = head->start_ns,
        .end_ns = head->end_ns,
        .value = work_counter_value(counter, &head->counts),
        .is_double = counter->kind == WORK_RATIO,
    };

    return otlp_metrics_put(writer, &metric, &point);
}

bool deltas_write(const struct deltas_head *head, const struct statistics *statistics,
                  struct buffer *buffer, otlp_metrics_emit_fn *emit, void *context)
{
    struct otlp_metrics_writer writer = {.instance = head->instance,
                                         .group = head->group,
                                         .buffer = buffer,
                                         .emit = emit,
                                         .context = context};
    bool is_right = true;

    for (size_t i = 0; is_right && i < work_counters_count; i++)
        is_right = put_counter(&writer, head, &work_counters[i]);
    for (size_t i = 0; is_right && i < DELTAS; i++)
        is_right = put_delta(&writer, head, statistics, &deltas[i]);
    return is_right && otlp_metrics_end(&writer, true);
}

/* ---- reading --------------------------------------------------------------------------------- */

struct reading {
    struct deltas_head *head;
    struct statistics *statistics; /* NULL: it is only looked at */
    struct names *names;
    struct error *error;
};

static void take_counter(struct deltas_head *head, struct text name, uint64_t value)
{
    for (size_t i = 0; i < work_counters_count; i++) {
        if (!text_is(name, work_counters[i].name))
            continue;
        head->has_counts = true;
        memcpy((char *)&head->counts + work_counters[i].offset, &value, sizeof(value));
    }
}

/* Of a name that is not there: NAMES_OTHER. */
static uint32_t name_of(const struct reading *reading, const struct metric_point *point,
                        const char *key)
{
    const struct text name = metric_attribute(point, key);

    return name.data ? names_id(reading->names, name) : NAMES_OTHER;
}

/* False: out of memory. */
static bool add_delta(const struct reading *reading, const struct delta *delta,
                      const struct metric_point *point)
{
    const uint32_t first = name_of(reading, point, keys[delta->is_edge][0]);
    const uint32_t second = name_of(reading, point, keys[delta->is_edge][1]);
    struct statistics_row *row = NULL;
    uint64_t value;
    void *of;

    if (delta->is_edge)
        of = statistics_edge_of(reading->statistics, first, second);
    else
        of = row = statistics_row_of(reading->statistics, first, second);
    if (!of)
        return false;
    of = (char *)of + delta->offset;
    if (delta->metric.shape == METRIC_HISTOGRAM)
        return !point->histogram || histogram_merge(of, point->histogram);
    memcpy(&value, of, sizeof(value));
    value += point->value;
    memcpy(of, &value, sizeof(value));
    if (row && of == &row->spans)
        row->ever += point->value;
    return true;
}

static bool delta_take_point(void *context, struct text name, const struct metric_point *point)
{
    const struct reading *reading = context;
    reading->head->start_ns = point->start_ns;
    reading->head->end_ns = point->end_ns;
    if (text_begins(name, WORK_PREFIX))
        take_counter(reading->head, text_after(name, strlen(WORK_PREFIX)), point->value);
    for (size_t i = 0; reading->statistics && i < DELTAS; i++) {
        if (text_is(name, deltas[i].metric.name) && !add_delta(reading, &deltas[i], point))
            return error_set(reading->error, "out of memory");
    }
    return true;
}

static bool read_all(struct reading *reading, struct text request)
{
    struct otlp_metrics_origin origin = {"", ""};

    *reading->head = (struct deltas_head){.start_ns = 0};
    if (!otlp_metrics_read(request, PREFIX, &origin, delta_take_point, reading, reading->error))
        return false;
    memcpy(reading->head->instance, origin.instance, sizeof(origin.instance));
    memcpy(reading->head->group, origin.group, sizeof(origin.group));
    return true;
}

bool deltas_read(const char *data, size_t length, struct deltas_head *head,
                 struct statistics *statistics, struct names *names, struct error *error)
{
    struct reading reading = {head, NULL, names, error};
    const struct text request = {data, length};

    if (!read_all(&reading, request))
        return false;
    reading.statistics = statistics;
    return read_all(&reading, request);
}
