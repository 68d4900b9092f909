/*
 * The filter of wanted events: which events it wants, why, and the JSON of the found spans. Any ids
 * and times against a model: fuzz/fuzz-only.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/agent/only.h"

#include "check.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#define HIGH UINT64_C(0x7d5c0e9bf1a3c4d2)
#define LOW  UINT64_C(0xa1b2c3d4e5f60718)

/* Returns a filter that wants all traces of a period, or no trace if why is "". */
static struct only *only_all(int64_t from_ns, int64_t until_ns, const char *why)
{
    struct only *only = only_new();

    CHECK(only && (!*why || only_add(only, NULL, from_ns, until_ns, why)));
    return only;
}

static bool wants_at(struct only *only, uint64_t high, uint64_t low, int64_t time_ns)
{
    return only_wants(only, high, low, time_ns);
}

static bool wants(struct only *only, uint64_t high, uint64_t low)
{
    return wants_at(only, high, low, 1000);
}

/* The filter knows which spans were sent: those of one trace, or of all traces in a period. */
static void test_sent(void)
{
    struct only *only = only_all(1000, 2000, "all");
    const struct {
        uint64_t low;
        int64_t at_ns;
        bool is_sent;
    } cases[] = {{LOW, 1399, true}, {LOW, 1400, false}, {LOW, 1500, true}, {LOW, 1600, false},
                 {1, 1399, false},  {1, 1500, true},    {1, 1599, true},   {1, 0, false}};

    CHECK(only_add(only, NULL, 1500, 1600, NULL));
    CHECK(only_add(only, &(struct trace_id){HIGH, LOW}, 0, 1400, NULL));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct span span = {
            .trace_id_high = HIGH, .trace_id = cases[i].low, .recorded_ns = cases[i].at_ns};

        CHECK(only_was_sent(only, &span) == cases[i].is_sent);
    }
    CHECK(only_wants(only, HIGH, LOW, 1399) && !only_wants(only, HIGH, LOW, 2000));
    CHECK(text_is(only_why(only, HIGH, LOW), "all"));
    only_free(only);
}

static void check_why(const struct only *only, uint64_t high, uint64_t low, const char *expected)
{
    const struct text why = only_why(only, high, low);
    char text[64];

    *text_copy(text, why) = '\0';
    CHECK_TEXT(text, expected);
}

/* ---- ids ------------------------------------------------------------------------------------- */

static void test_whole_id(void)
{
    struct only *only = only_all(0, 0, "");

    CHECK(only_add(only, &(struct trace_id){HIGH, LOW}, 0, 0, "slow: a write"));
    CHECK(wants(only, HIGH, LOW));
    CHECK(wants(only, 0, LOW)); /* events of the original have only this half */
    CHECK(!wants(only, HIGH + 1, LOW));
    CHECK(!wants(only, HIGH, LOW + 1));
    CHECK(!wants(only, LOW, HIGH));
    CHECK(!wants(only, 0, HIGH));
    check_why(only, HIGH, LOW, "slow: a write");
    check_why(only, 0, LOW, "slow: a write");
    check_why(only, HIGH + 1, LOW, "");
    only_free(only);
}

#define ONLY_MANY 10000

static void test_many(void)
{
    struct only *only = only_all(0, 0, "");
    char why[32];

    for (uint64_t i = 1; i <= ONLY_MANY; i++) {
        snprintf(why, sizeof(why), "why %" PRIu64, i);
        CHECK(only_add(only, &(struct trace_id){i % 2 ? i : 0, i << 32}, (int64_t)i, 0, why));
    }
    for (uint64_t i = 1; i <= ONLY_MANY; i++) {
        snprintf(why, sizeof(why), "why %" PRIu64, i);
        check_why(only, i, i << 32, why);
        CHECK(wants_at(only, i, i << 32, (int64_t)i));
        CHECK(!wants_at(only, i, i << 32, (int64_t)i - 1));
        CHECK(wants_at(only, i + 1, i << 32, (int64_t)i) == (i % 2 == 0));
        CHECK(!wants_at(only, i, (i << 32) + 1, (int64_t)i));
    }
    only_free(only);
}

/* ---- found spans ----------------------------------------------------------------------------- */

static void note(struct only *only, uint64_t high, uint64_t low, uint64_t id, uint64_t parent)
{
    const struct span span = {
        .trace_id_high = high, .trace_id = low, .id = id, .parent_id = parent};

    only_note(only, &span);
}

static void check_json(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

    CHECK_TEXT(text ? text : "none", expected);
    free(text);
}

static void test_nothing_found(void)
{
    struct only *only = only_all(0, 0, "x");
    json_t *found = only_found(only);

    check_json(found, "{\"untold\":0,\"traces\":[]}");
    json_decref(found);
    only_free(only);
}

static void test_found(void)
{
    struct only *only = only_all(0, 0, "x");
    json_t *found;

    CHECK(wants_at(only, 0, 1, 500));
    CHECK(wants_at(only, 0, 1, 300));
    CHECK(wants_at(only, 0, 1, 900));
    note(only, 0, 1, 0xb, 0xa);     /* without the upper half of the trace id, as in the original */
    note(only, 0xabc, 1, 0xb, 0xa); /* the other record of the same span */
    note(only, 0xabc, 1, 0xc, 0xb);
    note(only, 0xabc, 1, 0xd, 9);
    note(only, 0xabc, 1, 0xe, 9);
    note(only, 0xdef, 1, 1, 0); /* another trace with the same lower half */
    note(only, 0, 2, UINT64_MAX, UINT64_MAX - 1);
    found = only_found(only);
    check_json(found,
               "{\"untold\":0,\"traces\":["
               "{\"id\":\"0000000000000abc0000000000000001\",\"begin\":0,\"spans\":5,"
               "\"have\":[\"000000000000000b\",\"000000000000000c\",\"000000000000000d\","
               "\"000000000000000e\"],\"want\":[\"0000000000000009\",\"000000000000000a\"],"
               "\"cut\":false},"
               "{\"id\":\"0000000000000def0000000000000001\",\"begin\":0,\"spans\":1,"
               "\"have\":[\"0000000000000001\"],\"want\":[],\"cut\":false},"
               "{\"id\":\"00000000000000000000000000000002\",\"begin\":0,\"spans\":1,"
               "\"have\":[\"ffffffffffffffff\"],\"want\":[\"fffffffffffffffe\"],\"cut\":false}]}");
    json_decref(found);
    only_free(only);
}

static void check_trace(json_t *found, size_t at, json_int_t spans, size_t have, size_t want,
                        bool is_cut)
{
    json_t *trace = json_array_get(json_object_get(found, "traces"), at);

    CHECK(json_integer_value(json_object_get(trace, "spans")) == spans);
    CHECK(json_array_size(json_object_get(trace, "have")) == have);
    CHECK(json_array_size(json_object_get(trace, "want")) == want);
    CHECK(json_is_boolean(json_object_get(trace, "cut")) &&
          json_boolean_value(json_object_get(trace, "cut")) == is_cut);
}

static void test_large_trace(void)
{
    struct only *only = only_all(0, 0, "x");
    json_t *found;

    for (uint64_t id = 1; id <= ONLY_SPANS_MAX; id++) {
        note(only, 0, 1, id, id + 1); /* the last span's parent is missing */
        note(only, 0, 2, id, id + 1);
    }
    note(only, 0, 2, ONLY_SPANS_MAX + 1, 0);
    found = only_found(only);
    check_trace(found, 0, ONLY_SPANS_MAX, ONLY_SPANS_MAX, 1, false);
    check_trace(found, 1, ONLY_SPANS_MAX + 1, ONLY_SPANS_MAX, 0, true);
    json_decref(found);
    only_free(only);
}

/* A window may have a million traces: the list is bounded, `untold` counts the others. */
static void test_many_traces(void)
{
    const uint64_t spans = ONLY_LISTED_MAX / ONLY_FOUND_MAX;
    struct only *only = only_all(0, 0, "x");
    json_t *found;

    for (uint64_t id = 1; id <= spans + 1; id++) {
        for (uint64_t trace = 1; trace <= ONLY_FOUND_MAX + 10; trace++)
            note(only, 0, trace, id, 0);
    }
    found = only_found(only);
    CHECK(json_array_size(json_object_get(found, "traces")) == ONLY_FOUND_MAX);
    CHECK(json_integer_value(json_object_get(found, "untold")) == 10);
    check_trace(found, 0, (json_int_t)spans + 1, spans, 0, true);
    json_decref(found);
    only_free(only);
}

/* The result does not list the traces beyond the limit: `untold` is their number. */
static void test_untold_traces(void)
{
    struct only *only = only_all(0, 0, "x");
    json_t *found;

    only_tell_of(only, 2);
    for (uint64_t trace = 1; trace <= 5; trace++)
        note(only, 0, trace, 1, 0);
    for (uint64_t trace = 5; trace >= 1; trace--)
        note(only, 0, trace, 2, 1);
    found = only_found(only);
    CHECK(json_array_size(json_object_get(found, "traces")) == 2);
    CHECK(json_integer_value(json_object_get(found, "untold")) == 3);
    check_trace(found, 0, 2, 2, 0, false);
    check_trace(found, 1, 2, 2, 0, false);
    json_decref(found);
    only_free(only);
}

int main(void)
{
    test_sent();
    test_whole_id();
    test_many();
    test_nothing_found();
    test_found();
    test_large_trace();
    test_many_traces();
    test_untold_traces();
    return check_status();
}
