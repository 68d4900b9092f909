/* The report as one line of JSON: see blkin-stat(1).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "tools/base/say.h"
#include "tools/trace/figures.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rounds to the digits that are significant. */
static json_t *rounded(double value)
{
    return json_real(round(value * 1000) / 1000);
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *row_json(const struct report *report, const struct operation *operation)
{
    const struct statistics_row *row = operation->row;
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "service", operation->service,
                             "name", operation->name, "spans", integer(row->spans), "rate",
                             rounded(report_rate(report, row->spans)), "errors",
                             integer(row->errors), "duration", figure_json(&row->duration, true),
                             "self", figure_json(&row->self, true));

    if (json && statistics_is_other(row))
        json_object_set_new(json, "other", json_true());
    return json;
}

/* An edge and its names; "" in the edge for all others. */
struct named_edge {
    const struct statistics_row *edge;
    const char *caller;
    const char *callee;
};

static int by_calls(const void *a, const void *b)
{
    const struct named_edge *left = a, *right = b;
    int order = (left->edge->calls < right->edge->calls) - (left->edge->calls > right->edge->calls);

    if (!order)
        order = strcmp(left->caller, right->caller);
    return order ? order : strcmp(left->callee, right->callee);
}

/* Returns the edges of the wanted services, the most calls first. The caller frees them; NULL: out
 * of memory. */
static struct named_edge *find_edges(const struct statistics *statistics, const char *glob,
                                     size_t *count)
{
    const size_t all = statistics_size(statistics, STATISTICS_EDGES);
    struct named_edge *edges = calloc(all + 1, sizeof(*edges));

    *count = 0;
    for (size_t i = 0; edges && i < all; i++) {
        const struct statistics_row *edge = statistics_at(statistics, STATISTICS_EDGES, i);
        const char *caller = names_text(statistics_names(statistics), edge->caller).data;
        const char *callee = names_text(statistics_names(statistics), edge->callee).data;

        if (edge->calls && (statistics_is_other(edge) || operations_want(glob, caller) ||
                            operations_want(glob, callee)))
            edges[(*count)++] = (struct named_edge){edge, caller, callee};
    }
    if (edges)
        qsort(edges, *count, sizeof(*edges), by_calls);
    return edges;
}

static json_t *edge_json(const struct report *report, const struct named_edge *named)
{
    const struct statistics_row *edge = named->edge;
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "client", named->caller, "server",
                             named->callee, "calls", integer(edge->calls), "rate",
                             rounded(report_rate(report, edge->calls)), "errors",
                             integer(edge->errors), "duration", figure_json(&edge->duration, true));

    if (json && statistics_is_other(edge))
        json_object_set_new(json, "other", json_true());
    return json;
}

static bool add_rows(json_t *json, const struct report *report, const struct stat_options *options)
{
    size_t count;
    struct operation *rows =
        operations(report->statistics, options->order, options->service, &count);
    json_t *array = json_array();
    bool done = rows && array;

    for (size_t i = 0; done && i < count; i++)
        done = json_array_append_new(array, row_json(report, &rows[i])) == 0;
    free(rows);
    return json_object_set_new(json, "rows", array) == 0 && done;
}

static bool add_edges(json_t *json, const struct report *report, const struct stat_options *options)
{
    size_t count;
    struct named_edge *edges = find_edges(report->statistics, options->service, &count);
    json_t *array = json_array();
    bool done = edges && array;

    for (size_t i = 0; done && i < count; i++)
        done = json_array_append_new(array, edge_json(report, &edges[i])) == 0;
    free(edges);
    return json_object_set_new(json, "edges", array) == 0 && done;
}

static bool add_accounts(json_t *json, const struct report *report)
{
    json_t *services = json_object(), *only = json_object();

    for (int i = 0; i < STAT_SERVICES_MAX; i++) {
        const struct report_service *service = &report->services[i];

        if (service->account)
            json_object_set(services, service->name, service->account);
        if (service->account && *service->only)
            json_object_set_new(only, service->name, json_string(service->only));
    }
    return (json_object_set_new(json, "services", services) |
            json_object_set_new(json, "only", only)) == 0;
}

static bool add_live(json_t *json, const struct report *report)
{
    return json_object_set_new(json, "time", json_time(wall_clock_ns())) == 0 &&
           json_object_set_new(json, "sources", integer(report->sources)) == 0 &&
           json_object_set_new(json, "traces_open", integer(report->traces.open)) == 0 &&
           json_object_set_new(json, "traces_early", integer(report->traces.early)) == 0 &&
           add_accounts(json, report);
}

bool print_json(const struct report *report, const struct stat_options *options)
{
    json_t *json = json_pack("{s:o, s:o, s:o}", "seconds", rounded(report->seconds), "spans",
                             integer(report->spans), "traces", integer(report->traces.complete));
    const bool done = json && (!report->is_live || add_live(json, report)) &&
                      add_rows(json, report, options) && add_edges(json, report, options) &&
                      json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;

    json_decref(json);
    putchar('\n');
    return done;
}
