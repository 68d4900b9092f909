/*
 * The workers' statistics for Prometheus. Converts exponential histograms to classic ones with
 * powers of two in ns as bounds. The exponential histograms have the same bounds, so each count is
 * exact.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include <inttypes.h>

/* Bounds from 2^14 ns (16 us) to 2^35 ns (34 s). */
#define FIRST_BOUND 14
#define LAST_BOUND  35

/* The number of series for a histogram, a row and an edge. */
#define HISTOGRAM_SERIES (LAST_BOUND - FIRST_BOUND + 1 + 3)
#define ROW_SERIES       (2 + 2 * HISTOGRAM_SERIES)
#define EDGE_SERIES      (2 + HISTOGRAM_SERIES)

/* Rows may use three quarters of the series, edges one quarter. */
static size_t rows_with_series(size_t series)
{
    return series / 4 * 3 / ROW_SERIES;
}

static size_t edges_with_series(size_t series)
{
    return series / 4 / EDGE_SERIES;
}

static size_t without_series(size_t count, size_t most)
{
    return count > most ? count - most : 0;
}

/* ---- labels ---------------------------------------------------------------------------------- */

/* Returns the name, or "(other)" for a name without room. */
static struct text label_text(const struct names *names, uint32_t id)
{
    return id == NAMES_OTHER ? text_of("(other)") : names_text(names, id);
}

/* Returns the labels of a row or an edge, for all of its lines. */
static char *labels(const struct names *names, const char *first, uint32_t first_id,
                    const char *second, uint32_t second_id)
{
    struct printer text = {0};

    print_label(&text, first, label_text(names, first_id));
    print_string(&text, ",");
    print_label(&text, second, label_text(names, second_id));
    return print_end(&text);
}

/* ---- histograms ------------------------------------------------------------------------------ */

static void print_histogram(struct printer *page, const char *name, const char *shown,
                            const struct histogram *histogram)
{
    struct histogram_bucket bucket = {0};
    uint64_t passed = histogram->zeros;
    bool is_there = histogram_next(histogram, 0, &bucket);

    for (int bound = FIRST_BOUND; bound <= LAST_BOUND; bound++) {
        for (; is_there && bucket.index < bound; is_there = histogram_next(histogram, 0, &bucket))
            passed += bucket.count;
        print(page, "%s_bucket{%s,le=\"%.15g\"} %" PRIu64 "\n", name, shown,
              (double)(UINT64_C(1) << bound) / 1e9, passed);
    }
    print(page, "%s_bucket{%s,le=\"+Inf\"} %" PRIu64 "\n", name, shown, histogram->count);
    print(page, "%s_sum{%s} %.17g\n", name, shown, histogram->sum / 1e9);
    print(page, "%s_count{%s} %" PRIu64 "\n", name, shown, histogram->count);
}

static void print_count(struct printer *page, const char *name, const char *shown, const char *more,
                        uint64_t count)
{
    print(page, "%s{%s%s} %" PRIu64 "\n", name, shown, more, count);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Each of the first rows has a series of its own for ever. All other rows share one series, so no
 * series ever falls. */
struct shown {
    const struct statistics_row **rows;
    char **labels;
    size_t count;
    struct statistics_row other;
};

static void shown_close(struct shown *shown)
{
    for (size_t i = 0; shown->labels && i < shown->count; i++)
        free(shown->labels[i]);
    free(shown->labels);
    free(shown->rows);
    histogram_clear(&shown->other.duration);
    histogram_clear(&shown->other.self);
}

static bool shown_add_other(struct shown *shown, const struct statistics_row *row)
{
    if (shown->other.service != NAMES_OTHER) {
        shown->other.service = shown->other.name = NAMES_OTHER;
        shown->rows[shown->count++] = &shown->other;
    }
    shown->other.spans += row->spans;
    shown->other.errors += row->errors < row->spans ? row->errors : row->spans;
    return histogram_merge(&shown->other.duration, &row->duration) &&
           histogram_merge(&shown->other.self, &row->self);
}

/* The caller calls shown_close() in any case. */
static bool shown_open(struct shown *shown, const struct merged *merged, enum statistics_kind kind,
                       size_t most)
{
    static const char *const keys[][2] = {
        [STATISTICS_ROWS] = {"service", "span_name"}, [STATISTICS_EDGES] = {"client", "server"}};
    const size_t count = statistics_size(merged->statistics, kind);

    *shown = (struct shown){.rows = calloc(count + 1, sizeof(const void *)),
                            .labels = calloc(count + 1, sizeof(char *))};
    if (!shown->rows || !shown->labels)
        return false;
    for (size_t i = 0; i < count; i++) {
        const struct statistics_row *row = statistics_at(merged->statistics, kind, i);

        if (i < most && !statistics_is_other(row))
            shown->rows[shown->count++] = row;
        else if (!shown_add_other(shown, row))
            return false;
    }
    for (size_t i = 0; i < shown->count; i++) {
        shown->labels[i] = labels(merged->names, keys[kind][0], shown->rows[i]->service,
                                  keys[kind][1], shown->rows[i]->name);
        if (!shown->labels[i])
            return false;
    }
    return true;
}

static void print_rows(struct printer *page, const struct merged *merged, size_t most)
{
    static const char calls[] = "blkin_traces_spanmetrics_calls_total";
    static const char latency[] = "blkin_traces_spanmetrics_latency";
    static const char self[] = "blkin_self_time_seconds";
    struct shown shown;

    page->has_failed |= !shown_open(&shown, merged, STATISTICS_ROWS, most);
    print_metric_head(page, calls, "counter", "Spans, by service and name.");
    for (size_t i = 0; !page->has_failed && i < shown.count; i++) {
        const struct statistics_row *row = shown.rows[i];
        const uint64_t errors = row->errors < row->spans ? row->errors : row->spans;

        print_count(page, calls, shown.labels[i], ",status_code=\"STATUS_CODE_UNSET\"",
                    row->spans - errors);
        print_count(page, calls, shown.labels[i], ",status_code=\"STATUS_CODE_ERROR\"", errors);
    }
    print_metric_head(page, latency, "histogram", "Durations of spans in seconds.");
    for (size_t i = 0; !page->has_failed && i < shown.count; i++)
        print_histogram(page, latency, shown.labels[i], &shown.rows[i]->duration);
    print_metric_head(page, self, "histogram",
                      "Durations of spans without those of their children, in seconds.");
    for (size_t i = 0; !page->has_failed && i < shown.count; i++)
        print_histogram(page, self, shown.labels[i], &shown.rows[i]->self);
    shown_close(&shown);
}

/* ---- edges ----------------------------------------------------------------------------------- */

static void print_edges(struct printer *page, const struct merged *merged, size_t most)
{
    static const char total[] = "blkin_traces_service_graph_request_total";
    static const char failed[] = "blkin_traces_service_graph_request_failed_total";
    static const char seconds[] = "blkin_traces_service_graph_request_server_seconds";
    struct shown shown;

    page->has_failed |= !shown_open(&shown, merged, STATISTICS_EDGES, most);
    print_metric_head(page, total, "counter", "Calls between two services.");
    for (size_t i = 0; !page->has_failed && i < shown.count; i++)
        print_count(page, total, shown.labels[i], "", shown.rows[i]->calls);
    print_metric_head(page, failed, "counter", "Calls between two services that failed.");
    for (size_t i = 0; !page->has_failed && i < shown.count; i++)
        print_count(page, failed, shown.labels[i], "", shown.rows[i]->errors);
    print_metric_head(page, seconds, "histogram", "How long the called service took, in seconds.");
    for (size_t i = 0; !page->has_failed && i < shown.count; i++)
        print_histogram(page, seconds, shown.labels[i], &shown.rows[i]->duration);
    shown_close(&shown);
}

/* ---- workers --------------------------------------------------------------------------------- */

static const char *suffix_of(const struct work_counter *counter)
{
    return counter->kind == WORK_COUNTER ? "_total" : "";
}

void work_counter_print_head(struct printer *page, const struct work_counter *counter)
{
    char name[96];

    (void)snprintf(name, sizeof(name), "blkin_work_%s%s", counter->name, suffix_of(counter));
    print_metric_head(page, name, counter->kind == WORK_COUNTER ? "counter" : "gauge",
                      counter->help);
}

void work_counter_print(struct printer *page, const struct work_counter *counter,
                        const char *instance, const struct work_counts *counts)
{
    print(page, "blkin_work_%s%s%s", counter->name, suffix_of(counter), instance ? "{" : "");
    if (instance)
        print_label(page, "worker", text_of(instance));
    print_string(page, instance ? "} " : " ");
    if (counter->kind == WORK_RATIO)
        print(page, "%.6g\n", work_counter_ratio(counter, counts));
    else
        print(page, "%" PRIu64 "\n", work_counter_value(counter, counts));
}

/* Leaves out the gauges of workers that are away. */
static void print_counter(struct printer *page, const struct merged *merged,
                          const struct work_counter *counter, int64_t now_ns)
{
    work_counter_print_head(page, counter);
    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];

        if (counter->kind == WORK_COUNTER || worker_is_there(worker, now_ns))
            work_counter_print(page, counter, worker->instance, &worker->counts);
    }
}

static void print_workers(struct printer *page, const struct merged *merged, int64_t now_ns)
{
    size_t there = 0;

    for (size_t i = 0; i < merged->worker_count; i++)
        there += worker_is_there(&merged->workers[i], now_ns);
    print_metric_head(page, "blkin_work_workers", "gauge",
                      "Workers that have sent deltas in the last 10 s.");
    print(page, "blkin_work_workers %zu\n", there);
    for (size_t i = 0; i < work_counters_count; i++)
        print_counter(page, merged, &work_counters[i], now_ns);
}

static void print_root(struct printer *page, const struct merged *merged, size_t series)
{
    const size_t rows = statistics_size(merged->statistics, STATISTICS_ROWS);
    const size_t edges = statistics_size(merged->statistics, STATISTICS_EDGES);
    const struct {
        const char *name, *type, *help;
        double value;
    } figures[] = {
        {"blkin_work_root_messages_total", "counter", "Messages of deltas that were read.",
         (double)merged->messages},
        {"blkin_work_root_refused_total", "counter", "Messages that were read and are not deltas.",
         (double)merged->refused},
        {"blkin_work_root_gaps_total", "counter",
         "How often the topic lost messages before the root read them.", (double)merged->gaps},
        {"blkin_work_root_rows", "gauge",
         "Services and names that are counted separately, 4096 at most.", (double)rows},
        {"blkin_work_root_edges", "gauge",
         "Pairs of services that are counted separately, 4096 at most.", (double)edges},
        {"blkin_work_root_rows_without_series", "gauge",
         "Rows that are in (other) on this page, because of page-series.",
         (double)without_series(rows, rows_with_series(series))},
        {"blkin_work_root_edges_without_series", "gauge",
         "Edges that are in (other) on this page, because of page-series.",
         (double)without_series(edges, edges_with_series(series))},
        {"blkin_work_root_time_seconds", "gauge",
         "Time of the last delta that was read, since 1970; 0: none was read.",
         (double)merged->to_ns / 1e9},
    };

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        print_metric_head(page, figures[i].name, figures[i].type, figures[i].help);
        print(page, "%s %.15g\n", figures[i].name, figures[i].value);
    }
}

char *merged_page(const struct merged *merged, size_t series, int64_t now_ns)
{
    struct printer page = {0};

    print_root(&page, merged, series);
    print_workers(&page, merged, now_ns);
    print_rows(&page, merged, rows_with_series(series));
    print_edges(&page, merged, edges_with_series(series));
    return print_end(&page);
}
