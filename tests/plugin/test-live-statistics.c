/*
 * Statistics that a running service makes while somebody asks for them: their bounds, and the
 * difference of two documents.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/statistics_document.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "check.h"

#include <jansson.h>
#include <stdlib.h>

static void add_span(struct live_statistics *live, uint64_t number, const char *name,
                     int64_t duration_ns)
{
    static const struct endpoint endpoint = {.service = {"osd", 3}};
    struct span span = {.trace_id = number % 80000 + 1,
                        .id = number + 1,
                        .endpoint = &endpoint,
                        .start_ns = 1000,
                        .end_ns = 1000 + duration_ns};

    CHECK(span_set_name(&span, text_of(name)));
    live_statistics_add(live, &span);
    free(span.log);
}

static json_t *document_of(const struct live_statistics *live)
{
    char *text = live_statistics_text(live);
    json_t *document = text ? json_loads(text, 0, NULL) : NULL;

    CHECK(document != NULL);
    free(text);
    return document;
}

static uint64_t sum_of(const json_t *document, const char *histogram, const char *key)
{
    const json_t *rows = json_object_get(document, "rows");
    uint64_t sum = 0;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);

        sum += statistics_count_at(histogram ? json_object_get(row, histogram) : row, key);
    }
    return sum;
}

/* More names than the limit, and traces that never end. */
TEST(test_statistics_bounds)
{
    struct live_statistics *live = live_statistics_new();
    json_t *document;
    char name[32];

    CHECK(live != NULL);
    for (uint64_t i = 0; i < 200000; i++) {
        (void)snprintf(name, sizeof(name), "name %llu", (unsigned long long)i);
        add_span(live, i, name, 1 + (int64_t)(i % 977));
    }
    document = document_of(live);
    CHECK(statistics_count_at(document, "spans") == 200000);
    CHECK(json_array_size(json_object_get(document, "rows")) == 4096);
    CHECK(sum_of(document, NULL, "spans") == 200000);
    CHECK(sum_of(document, "self", "count") < 200000);
    json_decref(document);
    live_statistics_close_traces(live);
    CHECK(live_statistics_advance(live, clock_ms()));
    document = document_of(live);
    CHECK(sum_of(document, "self", "count") == 200000);
    CHECK(statistics_count_at(document, "traces_open") == 0);
    json_decref(document);
    live_statistics_free(live);
}

/* Times of all lengths need more memory than the limit: the statistics begin again. */
TEST(test_statistics_begin_again)
{
    struct live_statistics *live = live_statistics_new();
    uint64_t spans = 0;
    char name[32];

    while (spans < 1000000 && live_statistics_advance(live, clock_ms())) {
        for (int i = 0; i < 4000; i++, spans++) {
            (void)snprintf(name, sizeof(name), "name %d", i);
            add_span(live, spans, name, INT64_C(1) << spans / 4000 % 60);
        }
    }
    CHECK(spans < 1000000);
    live_statistics_free(live);
}

/* A reader subtracts an earlier document. The difference has only the spans that were added
 * after it. */
TEST(test_difference)
{
    struct live_statistics *live = live_statistics_new();
    struct names *names = names_new(100, 10000);
    struct statistics *difference = statistics_new(names);
    const struct statistics_row *row;
    json_t *before, *after;
    struct error error;

    for (uint64_t i = 0; i < 1000; i++)
        add_span(live, 7, "read", 1000000 + (int64_t)i);
    before = document_of(live);
    add_span(live, 7, "read", 1000);
    add_span(live, 7, "read", 5000000);
    live_statistics_close_traces(live);
    after = document_of(live);
    CHECK(statistics_count_at(after, "traces") == 1);
    CHECK(statistics_read(difference, names, after, STATISTICS_ADD, &error));
    CHECK(statistics_read(difference, names, before, STATISTICS_REMOVE, &error));
    CHECK(statistics_size(difference, STATISTICS_ROWS) == 1);
    row = statistics_at(difference, STATISTICS_ROWS, 0);
    CHECK(row->spans == 2 && row->duration.count == 2 && row->duration.sum == 5001000);
    CHECK(row->duration.min == 1000 && row->duration.max == 5000000);
    /* Self times count when their trace closes, so the difference has those of all 1002 spans. */
    CHECK(row->self.count == 1002);
    /* The maximum of the later document is of an earlier span. So the difference only estimates the
     * maximum of the new span. */
    add_span(live, 7, "read", 100000);
    statistics_clear(difference);
    json_decref(before);
    before = document_of(live);
    CHECK(statistics_read(difference, names, before, STATISTICS_ADD, &error));
    CHECK(statistics_read(difference, names, after, STATISTICS_REMOVE, &error));
    row = statistics_at(difference, STATISTICS_ROWS, 0);
    CHECK(row->duration.count == 1 && row->duration.max > 99600 && row->duration.max < 100400);
    CHECK(row->duration.min == row->duration.max && row->self.count == 0 && row->self.max == 0);
    json_decref(before);
    json_decref(after);
    statistics_free(difference);
    names_free(names);
    live_statistics_free(live);
}

CHECK_MAIN
