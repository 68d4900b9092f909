/*
 * The report as one line of JSON, as blkin-stat(1) has it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

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

/* Of times in us. */
static json_t *distribution(const struct histogram *histogram)
{
    return json_pack("{s:o, s:o, s:I, s:I, s:I, s:I, s:I}", "count", integer(histogram->count),
                     "sum", json_real(histogram->sum), "min", (json_int_t)histogram->min, "p50",
                     (json_int_t)histogram_quantile(histogram, 0.5), "p90",
                     (json_int_t)histogram_quantile(histogram, 0.9), "p99",
                     (json_int_t)histogram_quantile(histogram, 0.99), "max",
                     (json_int_t)histogram->max);
}

static json_t *row_json(const struct report *report, const struct statistics_row *row)
{
    const double rate =
        report->seconds > 0 ? (double)row->spans * report_scale(report) / report->seconds : 0;
    json_t *json = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o}", "service", row->service, "name",
                             row->name, "spans", integer(row->spans), "rate", rounded(rate),
                             "errors", integer(row->errors), "duration",
                             distribution(&row->duration), "self", distribution(&row->self));

    if (json && row->is_other)
        json_object_set_new(json, "other", json_true());
    return json;
}

static bool add_rows(json_t *json, const struct report *report, const struct options *options)
{
    size_t count;
    const struct statistics_row **rows = report_rows(report, options, &count);
    json_t *array = json_array();
    bool done = rows && array;

    for (size_t i = 0; done && i < count; i++)
        done = json_array_append_new(array, row_json(report, rows[i])) == 0;
    free(rows);
    return json_object_set_new(json, "rows", array) == 0 && done;
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
                      add_rows(json, report, options) &&
                      json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;

    json_decref(json);
    putchar('\n');
    return done;
}
