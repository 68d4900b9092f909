/*
 * The sum of workers' deltas: its bounds, its document, and its page for Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "counting.h"
#include "tools/merged/merged.h"

#define MERGED_NOW     (INT64_C(1790000000) * SECOND)
#define MERGED_WORKERS 3

/* ---- workers --------------------------------------------------------------------------------- */

struct merged_message {
    char *data;
    size_t length;
    int64_t log_ns;
};

struct messages {
    struct merged_message all[4096];
    size_t count;
    int64_t log_ns;
};

static struct messages messages;

static bool keep_message(void *context, const char *data, size_t length)
{
    struct messages *kept = context;

    kept->all[kept->count].data = malloc(length);
    memcpy(kept->all[kept->count].data, data, length);
    kept->all[kept->count].length = length;
    kept->all[kept->count].log_ns = kept->log_ns;
    kept->count++;
    return true;
}

static void forget_messages(void)
{
    for (size_t i = 0; i < messages.count; i++)
        free(messages.all[i].data);
    messages.count = 0;
}

struct counting_worker {
    struct names *names;
    struct statistics *statistics;
    struct deltas_head head;
};

static void begin_worker(struct counting_worker *worker, const char *instance)
{
    *worker = (struct counting_worker){.names = names_new(10000, 1 << 20)};
    worker->statistics = statistics_new(worker->names);
    (void)snprintf(worker->head.instance, sizeof(worker->head.instance), "%s", instance);
}

static void end_worker(struct counting_worker *worker)
{
    statistics_free(worker->statistics);
    names_free(worker->names);
}

static void commit(struct counting_worker *worker, int64_t now_ns)
{
    worker->head.start_ns = now_ns - SECOND;
    worker->head.end_ns = now_ns;
    messages.log_ns = now_ns;
    CHECK(deltas_write(&worker->head, worker->statistics, keep_message, &messages));
    statistics_begin_period(worker->statistics);
    worker->head.counts = (struct work_counts){.busy = worker->head.counts.busy};
}

static struct merged *merge(void)
{
    struct merged *merged = merged_new();
    struct error error;

    for (size_t i = 0; i < messages.count; i++)
        CHECK(merged_add_message(merged, messages.all[i].data, messages.all[i].length,
                                 messages.all[i].log_ns, &error));
    return merged;
}

/* ---- the document ---------------------------------------------------------------------------- */

/* Makes the messages of some workers. test-root.py compares the sum of workers' messages with the
 * counts of one worker that has all spans. */
static void count_all(void)
{
    struct counting_worker workers[MERGED_WORKERS];

    for (int i = 0; i < MERGED_WORKERS; i++)
        begin_worker(&workers[i], (const char *const[]){"1", "2", "3"}[i]);
    for (int64_t second = 0; second < 20; second++) {
        for (int i = 0; i < 500; i++) {
            const struct one_span span = some_span();
            struct counting_worker *worker = &workers[dice(MERGED_WORKERS)];

            CHECK(count_span(worker->statistics, worker->names, &span));
            worker->head.counts.spans_counted++;
        }
        for (int i = 0; i < MERGED_WORKERS; i++) {
            workers[i].head.counts.busy = (double)second;
            commit(&workers[i], MERGED_NOW + second * SECOND);
        }
    }
    for (int i = 0; i < MERGED_WORKERS; i++)
        end_worker(&workers[i]);
}

/* A document reads back the same, and can be added to. */
TEST(test_document)
{
    struct merged *merged, *read = merged_new();
    char *text, *again;
    json_t *json;
    struct error error = {""};

    count_all();
    merged = merge();
    text = merged_document(merged, MERGED_NOW);
    json = json_loads(text, 0, NULL);
    CHECK(merged->messages == messages.count && merged->refused == 0);
    CHECK(merged->from_ns == MERGED_NOW - SECOND && merged->to_ns == MERGED_NOW + 19 * SECOND);
    CHECK(merged->worker_count == MERGED_WORKERS && merged->workers[2].counts.busy == 19);
    CHECK(worker_is_there(&merged->workers[0], MERGED_NOW + 25 * SECOND));
    CHECK(!worker_is_there(&merged->workers[0], MERGED_NOW + 30 * SECOND));
    CHECK(merged_is_document(json));
    CHECK(json_integer_value(json_object_get(json, "spans")) == 20 * 500);
    CHECK(merged_add_document(read, json, &error));
    CHECK_TEXT(error.text, "");
    again = merged_document(read, MERGED_NOW);
    CHECK_TEXT(again, text);
    free(again);
    CHECK(merged_add_document(read, json, &error));
    CHECK(statistics_at(read->statistics, STATISTICS_ROWS, 0)->spans ==
          2 * statistics_at(merged->statistics, STATISTICS_ROWS, 0)->spans);
    json_decref(json);
    free(text);
    merged_free(merged);
    merged_free(read);
}

static void check_refused(const char *text, const char *expected)
{
    struct merged *merged = merged_new();
    json_t *json = json_loads(text, 0, NULL);
    struct error error = {""};

    CHECK(!merged_add_document(merged, json, &error));
    CHECK(strstr(error.text, expected) != NULL);
    json_decref(json);
    merged_free(merged);
}

TEST(test_wrong_documents)
{
    check_refused("[]", "expected a document");
    check_refused("{\"blkin\": \"spans\"}", "expected a document");
    check_refused("{\"blkin\": \"statistics\", \"scale\": 7, \"rows\": [1]}",
                  "\"rows\", element 0");
    check_refused("{\"blkin\": \"statistics\", \"scale\": 7, \"rows\": [{\"duration\": "
                  "{\"buckets\": [99999999, 1]}}]}",
                  "\"rows\", element 0");
    check_refused("{\"blkin\": \"statistics\", \"scale\": 7, \"workers\": [{}]}",
                  "\"workers\", element 0");
}

/* ---- refused messages ------------------------------------------------------------------------ */

TEST(test_foreign_messages)
{
    struct merged *merged = merged_new();
    struct error error;

    CHECK(merged_add_message(merged, "not a message", 13, MERGED_NOW, &error));
    CHECK(error.text[0] != '\0');
    CHECK(merged_add_message(merged, "", 0, MERGED_NOW, &error));
    CHECK(merged->messages == 2 && merged->refused == 2);
    /* changed bits: any counts are possible, but nothing breaks */
    for (int i = 0; i < 60; i++) {
        const size_t which = dice(messages.count);
        char *data = messages.all[which].data;
        const size_t at = dice(messages.all[which].length);
        const char before = data[at];

        data[at] ^= (char)(1U << dice(8));
        CHECK(merged_add_message(merged, data, dice(8) ? messages.all[which].length : at,
                                 MERGED_NOW, &error));
        data[at] = before;
    }
    merged_free(merged);
}

/* Numbers that JSON does not have: the document is valid all the same; if not, a restart would lose
 * all. */
TEST(test_foreign_numbers)
{
    struct merged *merged, *again = merged_new();
    struct statistics_row *row;
    struct counting_worker worker;
    struct error error = {""};
    json_t *json;
    char *text;

    forget_messages();
    begin_worker(&worker, "1");
    worker.head.counts = (struct work_counts){
        .spans_counted = UINT64_MAX, .busy = (double)NAN, .behind_s = (double)INFINITY};
    row = statistics_add(worker.statistics, STATISTICS_ROWS, names_id(worker.names, text_of("s")),
                         NAMES_NONE);
    row->spans = row->errors = UINT64_MAX - 1;
    CHECK(histogram_add(&row->duration, 5));
    row->duration.sum = (double)INFINITY;
    commit(&worker, MERGED_NOW);
    merged = merge();
    CHECK(merged->refused == 0);
    text = merged_document(merged, MERGED_NOW);
    json = json_loads(text, 0, NULL);
    CHECK(json && merged_add_document(again, json, &error));
    json_decref(json);
    free(text);
    end_worker(&worker);
    merged_free(merged);
    merged_free(again);
}

/* ---- bounds ---------------------------------------------------------------------------------- */

/* Checks the limit of series, with the calls of all services in them, and the number of services
 * without one. */
static void check_series(const struct merged *merged, size_t series)
{
    static const char calls[] = "\nblkin_traces_spanmetrics_calls_total{service=\"";
    char *page = merged_page(merged, series, MERGED_NOW);
    const size_t all = statistics_size(merged->statistics, STATISTICS_ROWS);
    size_t lines = 0, rows = 0;
    uint64_t counted = 0, spans = 0;
    const char *without;

    CHECK(page != NULL);
    for (const char *line = page; line; line = strchr(line + 1, '\n')) {
        const char *value = strncmp(line, calls, strlen(calls)) == 0 ? strstr(line, "} ") : NULL;

        lines +=
            strncmp(line, "\nblkin_traces_", 14) == 0 || strncmp(line, "\nblkin_self_", 12) == 0;
        rows += value != NULL;
        counted += value ? strtoull(value + 2, NULL, 10) : 0;
    }
    for (size_t i = 0; i < all; i++)
        spans += statistics_at(merged->statistics, STATISTICS_ROWS, i)->spans;
    CHECK(spans == 40000 && lines > 0 && lines <= series && counted == spans);
    CHECK(strstr(page, "service=\"(other)\",span_name=\"(other)\"") != NULL);
    without = strstr(page, "\nblkin_work_root_rows_without_series ");
    CHECK(without &&
          strtoull(strchr(without, ' '), NULL, 10) == (rows / 2 == all ? 0 : all + 1 - rows / 2));
    free(page);
}

/* Many services: the maximum of rows, and no span is missing. */
TEST(test_many_services)
{
    struct merged *merged = merged_new();
    char name[32];

    for (int i = 0; i < 40000; i++) {
        (void)snprintf(name, sizeof(name), "service-%d", i);
        statistics_add(merged->statistics, STATISTICS_ROWS, names_id(merged->names, text_of(name)),
                       NAMES_NONE)
            ->spans++;
    }
    CHECK(statistics_size(merged->statistics, STATISTICS_ROWS) <= STATISTICS_ROWS_MAX + 1);
    check_series(merged, 20000);
    check_series(merged, 1000);
    check_series(merged, 1000000);
    merged_free(merged);
}

/* Instances that come and go, as Kubernetes' pods do: few are kept, and no count is missing. */
TEST(test_many_workers)
{
    struct merged *merged = merged_new();
    uint64_t counted = 0;
    const struct work_counts counts = {.spans_counted = 10, .busy = 0.5};

    for (int i = 0; i < 5000; i++) {
        char name[32];

        (void)snprintf(name, sizeof(name), "pod-%d", i);
        merged_add_worker(merged, name, &counts, MERGED_NOW + i * SECOND);
    }
    CHECK(merged->worker_count == WORKERS_MAX);
    merged_add_worker(merged, "\x1b[2J", &counts, MERGED_NOW + 5000 * SECOND + WORKER_FORGET_NS);
    CHECK(merged->worker_count == 1);
    CHECK_TEXT(merged->workers[0].instance, "?[2J");
    for (size_t i = 0; i < merged->worker_count; i++)
        counted += merged->workers[i].counts.spans_counted;
    CHECK(counted + merged->forgotten.spans_counted == 50010);
    merged_free(merged);
}

/* ---- the page -------------------------------------------------------------------------------- */

/* Bounds are powers of two in ns: a value equal to a bound is not above it. */
TEST(test_page)
{
    static const char *const lines[] = {
        ("blkin_traces_spanmetrics_calls_total{service=\"a \\\"b\\\" \\\\ "
         "\xc3\xa9\xef\xbf\xbd\\n\","
         "span_name=\"read\",status_code=\"STATUS_CODE_ERROR\"} 1\n"),
        "span_name=\"read\",status_code=\"STATUS_CODE_UNSET\"} 4\n",
        "span_name=\"read\",le=\"1.6384e-05\"} 2\n",
        "span_name=\"read\",le=\"0.016777216\"} 2\n",
        "span_name=\"read\",le=\"0.033554432\"} 3\n",
        "span_name=\"read\",le=\"0.067108864\"} 4\n",
        "span_name=\"read\",le=\"+Inf\"} 5\n",
        "span_name=\"read\"} 100.067125249\n",
        "blkin_self_time_seconds_count{",
        "# TYPE blkin_traces_service_graph_request_server_seconds histogram\n",
        "blkin_traces_service_graph_request_total{client=\"(other)\",server=\"read\"} 7\n",
        "blkin_traces_service_graph_request_failed_total{client=\"(other)\",server=\"read\"} 2\n",
        "blkin_work_busy_ratio{worker=\"1\"} 0.25\n",
        "blkin_work_spans_counted_total{worker=\"1\"} 12\n",
        "blkin_work_spans_counted_total{worker=\"away\"} 3\n",
        "blkin_work_workers 1\n",
    };
    static const int64_t durations[] = {0, 16384, 33554432, 33554433, INT64_C(100000000000)};
    struct merged *merged = merged_new();
    const uint32_t read = names_id(merged->names, text_of("read"));
    struct statistics_row *row =
        statistics_add(merged->statistics, STATISTICS_ROWS,
                       names_id(merged->names, text_of("a \"b\" \\ \xc3\xa9\xc3\n")), read);
    struct statistics_row *edge =
        statistics_add(merged->statistics, STATISTICS_EDGES, NAMES_OTHER, read);
    const struct work_counts counts = {.spans_counted = 12, .busy = 0.25};
    const struct work_counts of_away = {.spans_counted = 3, .busy = 0.75};
    char *page;

    row->spans = 5;
    row->errors = 1;
    edge->calls = 7;
    edge->errors = 2;
    for (size_t i = 0; i < sizeof(durations) / sizeof(durations[0]); i++)
        CHECK(histogram_add(&row->duration, durations[i]));
    merged_add_worker(merged, "1", &counts, MERGED_NOW);
    merged_add_worker(merged, "away", &of_away, MERGED_NOW - 20 * SECOND);
    page = merged_page(merged, 20000, MERGED_NOW);
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        CHECK(strstr(page, lines[i]) != NULL);
        if (!strstr(page, lines[i]))
            fprintf(stderr, "  %s", lines[i]);
    }
    CHECK(strstr(page, "blkin_work_busy_ratio{worker=\"away\"}") == NULL);
    free(page);
    merged_free(merged);
}

CHECK_MAIN_WITH((void)0, forget_messages())
