/*
 * What all workers have counted, for Prometheus.
 *
 * Of exponential histograms it makes classic ones, whose bounds are powers of two in ns: these are
 * bounds of the exponential ones too, so each count is exact.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "merged.h"

#include "babeltrace-plugin/base/label.h"
#include "babeltrace-plugin/hosts/fleet_page.h"

#include <inttypes.h>
#include <string.h>

/* From 2^14 ns, 16 us, to 2^35 ns, 34 s. */
#define FIRST_BOUND 14
#define LAST_BOUND  35

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
        print(page, "%s_bucket{", name);
        print_string(page, shown);
        print(page, ",le=\"%.15g\"} %" PRIu64 "\n", (double)(UINT64_C(1) << bound) / 1e9, passed);
    }
    print(page, "%s_bucket{", name);
    print_string(page, shown);
    print(page, ",le=\"+Inf\"} %" PRIu64 "\n", histogram->count);
    print(page, "%s_sum{", name);
    print_string(page, shown);
    print(page, "} %.17g\n", histogram->sum / 1e9);
    print(page, "%s_count{", name);
    print_string(page, shown);
    print(page, "} %" PRIu64 "\n", histogram->count);
}

static void print_head(struct printer *page, const char *name, const char *type, const char *help)
{
    print(page, "# HELP %s %s\n", name, help);
    print(page, "# TYPE %s %s\n", name, type);
}

static void print_count(struct printer *page, const char *name, const char *shown, const char *more,
                        uint64_t count)
{
    print(page, "%s{", name);
    print_string(page, shown);
    print(page, "%s} %" PRIu64 "\n", more, count);
}

/* ---- rows and edges -------------------------------------------------------------------------- */

#define ROW(member)  false, offsetof(struct statistics_row, member)
#define EDGE(member) true, offsetof(struct statistics_edge, member)

static const struct family {
    const char *name, *help;
    bool is_histogram;
    bool is_edge;
    size_t offset; /* of a histogram or a count */
} families[] = {
    {"traces_spanmetrics_calls_total", "Spans, by service and name.", false, ROW(spans)},
    {"traces_spanmetrics_latency", "Durations of spans in seconds.", true, ROW(duration)},
    {"blkin_self_time_seconds", "Durations of spans without those of their children, in seconds.",
     true, ROW(self)},
    {"traces_service_graph_request_total", "Calls of one service by another one.", false,
     EDGE(calls)},
    {"traces_service_graph_request_failed_total", "Of these, those that have failed.", false,
     EDGE(errors)},
    {"traces_service_graph_request_server_seconds", "How long the called service took, in seconds.",
     true, EDGE(duration)},
};

/* One for which there was no room has a name, too. */
static void print_name(struct printer *text, const char *label, const struct names *names,
                       uint32_t id)
{
    print_label(text, label, id == NAMES_OTHER ? text_of("(other)") : names_text(names, id));
}

/* What all lines of a row or an edge have. NULL: out of memory. */
static char *labels_of(const struct names *names, const struct statistics_row *row,
                       const struct statistics_edge *edge)
{
    struct printer text = {0};

    print_name(&text, row ? "service" : "client", names, row ? row->service : edge->caller);
    print_string(&text, ",");
    print_name(&text, row ? "span_name" : "server", names, row ? row->name : edge->callee);
    return print_end(&text);
}

static void print_one(struct printer *page, const struct merged *merged,
                      const struct family *family, size_t i)
{
    const struct statistics_edge *edge =
        family->is_edge ? statistics_edge(merged->statistics, i) : NULL;
    const struct statistics_row *row = edge ? NULL : statistics_row(merged->statistics, i);
    const void *member = (edge ? (const char *)edge : (const char *)row) + family->offset;
    char *shown = labels_of(merged->names, row, edge);
    uint64_t count, errors;

    if (!shown) {
        page->has_failed = true;
    } else if (family->is_histogram) {
        print_histogram(page, family->name, shown, member);
    } else {
        memcpy(&count, member, sizeof(count));
        errors = row && row->errors < count ? row->errors : count;
        if (row) {
            print_count(page, family->name, shown, ",status_code=\"STATUS_CODE_UNSET\"",
                        count - errors);
            print_count(page, family->name, shown, ",status_code=\"STATUS_CODE_ERROR\"", errors);
        } else {
            print_count(page, family->name, shown, "", count);
        }
    }
    free(shown);
}

static void print_statistics(struct printer *page, const struct merged *merged)
{
    for (size_t k = 0; k < sizeof(families) / sizeof(families[0]); k++) {
        const struct family *family = &families[k];
        const size_t count = family->is_edge ? statistics_edges(merged->statistics)
                                             : statistics_rows(merged->statistics);

        print_head(page, family->name, family->is_histogram ? "histogram" : "counter",
                   family->help);
        for (size_t i = 0; i < count; i++)
            print_one(page, merged, family, i);
    }
}

/* ---- workers --------------------------------------------------------------------------------- */

static void print_worker(struct printer *page, const struct work_counter *counter,
                         const char *suffix, const struct merged_worker *worker)
{
    print(page, "blkin_work_%s%s{", counter->name, suffix);
    print_label(page, "worker", text_of(worker->instance));
    if (counter->kind == WORK_RATIO)
        print(page, "} %.6g\n", work_counter_ratio(counter, &worker->counts));
    else
        print(page, "} %" PRIu64 "\n", work_counter_value(counter, &worker->counts));
}

/* How it is with a worker that is not there, nobody knows. */
static void print_counter(struct printer *page, const struct merged *merged,
                          const struct work_counter *counter, int64_t now_ns)
{
    const char *suffix = counter->kind == WORK_COUNTER ? "_total" : "";

    print(page, "# HELP blkin_work_%s%s %s\n", counter->name, suffix, counter->help);
    print(page, "# TYPE blkin_work_%s%s %s\n", counter->name, suffix,
          counter->kind == WORK_COUNTER ? "counter" : "gauge");
    for (size_t i = 0; i < merged->worker_count; i++) {
        const struct merged_worker *worker = &merged->workers[i];

        if (counter->kind == WORK_COUNTER || worker_is_there(worker, now_ns))
            print_worker(page, counter, suffix, worker);
    }
}

static void print_workers(struct printer *page, const struct merged *merged, int64_t now_ns)
{
    size_t there = 0;

    for (size_t i = 0; i < merged->worker_count; i++)
        there += worker_is_there(&merged->workers[i], now_ns);
    print_head(page, "blkin_work_workers", "gauge", "Workers that were heard of just now.");
    print(page, "blkin_work_workers %zu\n", there);
    for (size_t i = 0; i < work_counters_count; i++)
        print_counter(page, merged, &work_counters[i], now_ns);
}

static void print_root(struct printer *page, const struct merged *merged)
{
    const struct {
        const char *name, *type, *help;
        double value;
    } figures[] = {
        {"blkin_work_root_messages_total", "counter", "Messages of deltas that were read.",
         (double)merged->messages},
        {"blkin_work_root_refused_total", "counter", "Of these, those that are no deltas.",
         (double)merged->refused},
        {"blkin_work_root_gaps_total", "counter",
         "Times that the topic had lost what was not read yet.", (double)merged->gaps},
        {"blkin_work_root_rows", "gauge",
         "Services and names that are counted by themselves, 4096 at most.",
         (double)statistics_rows(merged->statistics)},
        {"blkin_work_root_edges", "gauge",
         "Pairs of services that are counted by themselves, 4096 at most.",
         (double)statistics_edges(merged->statistics)},
        {"blkin_work_root_time_seconds", "gauge",
         "Up to when deltas were read, since 1970; 0 before any was.", (double)merged->to_ns / 1e9},
    };

    for (size_t i = 0; i < sizeof(figures) / sizeof(figures[0]); i++) {
        print_head(page, figures[i].name, figures[i].type, figures[i].help);
        print(page, "%s %.15g\n", figures[i].name, figures[i].value);
    }
}

char *merged_page(const struct merged *merged, int64_t now_ns)
{
    struct printer page = {0};

    print_root(&page, merged);
    print_workers(&page, merged, now_ns);
    print_statistics(&page, merged);
    fleet_page(&page, merged->fleet, now_ns);
    return print_end(&page);
}
