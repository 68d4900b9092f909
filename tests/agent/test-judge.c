/*
 * When a trace is complete, and the text of the verdict if it is not.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "plugin/starvation/starve.h"
#include "tools/agent/judge.h"

#include <inttypes.h>

#define JUDGE_AT INT64_C(1000000000) /* the time of most requests */

static char said[4096]; /* the calls of the judge, a line each */
static char rest[256];  /* the other members of the last verdict */
static struct asker asker;
static struct judge *judge;

#define ask(id, first, last, name) ask_from(id, 1, 1000, first, last, name)
#define answer(text)               answer_at(0, text)
#define say(...)                   (void)snprintf(said + strlen(said), sizeof(said) - strlen(said), __VA_ARGS__)

static void judged(void *context, const struct verdict *verdict)
{
    (void)context;
    say("%" PRIu64 " %s: %s\n", verdict->id.low, verdict->is_complete ? "complete" : "incomplete",
        verdict->is_complete ? verdict->hosts : verdict->lacks);
    (void)snprintf(rest, sizeof(rest),
                   "%s%s, %" PRId64 ", %" PRIu64 " of %s, %" PRIu64 " missing %" PRIx64 ", %s",
                   verdict->why, verdict->is_by_hand ? " by hand" : "", verdict->time_ns,
                   verdict->spans, verdict->hosts, verdict->missing,
                   verdict->missing ? verdict->parent : 0, verdict->held);
}

static void left(void *context, struct trace_id id, bool to_other)
{
    (void)context;
    say("%" PRIu64 " left to %s\n", id.low, to_other ? "another" : "a later one");
}

static void earlier(void *context, struct asker *of, const struct wanted *wanted, int64_t begin_ns)
{
    (void)context;
    CHECK(of == &asker);
    say("%" PRIu64 " began at %" PRId64 "\n", wanted->id.low, begin_ns);
}

/* service: of a window; NULL: a request that names traces. */
static struct request *request_at(const char *id, int64_t at_ns, const char *service)
{
    struct request *request = request_new(id, "a");

    request->at_ns = at_ns;
    request->came_mono_ns = 1;
    request->asker = asker_hold(&asker);
    request->last_ms = service != NULL;
    (void)strcpy(request->service, service ? service : "");
    return request;
}

/* Sends the request of this host, "a". The other host is "b". Takes the request. */
static bool asks(struct request *request, const char *name)
{
    json_t *hosts = json_pack("[s, s, i]", "a", "b", 7);
    const bool is_asked = judge_ask(judge, request, hosts, name, 100);

    requests_free(request);
    json_decref(hosts);
    return is_asked;
}

/* This host requests the traces first to last, which began at begin_ns. */
static void ask_from(const char *id, int64_t at_ns, int64_t begin_ns, uint64_t first, uint64_t last,
                     const char *name)
{
    struct request *request = request_at(id, at_ns, NULL);

    for (uint64_t low = first; low <= last; low++)
        (void)request_add(request, (struct trace_id){0, low}, begin_ns, "rule");
    CHECK(asks(request, name));
}

static void listed(void *context, const char *name, const struct request *traces)
{
    (void)context;
    say("%zu listed for %s, %zu left out\n", traces->count, name, traces->left_out);
    ask("next", 1, traces->count, "next");
}

static const struct judge_callbacks callbacks = {judged, left, listed, earlier, NULL};

static void swap_quotes(char *text, char from, char to)
{
    while ((text = strchr(text, from)) != NULL)
        *text = to;
}

/* Gives an answer in JSON, with ' in place of ". */
static void answer_at(int64_t now_ms, const char *text)
{
    char copy[1024];
    json_t *json;

    (void)snprintf(copy, sizeof(copy), "%s", text);
    swap_quotes(copy, '\'', '"');
    json = json_loads(copy, 0, NULL);
    CHECK(json != NULL);
    judge_answer(judge, json, now_ms);
    json_decref(json);
}

/* Compares the answer to `kept k`, with ' in place of ". */
static void check_kept(const char *expected)
{
    json_t *kept = judge_json(judge, "k");
    char text[2048] = "";

    (void)json_dumpb(kept, text, sizeof(text) - 1, JSON_COMPACT);
    swap_quotes(text, '"', '\'');
    CHECK_TEXT(text, expected);
    json_decref(kept);
}

static void end(void)
{
    if (judge)
        judge_free(judge);
    judge = NULL;
    CHECK(starve.live == 0 && asker.payer.held == 0);
}

static void begin(void)
{
    end();
    said[0] = rest[0] = '\0';
    judge = judge_new(&callbacks);
}

#define FROM_A(members) "{'id': 'r1', 'host': 'a', " members "}"
#define FROM_B(members) "{'id': 'r1', 'host': 'b', " members "}"
#define HAS(spans)      "'held_from': 500, 'traces': [" spans "]"
#define FOUND(id, have, want, more) \
    "{'id': '" id "', 'spans': 1, 'have': ['" have "'], 'want': ['" want "']" more "}"
#define LEAF     HAS(FOUND("1", "10", "20", ""))
#define ABOVE    HAS(FOUND("1", "20", "20", ""))
#define ROOT     HAS(FOUND("1", "10", "10", ""))
#define NOT_HELD "its ring does not reach back to this trace\n"
#define COMPLETE "1 complete: a, b\n|"
#define SHORT    "1 incomplete: b: " NOT_HELD

/* Requests the trace 1 at JUDGE_AT. The answers come 230 ms later: 200 ms without a stall. a, b:
 * their members; b NULL: no answer. Compares the calls of the judge at once, then "|", and those
 * from the deadline on; and the rest of the verdict, unless NULL. */
static void check(int64_t begin_ns, const char *a, const char *b, const char *expected,
                  const char *expected_rest)
{
    char text[512];

    begin();
    ask_from("r1", JUDGE_AT, begin_ns, 1, 1, begin_ns ? NULL : "k");
    judge_note_stall(judge, 30);
    (void)snprintf(text, sizeof(text), FROM_A("%s"), a);
    answer_at(230, text);
    (void)snprintf(text, sizeof(text), FROM_B("%s"), b);
    if (b)
        answer_at(230, text);
    (void)judge_due(judge, 329);
    say("|");
    (void)judge_due(judge, 330);
    (void)judge_due(judge, 331);
    CHECK_TEXT(said, expected);
    if (expected_rest)
        CHECK_TEXT(rest, expected_rest);
}

TEST(test_complete)
{
    check(1000, LEAF, ABOVE, COMPLETE, "rule, 1000, 2 of a, b, 0 missing 0, ");
    check(1000, LEAF, NULL, "|1 incomplete: 1 parent that no host has; b: has not answered\n",
          "rule, 1000, 1 of a, 1 missing 20, ");
    check(1000, LEAF, "'error': 'e'", "|1 incomplete: 1 parent that no host has; b: e\n", NULL);
    check(1000, ROOT, "'error': 'e'", "1 incomplete: b: e\n|",
          "rule, 1000, 1 of a, b, 0 missing 0, ");
    begin();
    ask("r1", 1, 1, NULL);
    judge_doubt(judge, "r0", "unknown");
    judge_doubt(judge, "r1", "d");
    answer(FROM_A("'error': 'e', 'traces': [{'id': '1', 'want': ['21', '20'], 'cut': true}]"));
    (void)judge_due(judge, 100);
    CHECK_TEXT(said,
               "1 incomplete: no host has a span of this trace; 2 parents that no host has; d; "
               "too many spans to tell whether all are there; a: e; b: has not answered\n");
}

/* A host whose rings do not reach back to the trace's begin may have lost spans of the trace. */
TEST(test_held)
{
    check(1000, ROOT, "'held_from': 1000", COMPLETE, NULL);
    check(1000, ROOT, "'held_from': 1001", SHORT "|", NULL);
    check(1000, "'held_from': 2000000", "'held_from': 3000000",
          "1 incomplete: no host has a span of this trace; a: its ring does not "
          "reach back to this trace; b: " NOT_HELD "|",
          "rule, 1000, 0 of a, b, 0 missing 0, a: 1970-01-01T00:00:00.002Z, "
          "b: 1970-01-01T00:00:00.003Z");
    /* held_from of one trace (spans of SDKs) counts for that trace only */
    check(1000, ROOT, HAS(FOUND("1", "11", "11", ", 'held_from': 4000000")), SHORT "|",
          "rule, 1000, 2 of a, b, 0 missing 0, b: 1970-01-01T00:00:00.004Z");
    check(1000, ROOT, HAS(FOUND("2", "11", "11", ", 'held_from': 4000000")), COMPLETE,
          "rule, 1000, 1 of a, b, 0 missing 0, ");
}

/* The begin is that of the request or of the first span. If both are unknown, as for a person's
 * request, the verdict has the time of the request. */
TEST(test_begin)
{
    check(0, HAS(""), "'reach_ms': 9", "1 incomplete: no host has a span of this trace\n|",
          "rule by hand, 1000000000, 0 of a, b, 0 missing 0, ");
    check(0, HAS(FOUND("1", "10", "20", ", 'begin': 800")),
          HAS(FOUND("1", "11", "10", ", 'begin': 700")),
          "|1 incomplete: 1 parent that no host has\n",
          "rule by hand, 700, 2 of a, b, 1 missing 20, ");
    check(0, HAS(FOUND("1", "10", "10", ", 'begin': 2000")), "'held_from': 2001", SHORT "|", NULL);
    check(1000, HAS(FOUND("1", "10", "10", ", 'begin': 3000")), "'held_from': 2000", SHORT "|",
          NULL);
    check(3000, HAS(FOUND("1", "10", "10", ", 'begin': 1000")), "'held_from': 2000", SHORT "|",
          NULL);
}

#define WAY(held, more) "'held_from': 1, 'held_us': " held more

/* The host took 150 ms. So the request was on its way for at most 49999999 ns, and the host's times
 * before the request may be that much later here. */
TEST(test_way)
{
    const int64_t begin_ns = 900000000;

    check(889999999, ROOT, WAY("160000", ", 'took_us': 150000"), COMPLETE, NULL);
    check(889999998, ROOT, WAY("160000", ", 'took_us': 150000"), SHORT "|",
          "rule, 889999998, 1 of a, b, 0 missing 0, b: 1970-01-01T00:00:00.889Z");
    check(begin_ns, ROOT, WAY("100000", ""), COMPLETE, NULL);
    check(begin_ns - 1, ROOT, WAY("100000", ""), SHORT "|", NULL);
    check(begin_ns, ROOT, WAY("100000", ", 'took_us': 500000"), COMPLETE, NULL);
    /* a trace that began before the searched time is requested once more */
    check(begin_ns, ROOT, WAY("160000", ", 'took_us': 150000, 'reach_ms': 149"), COMPLETE, NULL);
    check(begin_ns, ROOT, WAY("160000", ", 'took_us': 150000, 'reach_ms': 148"),
          "1 began at 900000000\n|" SHORT, NULL);
    check(begin_ns, ROOT, WAY("100000", ", 'reach_ms': 100"), COMPLETE, NULL);
    check(begin_ns, ROOT, WAY("100000", ", 'reach_ms': 99"), "1 began at 900000000\n|" SHORT, NULL);
    check(begin_ns, "'reach_ms': 101, " LEAF,
          "'reach_ms': 2100, " HAS(FOUND("1", "20", "20", ", 'begin': 700000000")),
          "1 began at 700000000\n|1 incomplete: a: " NOT_HELD, NULL);
    /* so is a trace whose missing parent may have ended before that time */
    check(begin_ns, "'reach_ms': 101, " LEAF, HAS(""),
          "|1 began at 0\n1 incomplete: 1 parent that no host has\n", NULL);
    check(begin_ns, "'reach_ms': 101, " ROOT, NULL, "|1 incomplete: b: has not answered\n", NULL);

    /* the time of a late answer says nothing about the way of the request */
    begin();
    ask_from("r1", JUDGE_AT, begin_ns, 1, 1, NULL);
    answer(FROM_A(LEAF));
    answer_at(60, FROM_B(WAY("160000", ", 'took_us': 10000, 'reach_ms': 160")));
    answer_at(90, FROM_B("'late': true, 'took_us': 0, " ABOVE));
    (void)judge_due(judge, 95);
    CHECK_TEXT(said, "1 complete: a, b\n");
}

/* A parent may end later and come with a later request: the verdict waits for the deadline. */
TEST(test_later)
{
    json_t *away = json_pack("[s, s]", "c", "b");

    ask("r1", 1, 2, NULL);
    answer(FROM_A(HAS(FOUND("1", "10", "20", "") ", " FOUND("2", "11", "11", ""))));
    CHECK(judge_due(judge, 99) == 100 && judge_open(judge) == 2);
    CHECK(!judge_is_answered(judge, "r1", NULL) && judge_is_answered(judge, "r1", away));
    answer(FROM_B(HAS("")));
    answer(FROM_B(ABOVE)); /* a second answer does not count */
    CHECK(judge_is_answered(judge, "r1", NULL) && judge_is_answered(judge, "r0", NULL));
    CHECK(judge_due(judge, 99) == 100 && judge_open(judge) == 1);
    ask("r2", 1, 2, NULL);
    CHECK(judge_due(judge, 100) == 300100); /* this host has not answered yet */
    CHECK_TEXT(said, "2 complete: a, b\n1 left to a later one\n");
    answer("{'id': 'r2', 'host': 'a'}");
    CHECK(judge_due(judge, 100) == INT64_MAX);
    CHECK_TEXT(said, "2 complete: a, b\n1 left to a later one\n"
                     "1 incomplete: no host has a span of this trace; b: has not answered\n"
                     "2 incomplete: no host has a span of this trace; b: has not answered\n");
    json_decref(away);
}

/* A stopped process reads no answers: the stall does not count as silence of other hosts. This
 * host's own answer has five minutes. */
TEST(test_stall)
{
    ask("r1", 1, 1, NULL);
    CHECK(judge_due(judge, 50) == 300050);
    judge_note_stall(judge, 5000);
    CHECK(judge_due(judge, 305049) == 305050);
    answer(FROM_A(ROOT));
    CHECK(judge_due(judge, 50) == 100);
    judge_note_stall(judge, 5000);
    CHECK(judge_due(judge, 5099) == 5100);
    CHECK_TEXT(said, "");
    (void)judge_due(judge, 5100);
    CHECK_TEXT(said, "1 incomplete: b: has not answered\n");
}

/* Compares the calls of the judge when another host requests the trace. */
static void check_yield(int64_t at_ns, const char *id, struct trace_id trace, const char *expected)
{
    struct request *other = request_new(id, "b");

    other->at_ns = at_ns;
    (void)request_add(other, trace, 0, "");
    said[0] = '\0';
    judge_yield(judge, other);
    CHECK_TEXT(said, expected);
    requests_free(other);
}

/* The latest request judges: of two that were made at one time, that with the greater id. A
 * person's request and a judged trace are left to no other. */
TEST(test_yield)
{
    static const struct trace_id ids[] = {{0, 1}, {0, 2}, {8, 3}, {9, 3}};
    struct request *request = request_at("r1", 1, NULL);

    for (unsigned i = 0; i < 4; i++)
        (void)request_add(request, ids[i], 1000, "");
    CHECK(asks(request, NULL));
    ask("r0", 2, 2, "k");
    answer(FROM_A(HAS(FOUND("2", "10", "10", "") ", " FOUND("80000000000000003", "11", "11", ""))));
    answer(FROM_B(HAS("{'id': '1', 'want': ['5']}, {'id': '90000000000000003', 'want': ['5']}")));
    (void)judge_due(judge, 1);
    CHECK_TEXT(said, "2 complete: a, b\n3 complete: a, b\n");
    check_yield(0, "x", ids[0], "");
    check_yield(1, "q", ids[0], "");
    check_yield(1, "r1", ids[0], "");
    check_yield(2, "x", ids[1], "");
    check_yield(2, "x", (struct trace_id){4, 3}, "");
    check_yield(1, "r2", ids[3], "3 left to another\n");
    check_yield(2, "a", ids[0], "1 left to another\n");
    check_yield(3, "a", ids[0], "");
    CHECK(judge_open(judge) == 1);
}

/* ---- requests of persons ---- */

TEST(test_by_hand)
{
    ask("r1", 1, 2, "k");
    check_kept("{'id':'k','more':0,'done':false,'traces':["
               "{'id':'00000000000000000000000000000001','spans':0,'missing':0,'cut':false,"
               "'hosts':[]},{'id':'00000000000000000000000000000002','spans':0,'missing':0,"
               "'cut':false,'hosts':[]}],"
               "'hosts':[{'host':'a','state':'waiting','spans':0,'held_from':null},"
               "{'host':'b','state':'waiting','spans':0,'held_from':null}]}");
    answer(FROM_B("'held_from': 2000000, 'error': 'e', 'more': -3, 'traces': [{'id': '7'}, "
                  "{'id': '2', 'spans': -5, 'have': ['11'], 'want': ['30'], 'cut': true}, "
                  "{'id': '1', 'spans': 1, 'have': ['10'], 'want': ['20']}]"));
    answer(FROM_B("'late': true, 'error': 'no', 'traces': ["
                  "{'id': '1', 'spans': 2, 'have': ['12'], 'want': ['30']}]"));
    (void)judge_due(judge, 1);
    (void)judge_due(judge, 300001);
    check_kept("{'id':'k','more':0,'done':true,'traces':["
               "{'id':'00000000000000000000000000000001','spans':3,'missing':2,'cut':false,"
               "'hosts':['b']},{'id':'00000000000000000000000000000002','spans':0,'missing':0,"
               "'cut':true,'hosts':['b']}],"
               "'hosts':[{'host':'a','state':'away','spans':0,'held_from':null},"
               "{'host':'b','state':'answered','spans':3,"
               "'held_from':'1970-01-01T00:00:00.002Z','error':'e'}]}");
    CHECK(judge_json(judge, "nobody's") == NULL);
}

/* A request for the traces of a service is done when the listed traces are done. Traces that the
 * answer does not list count as left out. Listed traces are requested while judge_due() runs: it
 * must not free the entry that it visits. */
TEST(test_service)
{
    for (unsigned i = 0; i < 80; i++)
        CHECK(asks(request_at("", 1, "osd"), "l"));
    CHECK(asks(request_at("r1", 1, "o"), "k"));
    answer(FROM_A("'more': 7, 'traces': [{'id': '1', 'spans': 1, 'want': ['2']}, {'id': '2'}]"));
    CHECK(judge_due(judge, 99) == 100 && judge_open(judge) == 83);
    CHECK_TEXT(said, "");
    CHECK(judge_due(judge, 100) == 300099 && judge_open(judge) == 82);
    CHECK_TEXT(said, "2 listed for k, 7 left out\n");
    check_kept("{'id':'k','more':7,'done':false,'traces':["
               "{'id':'00000000000000000000000000000001','spans':1,'missing':0,'cut':true,"
               "'hosts':['a']},{'id':'00000000000000000000000000000002','spans':0,'missing':0,"
               "'cut':true,'hosts':['a']}],"
               "'hosts':[{'host':'a','state':'answered','spans':1,'held_from':null},"
               "{'host':'b','state':'away','spans':0,'held_from':null}]}");
    (void)judge_due(judge, 300099);
    CHECK(strlen(said) == 81 * strlen("0 listed for l, 0 left out\n"));
}

/* At most 1088 requests are open. Of persons' requests that are done, the newest 64 stay. */
TEST(test_many_requests)
{
    for (unsigned i = 0; i < 1088; i++) {
        const char name[2] = {(char)(i < 68 ? '0' + i : '\0'), '\0'};

        ask("r1", 1, i == 2, name[0] ? name : NULL);
    }
    CHECK(!asks(request_at("r1", 1, NULL), NULL));
    (void)judge_due(judge, 1);
    for (unsigned i = 0; i < 68; i++) {
        const char name[2] = {(char)('0' + i), '\0'};
        json_t *kept = judge_json(judge, name);

        CHECK(!kept == (i < 4 && i != 2));
        json_decref(kept);
    }
    for (unsigned i = 65; i < 1088; i++)
        CHECK(asks(request_at("r1", 1, NULL), NULL));
    CHECK(!asks(request_at("r1", 1, NULL), NULL));
}

/* Messages of other hosts are not trusted. */
TEST(test_nonsense)
{
    ask("r1", 1, 1, NULL);
    answer("{}");
    answer("{'id': 1, 'host': []}");
    answer("{'id': 'r1'}");
    answer("{'id': 'r1', 'host': 'c', 'traces': [1, {}, {'id': 'zz'}, "
           "{'id': '1', 'spans': -5, 'have': [7, '', 'xyz'], 'want': {}}]}");
    answer(FROM_A(HAS(FOUND("7", "10", "10", "")))); /* not requested */
    (void)judge_due(judge, 100);
    CHECK_TEXT(said, "1 incomplete: no host has a span of this trace; b: has not answered\n");
    CHECK_TEXT(rest, "rule, 1000, 0 of a, c, 0 missing 0, ");
}

CHECK_MAIN_EACH(begin, end)
