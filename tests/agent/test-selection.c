/*
 * The filter of wanted events: which events it wants, why, and the JSON of the found spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/agent/selection.h"

#include "check.h"
#include "plugin/starvation/starve.h"

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
    CHECK(starve.live == 0);
}

static bool wants_at(uint64_t high, uint64_t low, int64_t time_ns)
{
    return selection_wants(selection, high, low, time_ns);
}

static bool wants(uint64_t high, uint64_t low)
{
    return wants_at(high, low, 1000);
}

static void check_count(size_t listed, json_int_t untold)
{
    found = selection_found(selection);
    CHECK(found && json_array_size(json_object_get(found, "traces")) == listed);
    CHECK(json_integer_value(json_object_get(found, "untold")) == untold);
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

    CHECK(selection_add(selection, NULL, 1500, 1600, NULL));
    CHECK(selection_add(selection, NULL, 1000, 2000, "all"));
    CHECK(selection_add(selection, &(struct trace_id){HIGH, LOW}, 0, 1400, NULL));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct span span = {
            .trace_id_high = HIGH, .trace_id = cases[i].low, .recorded_ns = cases[i].at_ns};

        CHECK(selection_was_sent(selection, &span) == cases[i].is_sent);
    }
    CHECK(wants_at(HIGH, LOW, 1399) && !wants_at(HIGH, LOW, 999) && !wants_at(HIGH, LOW, 2000));
    CHECK(text_is(selection_why(selection, HIGH, LOW), "all"));
    check_count(0, 0);
}

#define check_why(high, low, expected) CHECK(text_is(selection_why(selection, high, low), expected))

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

/* ---- found spans ----------------------------------------------------------------------------- */

static void note_at(int64_t start_ns, uint64_t high, uint64_t low, uint64_t id, uint64_t parent)
{
    const struct span span = {.trace_id_high = high,
                              .trace_id = low,
                              .id = id,
                              .parent_id = parent,
                              .start_ns = start_ns};

    selection_note(selection, &span);
}

#define note(low, id, parent) note_at(0, 0, low, id, parent)

/* When out of memory, there is no result, or the whole one. */
TEST(test_found)
{
    uint64_t failing = 0;

    do {
        char text[1024] = "";

        end();
        starve.count = starve.failed = 0;
        starve.fail_at = ++failing;
        selection = selection_new();
        if (selection && selection_add(selection, NULL, 0, 0, "x")) {
            CHECK(wants_at(0, 1, 0));
            selection_limit_traces(selection, 3);
            note_at(7, 0, 1, 0xb, 0xa); /* without the upper half of the id, as in the original */
            note_at(9, 0xabc, 1, 0xb, 0xa); /* the other record of the same span */
            note_at(5, 0xabc, 1, 0xd, 9);
            note_at(6, 0xabc, 1, 0xc, 0xb);
            note_at(8, 0xabc, 1, 0xe, 9);
            note_at(4, 0xdef, 1, 1, 0); /* another trace with the same lower half */
            note_at(3, 0, 2, UINT64_MAX, UINT64_MAX - 1);
            note(3, 1, 0);
            found = selection_found(selection);
        }
        starve.fail_at = 0;
        (void)json_dumpb(found, text, sizeof(text) - 1, JSON_COMPACT);
        CHECK_TEXT(
            text,
            !found ? ""
                   : "{\"untold\":1,\"traces\":["
                     "{\"id\":\"0000000000000abc0000000000000001\",\"begin\":5,\"spans\":5,"
                     "\"have\":[\"000000000000000b\",\"000000000000000c\",\"000000000000000d\","
                     "\"000000000000000e\"],\"want\":[\"0000000000000009\",\"000000000000000a\"],"
                     "\"cut\":false},"
                     "{\"id\":\"0000000000000def0000000000000001\",\"begin\":4,\"spans\":1,"
                     "\"have\":[\"0000000000000001\"],\"want\":[],\"cut\":false},"
                     "{\"id\":\"00000000000000000000000000000002\",\"begin\":3,\"spans\":1,"
                     "\"have\":[\"ffffffffffffffff\"],\"want\":[\"fffffffffffffffe\"],"
                     "\"cut\":false}]}");
    } while (starve.failed);
    CHECK(found && failing > 5);
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
    for (uint64_t id = 1; id <= SELECTION_SPANS_MAX; id++) {
        note(1, id, id + 1); /* the last span's parent is missing */
        note(2, id, id + 1);
    }
    note(2, SELECTION_SPANS_MAX + 1, 0);
    check_count(2, 0);
    check_trace(0, SELECTION_SPANS_MAX, SELECTION_SPANS_MAX, 1, false);
    check_trace(1, SELECTION_SPANS_MAX + 1, SELECTION_SPANS_MAX, 0, true);
}

/* A window may have a million traces: the list is bounded, `untold` counts the others. */
TEST(test_many_traces)
{
    const uint64_t spans = SELECTION_LISTED_MAX / SELECTION_FOUND_MAX;

    for (uint64_t id = 1; id <= spans + 1; id++) {
        for (uint64_t trace = 1; trace <= SELECTION_FOUND_MAX + 10; trace++)
            note(trace, id, 0);
    }
    check_count(SELECTION_FOUND_MAX, 10);
    check_trace(0, (json_int_t)spans + 1, spans, 0, true);
}

/* The result does not list the traces beyond the limit: `untold` is their number. */
TEST(test_untold_traces)
{
    selection_limit_traces(selection, 2);
    for (uint64_t trace = 1; trace <= 5000; trace++)
        note(trace, 1, 0);
    for (uint64_t trace = 5000; trace >= 1; trace--)
        note(trace, 2, 1);
    check_count(2, 4998);
    check_trace(0, 2, 2, 0, false);
    check_trace(1, 2, 2, 0, false);
}

CHECK_MAIN_EACH(begin, end)
