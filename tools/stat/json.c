/*
 * The report as one line of JSON, as blkin-stat(1) has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "tools/trace/figures.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>

/* Of more digits nobody would know what they mean. */
static json_t *rounded(double value)
{
    return json_real(round(value * 1000) / 1000);
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static double rate_of(const struct report *report, uint64_t count)
{
    return report->seconds > 0 ? (double)count * report_scale(report) / report->seconds : 0;
}

static json_t *row_json(const struct report *report, const struct operation *operation)
{
    const struct statistics_row *row = operation->row;
    json_t *json =
        json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "service", operation->service, "name",
                  operation->name, "spans", integer(row->spans), "rate",
                  rounded(rate_of(report, row->spans)), "errors", integer(row->errors), "duration",
                  figure_json(&row->duration, true), "self", figure_json(&row->self, true));

    if (json && statistics_row_is_other(row))
        json_object_set_new(json, "other", json_true());
    return json;
}

static json_t *edge_json(const struct report *report, const struct report_edge *named)
{
    const struct statistics_edge *edge = named->edge;
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "client", named->caller, "server",
                             named->callee, "calls", integer(edge->calls), "rate",
                             rounded(rate_of(report, edge->calls)), "errors", integer(edge->errors),
                             "duration", figure_json(&edge->duration, true));

    if (json && statistics_edge_is_other(edge))
        json_object_set_new(json, "other", json_true());
    return json;
}

static bool add_rows(json_t *json, const struct report *report, const struct options *options)
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

static bool add_edges(json_t *json, const struct report *report, const struct options *options)
{
    size_t count;
    struct report_edge *edges = report_edges(report, options, &count);
    json_t *array = json_array();
    bool done = edges && array;

    for (size_t i = 0; done && i < count; i++)
        done = json_array_append_new(array, edge_json(report, &edges[i])) == 0;
    free(edges);
    return json_object_set_new(json, "edges", array) == 0 && done;
}

static bool add_accounts(json_t *json, const struct report *report)
{
    json_t *services = json_object();

    for (int i = 0; i < SERVICES_MAX; i++) {
        if (report->accounts[i])
            json_object_set(services, report->account_names[i], (json_t *)report->accounts[i]);
    }
    return json_object_set_new(json, "services", services) == 0;
}

static json_t *now_text(void)
{
    struct timespec now;
    struct tm utc;
    char text[64];
    size_t length;

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &utc);
    length = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    snprintf(text + length, sizeof(text) - length, ".%03ldZ", now.tv_nsec / 1000000);
    return json_string(text);
}

static bool add_live(json_t *json, const struct report *report)
{
    return json_object_set_new(json, "time", now_text()) == 0 &&
           json_object_set_new(json, "taps", integer(report->taps)) == 0 &&
           json_object_set_new(json, "share", integer(report->share)) == 0 &&
           json_object_set_new(json, "passed", integer(report->passed)) == 0 &&
           json_object_set_new(json, "dropped", integer(report->dropped)) == 0 &&
           json_object_set_new(json, "traces_open", integer(report->traces.open)) == 0 &&
           json_object_set_new(json, "traces_early", integer(report->traces.early)) == 0 &&
           add_accounts(json, report);
}

bool print_json(const struct report *report, const struct options *options)
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
