/*
 * The model for tail sampling: names, histograms, statistics, rules, open traces and durations.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/duration.h"
#include "babeltrace-plugin/model/open_traces.h"
#include "babeltrace-plugin/model/tail.h"
#include "babeltrace-plugin/model/statistics.h"
#include "check.h"
#include "seed.h"

#include <math.h>
#include <stdlib.h>

/* ---- names */

TEST(test_names)
{
    struct names *names = names_new(1000, 20000);
    char text[32];

    CHECK(names_id(names, text_of("")) == NAMES_NONE);
    for (int round = 0; round < 2; round++) {
        for (uint32_t i = 0; i < 998; i++) {
            snprintf(text, sizeof(text), "name %u", i);
            CHECK(names_id(names, text_of(text)) == i + 2);
            CHECK_TEXT(names_text(names, i + 2).data, text);
        }
    }
    CHECK(names_id(names, (struct text){"name 1\0x", 8}) == NAMES_OTHER);
    CHECK(names_count(names) == 1000);
    CHECK(names_id(names, text_of("name 7")) == 9);
    CHECK_TEXT(names_text(names, NAMES_OTHER).data, "");
    names_clear(names);
    memset(text, 'x', sizeof(text));
    for (uint32_t i = 0; i < 1000; i++)
        CHECK(names_id(names, (struct text){text, 1 + i % sizeof(text)}) < 34);
    for (uint32_t i = 0; i < 700; i++) { /* of 33 bytes, with the NUL */
        memcpy(text, &i, sizeof(i));
        (void)names_id(names, (struct text){text, sizeof(text)});
    }
    CHECK(names_count(names) < 650);
    names_free(names);
}

/* ---- histograms */

static int64_t random_value(void)
{
    return (int64_t)((dice(UINT64_C(1) << 31) << 32 | dice(UINT64_C(1) << 31) << 1) >> dice(62));
}

/* Each value is in the bucket that the definition (a logarithm) gives. */
TEST(test_buckets)
{
    for (int n = 0; n < 60000; n++) {
        const int64_t value = n < 30000 ? n + 1 : random_value() + 1;
        struct histogram histogram = {0};
        struct histogram_bucket bucket = {0};

        CHECK(histogram_add(&histogram, value));
        CHECK(histogram_next(&histogram, HISTOGRAM_SCALE, &bucket));
        CHECK(bucket.count == 1);
        CHECK(bucket.index == (int)ceill(log2l((long double)value) * 128) - 1);
        CHECK(!histogram_next(&histogram, HISTOGRAM_SCALE, &bucket));
        histogram_clear(&histogram);
    }
}

/* Returns the last value of the bucket with this upper bound. The factor allows for the rounding of
 * doubles. */
static int64_t last_of(double upper)
{
    if (upper > 1e12)
        upper *= 1 - 1e-12;
    return upper < 9.2e18 ? (int64_t)upper : INT64_MAX;
}

static int by_value(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return (left > right) - (left < right);
}

/* Each scale counts the same values. A bucket is the sum of buckets of a finer scale. */
TEST(test_scales)
{
    static int64_t values[20000];
    struct histogram all = {0};
    uint64_t zeros = 0;

    for (int n = 0; n < 20000; n++) {
        values[n] = dice(50) ? random_value() : 0;
        zeros += values[n] == 0;
        CHECK(histogram_add(&all, values[n]));
    }
    qsort(values, 20000, sizeof(values[0]), by_value);
    for (int scale = -4; scale <= HISTOGRAM_SCALE; scale++) {
        struct histogram_bucket bucket = {0};
        struct histogram again = {0};
        uint64_t count = 0, up_to = zeros;
        int32_t last = INT32_MIN;

        while (histogram_next(&all, scale, &bucket)) {
            const double upper = exp2(ldexp((double)bucket.index + 1, -scale));

            while (up_to < 20000 && values[up_to] <= last_of(upper))
                up_to++;
            CHECK(bucket.index > last);
            CHECK(bucket.count == up_to - zeros - count);
            last = bucket.index;
            count += bucket.count;
            CHECK(histogram_add_bucket(&again, scale, &bucket));
        }
        CHECK(count == all.count - zeros);
        for (int at = 0; scale == HISTOGRAM_SCALE && at < HISTOGRAM_OCTAVES; at++)
            CHECK(!all.octaves[at] == !again.octaves[at] &&
                  (!all.octaves[at] || memcmp(all.octaves[at], again.octaves[at], 1024) == 0));
        histogram_clear(&again);
    }
    CHECK(!histogram_add_bucket(&all, 7, &(struct histogram_bucket){-2, 1}));
    CHECK(!histogram_add_bucket(&all, 0, &(struct histogram_bucket){INT32_MAX, 1}));
    CHECK(!histogram_add_bucket(&all, 99, &(struct histogram_bucket){0, 1}));
    CHECK(histogram_add_bucket(&all, 20, &(struct histogram_bucket){1 << 20, 1}));
    histogram_clear(&all);
}

TEST(test_quantiles)
{
    static int64_t values[5000];
    struct histogram halves[2] = {{0}, {0}};

    for (int n = 0; n < 5000; n++) {
        values[n] = (int64_t)dice(UINT64_C(1) << (1 + n % 31));
        CHECK(histogram_add(&halves[n % 2], values[n]));
    }
    CHECK(histogram_merge(&halves[0], &halves[1]));
    qsort(values, 5000, sizeof(values[0]), by_value);
    CHECK(halves[0].count == 5000 && halves[0].min == values[0] && halves[0].max == values[4999]);
    for (int percent = 1; percent <= 100; percent++) {
        const int64_t exact = values[(int)ceil(percent / 100.0 * 5000) - 1];
        const int64_t got = histogram_quantile(&halves[0], percent / 100.0);

        CHECK(llabs(got - exact) <= (exact < 185 ? 0 : (exact * 3 + 999) / 1000));
    }
    histogram_halve(&halves[0]);
    CHECK(halves[0].count > 1500 && halves[0].count <= 2500);
    histogram_clear(&halves[0]);
    histogram_clear(&halves[1]);
}

/* ---- statistics */

/* Makes a trace of a client's span and a server's span. The names are given by their numbers. */
static void make_trace(struct trace_model *model, uint32_t client, uint32_t server, uint32_t name,
                       int64_t duration, bool is_error)
{
    const struct trace_span spans[] = {
        {.id = 2,
         .parent_id = 1,
         .service = server,
         .name = name,
         .kind = SPAN_SERVER,
         .start_ns = 1002,
         .duration_ns = duration / 2,
         .is_error = is_error},
        {.id = 1,
         .service = client,
         .name = name,
         .kind = SPAN_CLIENT,
         .start_ns = 1001,
         .duration_ns = duration},
    };

    trace_model_clear(model);
    CHECK(trace_model_add(model, &spans[0]) && trace_model_add(model, &spans[1]));
    CHECK(trace_model_link(model));
}

static uint32_t number_of(struct names *names, const char *what, uint64_t i)
{
    char text[32];

    snprintf(text, sizeof(text), "%s %u", what, (unsigned)i);
    return names_id(names, text_of(text));
}

/* More services than the limit: the rows stay bounded, and all spans and calls are counted. */
TEST(test_many)
{
    struct names *names = names_new(65536, 1 << 20);
    struct statistics *statistics = statistics_new(names);
    struct trace_model model = {0};
    const struct statistics_row *others;
    uint64_t spans = 0, calls = 0;

    for (uint32_t n = 0; n < 20000; n++) {
        make_trace(&model, number_of(names, "a", n), number_of(names, "b", n), 0, 10, false);
        CHECK(statistics_add_trace(statistics, &model));
    }
    CHECK(statistics_size(statistics, STATISTICS_ROWS) == STATISTICS_ROWS_MAX);
    CHECK(statistics_size(statistics, STATISTICS_EDGES) == STATISTICS_ROWS_MAX);
    for (size_t i = 0; i < STATISTICS_ROWS_MAX; i++) {
        CHECK(statistics_at(statistics, STATISTICS_ROWS, i)->index == i);
        spans += statistics_at(statistics, STATISTICS_ROWS, i)->spans;
        calls += statistics_at(statistics, STATISTICS_EDGES, i)->calls;
    }
    CHECK(spans == 40000 && calls == 20000);
    others = statistics_find_row(statistics, number_of(names, "a", 12345), 0);
    CHECK(others && statistics_is_other(others) && others->spans == 40000 - 4095);
    statistics_begin_period(statistics);
    CHECK(others->spans == 0 && others->ever == 40000 - 4095 && others->duration.count == 0 &&
          others->past.count == others->ever);
    statistics_clear(statistics);
    CHECK(statistics_size(statistics, STATISTICS_ROWS) == 0 &&
          statistics_find_row(statistics, 0, 0) == NULL);
    trace_model_destroy(&model);
    statistics_free(statistics);
    names_free(names);
}

/* ---- rules */

struct tail_sampler {
    struct names *names;
    struct statistics *statistics;
    struct trace_model model;
    struct tail_rules *rules;
};

static void begin(struct tail_sampler *sampling, const char *rules)
{
    struct error error = {""};

    *sampling = (struct tail_sampler){.names = names_new(1000, 100000)};
    sampling->statistics = statistics_new(sampling->names);
    sampling->rules = tail_rules_parse(text_of(rules), "F", &error);
    CHECK_TEXT(error.text, "");
}

static void end(struct tail_sampler *sampling)
{
    tail_rules_free(sampling->rules);
    statistics_free(sampling->statistics);
    names_free(sampling->names);
    trace_model_destroy(&sampling->model);
}

/* Returns the rule that fits a trace; "": none. Adds the trace to the statistics. */
static const char *why(struct tail_sampler *sampling, const char *server, const char *name,
                       int64_t duration, bool is_error)
{
    const struct tail_trace trace = {.model = &sampling->model, .trace_id = 1};
    const char *found;

    make_trace(&sampling->model, names_id(sampling->names, text_of("client")),
               names_id(sampling->names, text_of(server)), names_id(sampling->names, text_of(name)),
               duration, is_error);
    found = tail_rules_fit(sampling->rules, &trace, sampling->statistics);
    CHECK(statistics_add_trace(sampling->statistics, &sampling->model));
    return found ? found : "";
}

TEST(test_globs)
{
    struct tail_sampler s;

    begin(&s, "osd.[0-3]:wr* error\n\"osd 7:*two words\" > 1us\r\n :scrub > 3s # all services\n"
              "client > 2s\n> 1.5s\n");
    CHECK_TEXT(why(&s, "osd.2", "write", 10, true), "osd.[0-3]:wr* error");
    CHECK_TEXT(why(&s, "osd.2", "read", 10, true), "");
    CHECK_TEXT(why(&s, "osd.4", "write", 10, true), "");
    CHECK_TEXT(why(&s, "osd.2", "write", 10, false), "");
    CHECK_TEXT(why(&s, "osd 7", "has two words", 10000, false), "\"osd 7:*two words\" > 1us");
    CHECK_TEXT(why(&s, "osd 7", "two words", 2000, false), ""); /* the server's span takes half */
    CHECK_TEXT(why(&s, "any", "scrub", INT64_C(3000000001), false), ":scrub > 3s");
    CHECK_TEXT(why(&s, "any", "write", INT64_C(3000000000), false), "client > 2s");
    CHECK_TEXT(why(&s, "any", "write", INT64_C(1600000000), false), "> 1.5s");
    CHECK_TEXT(why(&s, "any", "write", INT64_C(1500000000), false), "");
    end(&s);
}

TEST(test_rare)
{
    struct tail_sampler s;

    begin(&s, "rare 3\n");
    for (int i = 0; i < 10; i++)
        CHECK_TEXT(why(&s, "osd", "write", 10, false), i < 3 ? "rare 3" : "");
    CHECK_TEXT(why(&s, "osd", "scrub", 10, false), "rare 3");
    CHECK_TEXT(why(&s, "mon", "write", 10, false), "rare 3");
    statistics_begin_period(s.statistics);
    CHECK_TEXT(why(&s, "osd", "write", 10, false), "");
    end(&s);
}

/* A percentile compares with the spans of earlier periods, if these had at least 1000 spans. */
TEST(test_unusual)
{
    struct tail_sampler s;
    int kept = 0;

    begin(&s, "osd > p99.0\n");
    for (int i = 0; i < 999; i++)
        CHECK_TEXT(why(&s, "osd", "write", 2000 + 2 * i, false), "");
    statistics_begin_period(s.statistics);
    CHECK_TEXT(why(&s, "osd", "write", 1000000, false), ""); /* 999 spans */
    statistics_begin_period(s.statistics);
    CHECK_TEXT(why(&s, "osd", "write", 1000000, false), "osd > p99.0");
    CHECK_TEXT(why(&s, "osd", "read", 1000000, false), ""); /* never seen */
    for (int i = 0; i < 1000; i++)
        kept += why(&s, "osd", "write", 2000 + 2 * i, false)[0] != '\0';
    CHECK(kept >= 5 && kept <= 15);
    end(&s);
}

/* A share depends on the trace's id: each trace that 1/100 keeps is one that 1/10 keeps. */
TEST(test_shares)
{
    struct tail_sampler hundredth, tenth;
    int kept = 0, more = 0;

    begin(&hundredth, "1/100");
    begin(&tenth, "osd 1/5\nclient 1/10");
    make_trace(&hundredth.model, names_id(tenth.names, text_of("client")),
               names_id(tenth.names, text_of("osd")), 0, 10, false);
    for (uint64_t id = 1; id <= 100000; id++) {
        const struct tail_trace trace = {.model = &hundredth.model, .trace_id = id};
        const bool is_kept = tail_rules_fit(hundredth.rules, &trace, hundredth.statistics) != NULL;
        const char *other = tail_rules_fit(tenth.rules, &trace, tenth.statistics);

        CHECK(!is_kept || other);
        CHECK(!other || strcmp(other, "client 1/10") == 0);
        kept += is_kept;
        more += other != NULL;
    }
    CHECK(kept > 800 && kept < 1200);
    CHECK(more > 9000 && more < 11000);
    end(&hundredth);
    end(&tenth);
}

/* The rules remember by numbers which names fit. With another set of names they compare again. */
TEST(test_other_statistics)
{
    struct tail_sampler first, second;
    struct tail_rules *kept;

    begin(&first, "osd error");
    begin(&second, "");
    CHECK_TEXT(why(&first, "osd", "write", 10, true), "osd error");
    kept = second.rules;
    second.rules = first.rules;
    CHECK_TEXT(why(&second, "mon", "write", 10, true), "");
    CHECK_TEXT(why(&second, "osd", "write", 10, true), "osd error");
    second.rules = kept;
    CHECK_TEXT(why(&second, "osd", "write", 10, true), "");
    end(&first);
    end(&second);
}

/* ---- open traces */

struct tail_seen {
    uint64_t traces, spans, early;
    uint64_t last;
};

static void note(void *context, const struct closed_trace *closed)
{
    struct tail_seen *seen = context;

    seen->traces++;
    seen->spans += closed->model->count;
    seen->early += closed->is_early;
    seen->last = closed->trace_id;
}

TEST(test_open_traces)
{
    struct tail_seen seen = {0};
    struct open_traces *open = open_traces_new(&(struct open_traces_options){
        .quiet = 100, .max_bytes = 1 << 20, .max_spans = 50, .close = note, .context = &seen});
    struct open_traces_counts counts;

    for (uint64_t i = 0; i < 30; i++)
        CHECK(open_traces_add(open, 0, 1 + i % 3, &(struct trace_span){.id = i}, 10, (int64_t)i));
    open_traces_advance(open, 126);
    CHECK(seen.traces == 0);
    open_traces_advance(open, 127);
    CHECK(seen.traces == 1 && seen.spans == 10 && seen.last == 1);
    open_traces_advance(open, 5); /* time does not go back */
    CHECK(open_traces_add(open, 0, 2, &(struct trace_span){.id = 99}, 10, 5));
    open_traces_advance(open, 200);
    CHECK(seen.traces == 2 && seen.last == 3 && seen.early == 0);
    for (uint64_t i = 0; i < 120; i++)
        CHECK(open_traces_add(open, 1, 2, &(struct trace_span){.id = i}, 0, 200));
    CHECK(seen.traces == 4 && seen.early == 2 && seen.spans == 120);
    for (uint64_t i = 0; i < 50000; i++)
        CHECK(open_traces_add(open, i, i, &(struct trace_span){.id = i}, 1000, 201));
    counts = open_traces_counts(open);
    CHECK(counts.open_bytes <= 1 << 20 && counts.open_bytes > 1 << 19);
    CHECK(counts.early == seen.early && counts.complete + counts.early == seen.traces);
    CHECK(open_traces_close_some(open, 1));
    CHECK(!open_traces_close_some(open, UINT64_MAX));
    counts = open_traces_counts(open);
    CHECK(counts.open == 0 && counts.open_spans == 0 && counts.open_bytes == 0);
    CHECK(seen.spans == 30 + 1 + 120 + 50000);
    open_traces_free(open);
}

TEST(test_durations)
{
    static const char *const none[] = {"",     "5",     "ms",   "-1s",   " 1s",
                                       "1sec", "1e40s", "infs", "40000d"};
    static const struct {
        const char *text;
        int64_t ns;
    } some[] = {{"0ns", 0},
                {"20us", 20000},
                {"1.5 s", 1500000000},
                {"0.1us", 100},
                {"2m", 120000000000},
                {"7h", 25200000000000},
                {"1d", 86400000000000},
                {"999999999s", 999999999000000000}};

    for (size_t i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        CHECK(duration_read(none[i]) == -1 && duration_read_ms(none[i]) == 0);
    for (size_t i = 0; i < sizeof(some) / sizeof(some[0]); i++)
        CHECK(duration_read(some[i].text) == some[i].ns);
    CHECK(duration_read_ms("1.5s") == 1500 && duration_read_ms("1d") == 86400000);
    CHECK(!duration_read_ms("0ms") && !duration_read_ms("500us") && !duration_read_ms("25h"));
}

CHECK_MAIN
