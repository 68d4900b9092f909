/*
 * When a trace is complete, and the text of the verdict if it is not.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/agent/judge.h"

#include <inttypes.h>

static char said[4096]; /* the calls of the judge, a line each */

static void say(const char *format, uint64_t low, const char *more)
{
    const size_t length = strlen(said);

    (void)snprintf(said + length, sizeof(said) - length, format, low, more);
}

static int64_t judged_time_ns; /* time_ns of the last verdict */

static void judged(void *context, const struct verdict *verdict)
{
    (void)context;
    judged_time_ns = verdict->time_ns;
    if (verdict->is_complete)
        say("%" PRIu64 " complete: %s\n", verdict->id.low, verdict->hosts);
    else
        say("%" PRIu64 " incomplete: %s\n", verdict->id.low, verdict->lacks);
}

static void left(void *context, struct trace_id id, bool to_other)
{
    (void)context;
    say("%" PRIu64 " left to %s\n", id.low, to_other ? "another" : "a later one");
}

static void listed(void *context, const char *name, const struct request *traces)
{
    (void)context;
    say("%" PRIu64 " listed for %s", traces->count, name);
    say(", %" PRIu64 " left out%s\n", traces->left_out, "");
}

static void earlier(void *context, struct asker *asker, const struct wanted *wanted,
                    int64_t begin_ns)
{
    char begin[32];

    (void)context;
    (void)asker;
    (void)snprintf(begin, sizeof(begin), "%" PRId64, begin_ns);
    say("%" PRIu64 " began at %s\n", wanted->id.low, begin);
}

static const struct judge_callbacks callbacks = {judged, left, listed, earlier, NULL};
static struct judge *judge;

/* This host requests the traces first to last, which began at begin_ns. The hosts are "a" (this
 * one) and "b". */
static void ask_from(const char *id, int64_t at_ns, int64_t begin_ns, uint64_t first, uint64_t last,
                     const char *name)
{
    struct request *request = request_new(id, "a");
    json_t *hosts = json_pack("[s, s]", "a", "b");

    request->at_ns = at_ns;
    request->came_mono_ns = 1;
    for (uint64_t low = first; low <= last; low++)
        (void)request_add(request, (struct trace_id){0, low}, begin_ns, "rule");
    CHECK(judge_ask(judge, request, hosts, name, 100));
    requests_free(request);
    json_decref(hosts);
}

static void ask(const char *id, int64_t at_ns, uint64_t first, uint64_t last, const char *name)
{
    ask_from(id, at_ns, 1000, first, last, name);
}

static void answer_at(int64_t now_ms, const char *text)
{
    json_t *json = json_loads(text, 0, NULL);

    CHECK(json != NULL);
    judge_answer(judge, json, now_ms);
    json_decref(json);
}

static void answer(const char *text)
{
    answer_at(0, text);
}

static void end(void)
{
    if (judge)
        judge_free(judge);
    judge = NULL;
}

static void begin_with(const struct judge_callbacks *on)
{
    end();
    said[0] = '\0';
    judge = judge_new(on);
}

static void begin(void)
{
    begin_with(&callbacks);
}

#define ANSWER(host, rest) \
    "{\"id\": \"r1\", \"host\": \"" host "\", \"held_from\": 500, \"traces\": [" rest "]}"
#define TRACE(id, have, want) \
    "{\"id\": \"" id "\", \"spans\": 1, \"have\": [\"" have "\"], \"want\": [\"" want "\"]}"

TEST(test_complete)
{
    ask("r1", 1, 1, 1, NULL);
    answer(ANSWER("a", TRACE("1", "10", "20")));
    (void)judge_due(judge, 50);
    CHECK_TEXT(said, ""); /* b has not answered */
    CHECK(judge_open(judge) == 1);
    answer(ANSWER("b", TRACE("1", "20", "20")));
    answer(ANSWER("b", TRACE("1", "21", "99"))); /* a second answer does not count */
    CHECK(judge_due(judge, 50) == INT64_MAX);
    CHECK_TEXT(said, "1 complete: a, b\n");
    CHECK(judge_open(judge) == 0);
}

TEST(test_incomplete)
{
    /* 1: no host has a parent; 2: only b could have more spans; 3: no spans */
    ask("r1", 1, 1, 3, NULL);
    answer(ANSWER("a", TRACE("1", "10", "20") ", " TRACE("2", "11", "11")));
    CHECK(judge_due(judge, 99) == 100);
    CHECK_TEXT(said, "");
    (void)judge_due(judge, 100);
    CHECK_TEXT(said, "1 incomplete: 1 parent that no host has; b: has not answered\n"
                     "2 incomplete: b: has not answered\n"
                     "3 incomplete: no host has a span of this trace; b: has not answered\n");

    /* a parent may end later and come with a later request: the verdict waits for the deadline */
    begin();
    ask("r1", 1, 1, 2, NULL);
    answer(ANSWER("a", TRACE("1", "10", "20") ", " TRACE("2", "11", "11")));
    answer(ANSWER("b", ""));
    (void)judge_due(judge, 50);
    CHECK_TEXT(said, "2 complete: a, b\n");
    ask("r2", 2, 1, 1, NULL);
    (void)judge_due(judge, 100); /* this host has not answered yet */
    CHECK_TEXT(said, "2 complete: a, b\n1 left to a later one\n");
    answer("{\"id\": \"r2\", \"host\": \"a\", \"traces\": []}");
    (void)judge_due(judge, 100);
    CHECK_TEXT(said, "2 complete: a, b\n1 left to a later one\n"
                     "1 incomplete: no host has a span of this trace; b: has not answered\n");
}

#define REACH(host, reach, rest)                                                        \
    "{\"id\": \"r1\", \"host\": \"" host "\", \"held_from\": 500, \"reach_ms\": " reach \
    ", \"traces\": [" rest "]}"

/* A trace that began before the searched time is requested once more. So is a trace whose missing
 * parent may have ended before that time. Without that request, the trace is incomplete. */
TEST(test_earlier)
{
    const int64_t at_ns = INT64_C(1000000000);
    const char *root = "{\"id\": \"1\", \"spans\": 1, \"have\": [\"20\"], \"want\": [], "
                       "\"begin\": 700000000}";
    char text[512];

    ask_from("r1", at_ns, 900000000, 1, 3, NULL);
    answer(REACH("a", "101",
                 TRACE("1", "10", "20") ", " TRACE("2", "11", "11") ", " TRACE("3", "12", "22")));
    (void)snprintf(text, sizeof(text), REACH("b", "2100", "%s"), root);
    answer(text);
    (void)judge_due(judge, 50);
    CHECK_TEXT(said, "1 began at 700000000\n2 complete: a, b\n");
    (void)judge_due(judge, 100);
    CHECK_TEXT(said, "1 began at 700000000\n2 complete: a, b\n"
                     "1 incomplete: a: its ring does not reach back to this trace\n"
                     "3 began at 0\n");
    (void)judge_due(judge, 101);
    CHECK(strstr(said, "3 incomplete: 1 parent that no host has\n") != NULL);
}

/* A stopped process reads no answers: the stall does not count as silence of other hosts. */
TEST(test_stall)
{
    ask("r1", 1, 1, 2, NULL);
    answer(ANSWER("a", TRACE("1", "10", "10") ", " TRACE("2", "11", "11")));
    CHECK(judge_due(judge, 50) == 100);
    judge_note_stall(judge, 5000);
    CHECK(judge_due(judge, 5050) == 5100);
    CHECK_TEXT(said, "");
    answer(ANSWER("b", ""));
    (void)judge_due(judge, 5051);
    CHECK_TEXT(said, "1 complete: a, b\n2 complete: a, b\n");
}

/* The verdict of a trace that a person requests by its id has the begin of the first span. If that
 * is not known, the verdict has the time of the request. */
TEST(test_time)
{
    static const char *const answers[] = {
        "", TRACE("1", "10", "20"),
        "{\"id\": \"1\", \"begin\": 800, \"spans\": 1, \"have\": [\"10\"], \"want\": [\"20\"]}"};
    static const int64_t times[] = {9000, 9000, 700};

    for (size_t i = 0; i < 3; i++) {
        struct request *request = request_new("r1", "a");
        json_t *hosts = json_pack("[s, s]", "a", "b");
        char text[512];

        begin();
        request->at_ns = 9000;
        (void)request_add(request, (struct trace_id){0, 1}, 0, "by hand");
        CHECK(judge_ask(judge, request, hosts, "kept", 100));
        (void)snprintf(text, sizeof(text), ANSWER("a", "%s"), answers[i]);
        answer(text);
        (void)snprintf(text, sizeof(text), ANSWER("b", "%s"),
                       i < 2 ? ""
                             : "{\"id\": \"1\", \"begin\": 700, \"spans\": 1, \"have\": [\"11\"], "
                               "\"want\": [\"10\"]}");
        answer(text);
        (void)judge_due(judge, 100);
        CHECK(judged_time_ns == times[i]);
        requests_free(request);
        json_decref(hosts);
    }
}

/* A host whose rings do not reach back to the trace's begin may have lost spans of the trace. */
TEST(test_held)
{
    static const char *const answers[][3] = {
        {TRACE("1", "10", "10"), "\"held_from\": 1001, \"traces\": []",
         "1 incomplete: b: its ring does not reach back to this trace\n"},
        {TRACE("1", "10", "10"), "\"error\": \"no snapshot\", \"traces\": []",
         "1 incomplete: b: no snapshot\n"},
        /* held_from of one trace (spans of SDKs) counts for that trace only */
        {TRACE("1", "10", "10") ", {\"id\": \"2\", \"spans\": 1, \"have\": [\"11\"], "
                                "\"want\": [], \"held_from\": 1001}",
         "\"held_from\": 500, \"traces\": []",
         "1 complete: a, b\n2 incomplete: a: its ring does not reach back to this trace\n"},
    };

    for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
        char text[512];

        begin();
        ask("r1", 1, 1, i == 2 ? 2 : 1, NULL);
        (void)snprintf(text, sizeof(text), ANSWER("a", "%s"), answers[i][0]);
        answer(text);
        (void)snprintf(text, sizeof(text), "{\"id\": \"r1\", \"host\": \"b\", %s}", answers[i][1]);
        answer(text);
        (void)judge_due(judge, 50);
        CHECK_TEXT(said, answers[i][2]);
    }
}

/* The answer came 200 ms after the request, and took 150 ms. So the request may have been on its
 * way for 50 ms, and the host's times before the request may be that much later here. */
TEST(test_way)
{
    static const char *const held[] = {"120000", "160000", "160000, \"reach_ms\": 120"};
    static const char *const verdicts[] = {
        "1 incomplete: b: its ring does not reach back to this trace\n", "1 complete: a, b\n",
        "1 began at 900000000\n"};

    for (size_t i = 0; i < 3; i++) {
        char text[256];

        begin();
        ask_from("r1", 1000000000, 900000000, 1, 1, NULL);
        answer(ANSWER("a", TRACE("1", "10", "10")));
        (void)snprintf(text, sizeof(text),
                       "{\"id\": \"r1\", \"host\": \"b\", \"held_from\": 1, \"held_us\": %s, "
                       "\"took_us\": 150000, \"traces\": []}",
                       held[i]);
        answer_at(200, text);
        (void)judge_due(judge, 250);
        CHECK_TEXT(said, verdicts[i]);
    }

    /* the time of a late answer says nothing about the way of the request */
    begin();
    ask_from("r1", 1000000000, 900000000, 1, 1, NULL);
    answer(ANSWER("a", TRACE("1", "10", "20")));
    answer_at(60, "{\"id\": \"r1\", \"host\": \"b\", \"held_from\": 1, \"held_us\": 160000, "
                  "\"took_us\": 10000, \"reach_ms\": 160, \"traces\": []}");
    answer_at(90, "{\"id\": \"r1\", \"host\": \"b\", \"late\": true, \"took_us\": 0, "
                  "\"traces\": [" TRACE("1", "20", "20") "]}");
    (void)judge_due(judge, 95);
    CHECK_TEXT(said, "1 complete: a, b\n");
}

TEST(test_yield)
{
    struct request *earlier = request_new("x", "b"), *later = request_new("y", "b");

    earlier->at_ns = 1;
    later->at_ns = 3;
    (void)request_add(earlier, (struct trace_id){0, 1}, 0, "");
    (void)request_add(later, (struct trace_id){0, 2}, 0, "");
    ask("r1", 2, 1, 2, NULL);
    judge_yield(judge, earlier);
    CHECK_TEXT(said, "");
    judge_yield(judge, later);
    CHECK_TEXT(said, "2 left to another\n");
    CHECK(judge_open(judge) == 1);
    requests_free(earlier);
    requests_free(later);
}

/* ---- requests of persons ---- */

TEST(test_by_hand)
{
    json_t *kept;

    ask("r1", 1, 1, 1, "mine");
    kept = judge_json(judge, "mine");
    CHECK(kept && json_is_false(json_object_get(kept, "done")));
    json_decref(kept);
    answer(ANSWER("a", TRACE("1", "10", "20")));
    answer(ANSWER("b", TRACE("1", "20", "20")));
    (void)judge_due(judge, 50);
    kept = judge_json(judge, "mine");
    CHECK(kept && json_is_true(json_object_get(kept, "done")));
    CHECK(json_array_size(json_object_get(kept, "hosts")) == 2);
    CHECK(json_integer_value(
              json_object_get(json_array_get(json_object_get(kept, "traces"), 0), "spans")) == 2);
    json_decref(kept);
    CHECK(judge_json(judge, "nobody's") == NULL);
}

/* A request for the traces of a service is done when the listed traces are done. Traces that the
 * answer does not list count as left out. */
TEST(test_service)
{
    struct request *request = request_new("r1", "a");
    json_t *hosts = json_pack("[s]", "a"), *kept;

    request->last_ms = 1000;
    strcpy(request->service, "osd");
    CHECK(judge_ask(judge, request, hosts, "mine", 100));
    answer("{\"id\": \"r1\", \"host\": \"a\", \"more\": 7, \"traces\": [" TRACE(
        "1", "10", "10") ", " TRACE("2", "10", "10") "]}");
    (void)judge_due(judge, 50);
    CHECK_TEXT(said, "2 listed for mine, 7 left out\n");
    kept = judge_json(judge, "mine");
    CHECK(json_is_false(json_object_get(kept, "done")));
    json_decref(kept);
    requests_free(request);
    json_decref(hosts);
}

/* Listed traces are requested while judge_due() runs: it must not free the entry that it visits.
 */
static unsigned listings;

static void ask_listed(void *context, const char *name, const struct request *traces)
{
    struct request *request = request_new("next", "a");
    json_t *hosts = json_pack("[s]", "a");

    (void)context;
    CHECK(traces->count == 1 && request_add(request, traces->traces[0].id, 0, ""));
    CHECK(judge_ask(judge, request, hosts, name, 100));
    listings++;
    requests_free(request);
    json_decref(hosts);
}

TEST(test_many_services)
{
    const struct judge_callbacks on = {judged, left, ask_listed, earlier, NULL};
    json_t *hosts = json_pack("[s]", "a");

    begin_with(&on);
    for (int i = 0; i < 100; i++) {
        struct request *request = request_new("", "a");
        char text[256];

        (void)snprintf(request->id, sizeof(request->id), "r%d", i);
        request->last_ms = 1000;
        strcpy(request->service, "osd");
        CHECK(judge_ask(judge, request, hosts, request->id, 100));
        (void)snprintf(
            text, sizeof(text),
            "{\"id\": \"r%d\", \"host\": \"a\", \"traces\": [" TRACE("1", "10", "10") "]}", i);
        answer(text);
        requests_free(request);
    }
    (void)judge_due(judge, 50);
    CHECK(listings == 100 && judge_open(judge) == 100);
    json_decref(hosts);
}

/* An answer counts the traces that it does not list ("more"). Then no span counts as missing. */
TEST(test_unlisted)
{
    struct request *request = request_new("r1", "a");
    json_t *hosts = json_pack("[s, s]", "a", "b"), *kept;

    request->last_ms = 1000;
    CHECK(judge_ask(judge, request, hosts, "mine", 100));
    answer(ANSWER("a", TRACE("1", "10", "99")));
    answer("{\"id\": \"r1\", \"host\": \"b\", \"held_from\": 500, \"more\": 7, \"traces\": []}");
    (void)judge_due(judge, 50);
    kept = judge_json(judge, "mine");
    CHECK(json_integer_value(json_object_get(kept, "more")) == 7);
    CHECK(json_integer_value(
              json_object_get(json_array_get(json_object_get(kept, "traces"), 0), "missing")) == 0);
    json_decref(kept);
    requests_free(request);
    json_decref(hosts);
}

/* Messages of other hosts are not trusted. */
TEST(test_nonsense)
{
    ask("r1", 1, 1, 1, NULL);
    answer("{}");
    answer("{\"id\": 1, \"host\": []}");
    answer("{\"id\": \"r1\", \"host\": \"c\", \"traces\": [1, {}, {\"id\": \"zz\"}, "
           "{\"id\": \"1\", \"spans\": -5, \"have\": [7, \"\", \"xyz\"], \"want\": {}}]}");
    answer(ANSWER("a", TRACE("7", "10", "10"))); /* not requested */
    (void)judge_due(judge, 100);
    CHECK_TEXT(said, "1 incomplete: no host has a span of this trace; b: has not answered\n");
}

CHECK_MAIN_EACH(begin, end)
