/*
 * The report as a table that fits the terminal, or as one line of JSON: see blkin-stat(1).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "report.h"

#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/base/date.h"
#include "tools/base/totals.h"
#include "tools/base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LABEL_WISH 24 /* columns are hidden before the label becomes narrower than this */
#define CELL_WIDTH 7
#define COLUMNS    (sizeof(columns_of_table) / sizeof(columns_of_table[0]))

struct stat_table {
    const struct report *report;
    size_t label;
    int detail; /* the highest detail of shown columns */
    double self_sum;
};

/* ---- cells: six characters at most; counts below a million are exact */

static struct figure count_cell(uint64_t value)
{
    struct figure figure;

    if (value >= 1000000)
        return figure_number((double)value);
    snprintf(figure.text, sizeof(figure.text), "%" PRIu64, value);
    return figure;
}

/* ---- columns */

static struct figure spans_cell(const struct stat_table *table, const struct statistics_row *row)
{
    (void)table;
    return count_cell(row->spans);
}

static struct figure rate_cell(const struct stat_table *table, const struct statistics_row *row)
{
    const struct report *report = table->report;

    return report->seconds > 0 ? figure_number(report_rate(report, row->spans))
                               : (struct figure){"-"};
}

static struct figure errors_cell(const struct stat_table *table, const struct statistics_row *row)
{
    (void)table;
    return count_cell(row->errors);
}

static struct figure share_cell(const struct stat_table *table, const struct statistics_row *row)
{
    struct figure figure = {"-"};

    if (table->self_sum > 0)
        snprintf(figure.text, sizeof(figure.text), "%.1f", row->self.sum * 100 / table->self_sum);
    return figure;
}

static const struct column {
    const char *title;
    int detail; /* 0: on any terminal; 1: on one of 80 columns; 2: on a wide one */
    struct figure (*cell)(const struct stat_table *table, const struct statistics_row *row);
    size_t histogram; /* the histogram of a column without cell() */
    double q;
} columns_of_table[] = {
#define DURATION offsetof(struct statistics_row, duration)
#define SELF     offsetof(struct statistics_row, self)
    {"spans", 2, spans_cell, 0, 0},   {"rate/s", 0, rate_cell, 0, 0},
    {"errors", 0, errors_cell, 0, 0}, {"p50", 0, NULL, DURATION, 0.5},
    {"p90", 1, NULL, DURATION, 0.9},  {"p99", 0, NULL, DURATION, 0.99},
    {"max", 0, NULL, DURATION, 1},    {"self50", 2, NULL, SELF, 0.5},
    {"self90", 2, NULL, SELF, 0.9},   {"self99", 0, NULL, SELF, 0.99},
    {"selfmx", 2, NULL, SELF, 1},     {"self%", 1, share_cell, 0, 0},
};

/* ---- lines */

static size_t label_columns(const struct operation *row)
{
    return columns(row->service) + 2 + columns(row->name);
}

static size_t put_label(const struct stat_table *table, const struct operation *row)
{
    const size_t half = table->label / 2;
    size_t taken;

    if (statistics_is_other(row->row))
        return put_text("(all other names)", table->label);
    taken = columns(row->service) + 2 < half ? columns(row->service) : half - 2;
    taken = put_text(row->service, label_columns(row) > table->label ? taken : table->label);
    fputs(": ", stdout);
    return taken + 2 + put_text(row->name[0] ? row->name : "(no name)", table->label - taken - 2);
}

static void put_cells(const struct stat_table *table, const struct statistics_row *row)
{
    for (size_t i = 0; i < COLUMNS; i++) {
        const struct column *column = &columns_of_table[i];
        const void *histogram = (const char *)row + column->histogram;

        if (column->detail <= table->detail)
            printf("%*s", CELL_WIDTH,
                   (column->cell ? column->cell(table, row)
                                 : figure_quantile(histogram, column->q, FIGURE_CELL))
                       .text);
    }
    putchar('\n');
}

/* Prints the operations beyond the screen as one row. Returns false when out of memory. */
static bool put_rest(const struct stat_table *table, const struct operation *rows, size_t count)
{
    struct statistics_row rest = {.spans = 0};
    const bool done = operations_sum(rows, count, &rest);
    char label[64];

    snprintf(label, sizeof(label), "(%zu more)", count);
    put_spaces(table->label - put_text(label, table->label));
    put_cells(table, &rest);
    histogram_clear(&rest.duration);
    histogram_clear(&rest.self);
    return done;
}

/* Prints the whole text. Returns the number of lines. */
static size_t put_whole(const char *text, size_t width)
{
    fputs(text, stdout);
    putchar('\n');
    return *text ? (strlen(text) + width - 1) / width : 1;
}

static size_t put_time_and_totals(const struct report *report, size_t width)
{
    char text[512];
    size_t length = 0;
    uint64_t errors = 0;
    const time_t now = time(NULL);
    struct tm local;

    for (size_t i = 0; i < statistics_size(report->statistics, STATISTICS_ROWS); i++)
        errors += statistics_at(report->statistics, STATISTICS_ROWS, i)->errors;
    if (report->is_live && localtime_r(&now, &local))
        length = strftime(text, sizeof(text), "%H:%M:%S  ", &local);
    length += (size_t)snprintf(
        text + length, sizeof(text) - length,
        "%" PRIu64 " span%s in %.1f s, %" PRIu64 " with an error; %" PRIu64 " trace%s",
        report->spans, report->spans == 1 ? "" : "s", report->seconds, errors,
        report->traces.complete, report->traces.complete == 1 ? "" : "s");
    if (report->is_live)
        snprintf(text + length, sizeof(text) - length, "; %zu source%s", report->sources,
                 report->sources == 1 ? "" : "s");
    return put_whole(text, width);
}

static size_t put_early(const struct report *report, size_t width)
{
    char text[512];

    if (!report->traces.early)
        return 0;
    snprintf(text, sizeof(text),
             "%" PRIu64 " traces did not fit into memory until they were complete: their self "
             "times may be too long",
             report->traces.early);
    return put_whole(text, width);
}

static size_t put_account(const struct report_service *service, size_t width)
{
    char line[COUNTS_LINE_MAX + 256];
    const int length = snprintf(line, 256, "%s%s%s%s: ", service->name, *service->only ? " (" : "",
                                service->only, *service->only ? " only)" : "");
    struct counts counts;

    memset(&counts, 0, sizeof(counts));
    counts_read(service->account, &counts);
    counts_line(&counts, LINE_SHORT, line + length);
    return put_whole(line, width);
}

static size_t put_head(const struct report *report, size_t width)
{
    size_t lines = put_time_and_totals(report, width) + put_early(report, width);

    for (int i = 0; i < STAT_SERVICES_MAX; i++) {
        if (report->services[i].account)
            lines += put_account(&report->services[i], width);
    }
    putchar('\n');
    return lines + 1;
}

static size_t width_of_cells(int detail)
{
    size_t width = 0;

    for (size_t i = 0; i < COLUMNS; i++)
        width += columns_of_table[i].detail <= detail ? CELL_WIDTH : 0;
    return width;
}

static struct stat_table layout(const struct report *report, const struct operation *rows,
                                size_t count, size_t width)
{
    struct stat_table table = {report, LABEL_WISH, 2, 0};
    size_t room;

    for (size_t i = 0; i < statistics_size(report->statistics, STATISTICS_ROWS); i++)
        table.self_sum += statistics_at(report->statistics, STATISTICS_ROWS, i)->self.sum;
    while (table.detail > 0 && width_of_cells(table.detail) + LABEL_WISH > width)
        table.detail--;
    room = width - width_of_cells(table.detail);
    for (size_t i = 0; i < count; i++)
        table.label = label_columns(&rows[i]) > table.label ? label_columns(&rows[i]) : table.label;
    if (table.label > room)
        table.label = room;
    return table;
}

bool print_table(const struct report *report, const struct stat_options *options)
{
    const struct screen seen = screen();
    const size_t width = options->width ? options->width : seen.width;
    size_t count, shown, room = SIZE_MAX;
    struct operation *rows =
        operations(report->statistics, STATISTICS_ROWS, options->order, options->service, &count);
    struct stat_table table;
    bool done = rows != NULL;

    if (!done)
        return false;
    if (report->is_live && seen.rows)
        fputs("\033[H\033[2J", stdout);
    shown = put_head(report, width) + 1;
    if (report->is_live && seen.rows)
        room = seen.rows > shown + 3 ? seen.rows - shown - 1 : 2;
    shown = count <= room ? count : room - 1;
    table = layout(report, rows, count, width);
    put_spaces(table.label - put_text("service: span", table.label));
    for (size_t i = 0; i < COLUMNS; i++) {
        if (columns_of_table[i].detail <= table.detail)
            printf("%*s", CELL_WIDTH, columns_of_table[i].title);
    }
    putchar('\n');
    for (size_t i = 0; i < shown; i++) {
        put_spaces(table.label - put_label(&table, &rows[i]));
        put_cells(&table, rows[i].row);
    }
    if (shown < count)
        done = put_rest(&table, rows + shown, count - shown);
    if (report->is_live && !seen.rows)
        putchar('\n');
    free(rows);
    return done;
}

/* ---- JSON */

/* Rounds to three digits after the point. */
static json_t *rounded(double value)
{
    return json_real(round(value * 1000) / 1000);
}

static json_t *row_json(const struct report *report, enum statistics_kind kind,
                        const struct operation *operation)
{
    const struct statistics_array *keys = &statistics_arrays[kind];
    const struct statistics_row *row = operation->row;

    return json_pack("{s:s, s:s, s:I, s:o, s:I, s:o, s:o*, s:o*}", keys->first, operation->service,
                     keys->second, operation->name, keys->count, (json_int_t)row->spans, "rate",
                     rounded(report_rate(report, row->spans)), "errors", (json_int_t)row->errors,
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

bool print_json(const struct report *report, const struct stat_options *options)
{
    json_t *json =
        json_pack("{s:o, s:I, s:I}", "seconds", rounded(report->seconds), "spans",
                  (json_int_t)report->spans, "traces", (json_int_t)report->traces.complete);
    json_t *live =
        json_pack("{s:o, s:I, s:I, s:I}", "time", json_time(wall_clock_ns()), "sources",
                  (json_int_t)report->sources, "traces_open", (json_int_t)report->traces.open,
                  "traces_early", (json_int_t)report->traces.early);
    const bool done =
        json &&
        (!report->is_live || (json_object_update(json, live) == 0 && add_accounts(json, report))) &&
        add_rows(json, report, options, STATISTICS_ROWS) &&
        add_rows(json, report, options, STATISTICS_EDGES) &&
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15)) == 0;

    json_decref(json);
    json_decref(live);
    putchar('\n');
    return done;
}
