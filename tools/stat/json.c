/* The report as one line of JSON: see blkin-stat(1).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "babeltrace-plugin/account/statistics_document.h"
#include "tools/base/say.h"
#include "tools/trace/figures.h"

#include <math.h>
#include <stdlib.h>

/* Rounds to the digits that are significant. */
static json_t *rounded(double value)
{
    return json_real(round(value * 1000) / 1000);
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static json_t *row_json(const struct report *report, enum statistics_kind kind,
                        const struct operation *operation)
{
    const struct statistics_array *keys = &statistics_arrays[kind];
    const struct statistics_row *row = operation->row;

    return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o*, s:o*}", keys->first, operation->service,
                     keys->second, operation->name, keys->count, integer(row->spans), "rate",
                     rounded(report_rate(report, row->spans)), "errors", integer(row->errors),
                     "duration", figure_json(&row->duration, true), "self",
                     kind == STATISTICS_ROWS ? figure_json(&row->self, true) : NULL, "other",
                     statistics_is_other(row) ? json_true() : NULL);
}

static bool add_rows(json_t *json, const struct report *report, const struct stat_options *options,
                     enum statistics_kind kind)
{
    size_t count;
    struct operation *rows = operations(
        report->statistics, kind, kind == STATISTICS_ROWS ? options->order : OPERATIONS_BY_RATE,
        options->service, &count);
    json_t *array = json_array();
    bool done = rows && array;

    for (size_t i = 0; done && i < count; i++)
        done = json_array_append_new(array, row_json(report, kind, &rows[i])) == 0;
    free(rows);
    return json_object_set_new(json, statistics_arrays[kind].array, array) == 0 && done;
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
                      add_rows(json, report, options, STATISTICS_ROWS) &&
                      add_rows(json, report, options, STATISTICS_EDGES) &&
                      json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;

    json_decref(json);
    putchar('\n');
    return done;
}
