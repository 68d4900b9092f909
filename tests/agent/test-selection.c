/*
 * The filter of wanted events: which events it wants, why, and the JSON of the found spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/agent/selection.h"

#include "check.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>

#define HIGH UINT64_C(0x7d5c0e9bf1a3c4d2)
#define LOW  UINT64_C(0xa1b2c3d4e5f60718)

static struct selection *selection; /* of the current test */
static json_t *found;

static void begin(void)
{
    selection = selection_new();
    CHECK(selection != NULL);
}

static void end(void)
{
    json_decref(found);
    found = NULL;
    selection_free(selection);
}

/* The filter wants all traces of all times. */
static void want_all(void)
{
    CHECK(selection_add(selection, NULL, 0, 0, "x"));
}

static bool wants_at(uint64_t high, uint64_t low, int64_t time_ns)
{
    return selection_wants(selection, high, low, time_ns);
}

static bool wants(uint64_t high, uint64_t low)
{
    return wants_at(high, low, 1000);
}

/* The filter knows which spans were sent: those of one trace, or of all traces in a period. */
TEST(test_sent)
{
    const struct {
        uint64_t low;
        int64_t at_ns;
        bool is_sent;
    } cases[] = {{LOW, 1399, true}, {LOW, 1400, false}, {LOW, 1500, true}, {LOW, 1600, false},
                 {1, 1399, false},  {1, 1500, true},    {1, 1599, true},   {1, 0, false}};

    CHECK(selection_add(selection, NULL, 1000, 2000, "all"));
    CHECK(selection_add(selection, NULL, 1500, 1600, NULL));
    CHECK(selection_add(selection, &(struct trace_id){HIGH, LOW}, 0, 1400, NULL));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct span span = {
            .trace_id_high = HIGH, .trace_id = cases[i].low, .recorded_ns = cases[i].at_ns};

        CHECK(selection_was_sent(selection, &span) == cases[i].is_sent);
    }
    CHECK(selection_wants(selection, HIGH, LOW, 1399) &&
          !selection_wants(selection, HIGH, LOW, 2000));
    CHECK(text_is(selection_why(selection, HIGH, LOW), "all"));
}

static void check_why(uint64_t high, uint64_t low, const char *expected)
{
    const struct text why = selection_why(selection, high, low);
    char text[64];

    *text_copy(text, why) = '\0';
    CHECK_TEXT(text, expected);
}

/* ---- ids ------------------------------------------------------------------------------------- */

TEST(test_whole_id)
{
    CHECK(selection_add(selection, &(struct trace_id){HIGH, LOW}, 0, 0, "slow: a write"));
    CHECK(wants(HIGH, LOW));
    CHECK(wants(0, LOW)); /* events of the original have only this half */
    CHECK(!wants(HIGH + 1, LOW));
    CHECK(!wants(HIGH, LOW + 1));
    CHECK(!wants(LOW, HIGH));
    CHECK(!wants(0, HIGH));
    check_why(HIGH, LOW, "slow: a write");
    check_why(0, LOW, "slow: a write");
    check_why(HIGH + 1, LOW, "");
}

/* Of filters that fit, the first one has the reason, whether for all traces or for one. */
TEST(test_first_reason)
{
    static const struct trace_id id = {HIGH, LOW}, low = {0, LOW};
    const struct trace_id *const orders[][2] = {{&id, &low}, {&low, &id}, {NULL, &id}, {&id, NULL}};

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        end();
        begin();
        CHECK(selection_add(selection, &(struct trace_id){1, 1}, 0, 0, "of another one") &&
              selection_add(selection, orders[i][0], 0, 500, "first") &&
              selection_add(selection, orders[i][1], 0, 0, "second"));
        check_why(HIGH, LOW, "first");
        CHECK(wants_at(HIGH, LOW, 499) && wants_at(HIGH, LOW, 500));
    }
}

#define SELECTION_MANY 10000

TEST(test_many)
{
    char why[32];

    for (uint64_t i = 1; i <= SELECTION_MANY; i++) {
        snprintf(why, sizeof(why), "why %" PRIu64, i);
        CHECK(selection_add(selection, &(struct trace_id){i % 2 ? i : 0, i << 32}, (int64_t)i, 0,
                            why));
    }
    for (uint64_t i = 1; i <= SELECTION_MANY; i++) {
        snprintf(why, sizeof(why), "why %" PRIu64, i);
        check_why(i, i << 32, why);
        CHECK(wants_at(i, i << 32, (int64_t)i));
        CHECK(!wants_at(i, i << 32, (int64_t)i - 1));
        CHECK(wants_at(i + 1, i << 32, (int64_t)i) == (i % 2 == 0));
        CHECK(!wants_at(i, (i << 32) + 1, (int64_t)i));
    }
}

/* ---- found spans ----------------------------------------------------------------------------- */

static void note(uint64_t high, uint64_t low, uint64_t id, uint64_t parent)
{
    const struct span span = {
        .trace_id_high = high, .trace_id = low, .id = id, .parent_id = parent};

    selection_note(selection, &span);
}

static void check_json(json_t *json, const char *expected)
{
    char *text = json_dumps(json, JSON_COMPACT | JSON_ENCODE_ANY);

    CHECK_TEXT(text ? text : "none", expected);
    free(text);
}

TEST(test_nothing_found)
{
    want_all();
    found = selection_found(selection);
    check_json(found, "{\"untold\":0,\"traces\":[]}");
}

TEST(test_found)
{
    want_all();
    CHECK(wants_at(0, 1, 500));
    CHECK(wants_at(0, 1, 300));
    CHECK(wants_at(0, 1, 900));
    note(0, 1, 0xb, 0xa);     /* without the upper half of the trace id, as in the original */
    note(0xabc, 1, 0xb, 0xa); /* the other record of the same span */
    note(0xabc, 1, 0xc, 0xb);
    note(0xabc, 1, 0xd, 9);
    note(0xabc, 1, 0xe, 9);
    note(0xdef, 1, 1, 0); /* another trace with the same lower half */
    note(0, 2, UINT64_MAX, UINT64_MAX - 1);
    found = selection_found(selection);
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
}

static void check_trace(size_t at, json_int_t spans, size_t have, size_t want, bool is_cut)
{
    json_t *trace = json_array_get(json_object_get(found, "traces"), at);

    CHECK(json_integer_value(json_object_get(trace, "spans")) == spans);
    CHECK(json_array_size(json_object_get(trace, "have")) == have);
    CHECK(json_array_size(json_object_get(trace, "want")) == want);
    CHECK(json_is_boolean(json_object_get(trace, "cut")) &&
          json_boolean_value(json_object_get(trace, "cut")) == is_cut);
}

TEST(test_large_trace)
{
    want_all();
    for (uint64_t id = 1; id <= SELECTION_SPANS_MAX; id++) {
        note(0, 1, id, id + 1); /* the last span's parent is missing */
        note(0, 2, id, id + 1);
    }
    note(0, 2, SELECTION_SPANS_MAX + 1, 0);
    found = selection_found(selection);
    check_trace(0, SELECTION_SPANS_MAX, SELECTION_SPANS_MAX, 1, false);
    check_trace(1, SELECTION_SPANS_MAX + 1, SELECTION_SPANS_MAX, 0, true);
}

/* A window may have a million traces: the list is bounded, `untold` counts the others. */
TEST(test_many_traces)
{
    const uint64_t spans = SELECTION_LISTED_MAX / SELECTION_FOUND_MAX;

    want_all();
    for (uint64_t id = 1; id <= spans + 1; id++) {
        for (uint64_t trace = 1; trace <= SELECTION_FOUND_MAX + 10; trace++)
            note(0, trace, id, 0);
    }
    found = selection_found(selection);
    CHECK(json_array_size(json_object_get(found, "traces")) == SELECTION_FOUND_MAX);
    CHECK(json_integer_value(json_object_get(found, "untold")) == 10);
    check_trace(0, (json_int_t)spans + 1, spans, 0, true);
}

/* The result does not list the traces beyond the limit: `untold` is their number. */
TEST(test_untold_traces)
{
    want_all();
    selection_limit_traces(selection, 2);
    for (uint64_t trace = 1; trace <= 5; trace++)
        note(0, trace, 1, 0);
    for (uint64_t trace = 5; trace >= 1; trace--)
        note(0, trace, 2, 1);
    found = selection_found(selection);
    CHECK(json_array_size(json_object_get(found, "traces")) == 2);
    CHECK(json_integer_value(json_object_get(found, "untold")) == 3);
    check_trace(0, 2, 2, 0, false);
    check_trace(1, 2, 2, 0, false);
}

CHECK_MAIN_EACH(begin, end)
