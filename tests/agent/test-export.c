/*
 * The agent's export: exporters and pipelines that cannot be opened, the names of its file, and
 * spans that wait in the spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "plugin/starvation/starve.h"
#include "service/in_loop.h"
#include "tools/agent/feed.h"
#include "tools/agent/waiting.h"
#include "tools/agent/wants.h"
#include "tools/base/json.h"
#include "tools/base/say.h"
#include "work/spans.h"

#include <stdlib.h>
#include <unistd.h>

#define COLLECTOR "http://127.0.0.1:1" /* nobody listens */

static char folder[] = "/tmp/test-export.XXXXXX", place[64], moved[64], file[80];
static unsigned failures;               /* calls of export_calls.failed() */
static unsigned answers, empty_answers; /* of the feed: all, and those without JSON */
static json_t *ended;                   /* the file of the last run; NULL: none */
static struct export *export;           /* the open one */
static struct counts totals;            /* of the exports of a test */
static struct error error;
static struct config *to_collector, *to_file, *to_nowhere;

static void fail(void *context)
{
    (void)context;
    failures++;
}

static struct config *configure(const char *to)
{
    static const struct config_request request = {.section = "agent", .usage = ""};
    static char program[] = "test-export", none[] = "--config=/dev/null";
    char endpoint[256], state[256];
    char *argv[] = {program, none, endpoint, state, NULL};
    int status;

    (void)snprintf(endpoint, sizeof(endpoint), "--endpoint=%s", to);
    (void)snprintf(state, sizeof(state), "--state-dir=%s", place);
    return config_read(&request, 4, argv, &status);
}

static void open_export(const struct config *config)
{
    const struct export_calls calls = {fail, fail, NULL}; /* without the loop, nothing settles */

    failures = 0;
    totals = (struct counts){.output = {.spans = 0}};
    export = export_open(loop, config, ended, &calls, &error);
    CHECK(export && export_given(export) == 0 && export_settled(export) == 0);
}

static bool close_export(void)
{
    bool is_delivered;

    json_decref(ended);
    is_delivered = export_close(export, &totals, &ended);
    CHECK(counts_add_up(&totals) && totals.output.waiting == 0);
    return is_delivered;
}

static void add_span(uint64_t id)
{
    struct span span = {.trace_id = 7, .id = id, .start_ns = 1000000, .end_ns = 3000000};
    struct counts now = {.output = {.spans = 0}};
    const uint64_t given = export_given(export);

    export_add_own(export, &span);
    CHECK(export_given(export) == given + 1 && export_settled(export) <= given + 1);
    export_add_account(export, &now, false);
    CHECK(now.output.spans == given + 1 && now.output.held == 0 && counts_add_up(&now));
}

/* Checks that the export cannot take this configuration, and that it uses the old one again. */
static void check_refused(const struct config *old, const struct config *config, const char *why)
{
    const uint64_t given = export_given(export);

    CHECK(!export_change(export, config, &error) && strstr(error.text, why));
    CHECK(failures == 0 && export_is_same(export, old) && export_check(export));
    CHECK(export_given(export) == given && export_settled(export) == given);
}

static size_t spans_in(const char *name)
{
    json_t *spans = json_load_file(name + strlen("file:"), 0, NULL);
    const size_t count = json_array_size(spans);

    json_decref(spans);
    return count;
}

/* ---- an exporter that cannot be opened again ------------------------------------------------- */

TEST(test_reopen_fails_twice)
{
    struct config *full = configure("file:/dev/full");
    struct pipeline pipeline = {.shared = NULL};
    struct span span = {.trace_id = 1, .id = 1};

    open_export(to_collector);
    check_refused(to_collector, to_nowhere, "/none");
    CHECK(rename(place, moved) == 0 && symlink("/none", place) == 0); /* no room for its spool */
    CHECK(!export_change(export, to_nowhere, &error) && strstr(error.text, "/none"));
    CHECK(failures == 1);
    CHECK(!export_is_same(export, to_collector) && !export_is_same(export, to_nowhere));
    CHECK(!export_check(export) && failures == 1);
    /* calls that the agent may still make until its loop ends */
    export_add_own(export, &span);
    CHECK(!export_open_pipeline(export, &pipeline, &error));
    pipeline_close(&pipeline);
    CHECK(export_given(export) == 0 && export_settled(export) == 0);
    CHECK(!close_export() && !ended && totals.output.spans == 0);
    CHECK(unlink(place) == 0 && rename(moved, place) == 0);
    /* an old exporter that fails at its end leaves a mark for the exit status only */
    open_export(full);
    add_span(1);
    CHECK(export_change(export, to_collector, &error) && export_check(export) && !close_export());
    config_free(full);
}

/* After a reload that fails, the agent continues the old file. It continues no other file. */
TEST(test_file_is_continued)
{
    char there[100];
    struct config *other;
    json_t *spans = json_pack("[{}]");

    (void)snprintf(there, sizeof(there), "%s.there", file);
    other = configure(there);
    open_export(to_file);
    add_span(1);
    check_refused(to_file, to_nowhere, "/none");
    add_span(2);
    /* another exporter has written this one */
    CHECK(json_dump_file(spans, there + strlen("file:"), 0) == 0);
    check_refused(to_file, other, "is not overwritten");
    add_span(3);
    CHECK(unlink(there + strlen("file:")) == 0 && export_change(export, other, &error));
    CHECK(export_is_same(export, other) && export_settled(export) == 3);
    CHECK_TEXT(export_file(export), there);
    add_span(4);
    CHECK(close_export());
    CHECK_TEXT(text_in(ended, "endpoint"), there);
    CHECK_TEXT(text_in(ended, "format"), "zipkin");
    CHECK(totals.output.spans == 4 && totals.output.outcome[OUTCOME_ACCEPTED] == 4);
    CHECK(spans_in(file) == 3 && spans_in(there) == 1);
    json_decref(spans);
    CHECK(unlink(file + strlen("file:")) == 0);
    config_free(other);
}

/* Gives one span to an export that is opened as at the start of the agent. */
static void run_once(const char *expected)
{
    open_export(to_file);
    CHECK_TEXT(export_file(export), expected);
    add_span(1);
    CHECK(close_export());
}

/* The agent continues the file of a run that ended normally. After a kill, or if somebody has
 * changed the file, or for another format, the agent takes the next name. */
TEST(test_file_at_start)
{
    char names[4][100];
    json_t *spans = json_pack("{ss}", "of", "another program");

    for (unsigned i = 0; i < 4; i++)
        (void)snprintf(names[i], sizeof(names[i]), i ? "%s.%u" : "%s", file, i + 1);
    json_decref(ended);
    ended = NULL;
    (void)fclose(fopen(file + strlen("file:"), "w")); /* an empty file is nobody's */
    run_once(names[0]);
    run_once(names[0]);
    json_decref(ended); /* a kill */
    ended = NULL;
    run_once(names[1]);
    run_once(names[1]);
    CHECK(spans_in(file) == 2 && spans_in(names[1]) == 2);
    CHECK(json_dump_file(spans, names[1] + strlen("file:"), 0) == 0);
    run_once(names[2]);
    run_once(names[2]);
    (void)json_object_set_new(ended, "format", json_string("another"));
    run_once(names[3]);
    CHECK(unlink(file + strlen("file:")) == 0); /* the user takes the first file away */
    run_once(file);
    CHECK(spans_in(file) == 1 && spans_in(names[2]) == 2 && spans_in(names[3]) == 1);
    for (unsigned i = 0; i < 4; i++)
        CHECK(unlink(names[i] + strlen("file:")) == 0);
    json_decref(spans);
}

/* Spans that wait in the spool can be read, in both formats. */
static void check_waiting(const char *endpoint)
{
    struct config *config = configure(endpoint);
    char spool[100];
    json_t *spans;
    int64_t live;

    open_export(config);
    add_span(8);
    add_span(9);
    (void)snprintf(spool, sizeof(spool), "%s/spool", place);
    CHECK_TEXT(export_spool(export), spool);
    CHECK(close_export() && !ended && totals.output.outcome[OUTCOME_SPOOLED] == 2);
    live = starve.live;
    spans = waiting_spans(spool);
    CHECK(json_array_size(spans) == 2);
    CHECK_TEXT(text_in(json_array_get(spans, 0), "id"), "0000000000000008");
    CHECK_TEXT(text_in(json_array_get(spans, 1), "id"), "0000000000000009");
    CHECK(starve.live == live - 2); /* the names of one file, which libc allocates */
    json_decref(spans);
    CHECK(rename(spool, moved) == 0);
    spans = waiting_spans(spool);
    CHECK(json_is_array(spans) && json_array_size(spans) == 0);
    json_decref(spans);
    (void)snprintf(spool, sizeof(spool), "rm -r %s", moved);
    CHECK(system(spool) == 0);
    config_free(config);
}

TEST(test_waiting)
{
    check_waiting(COLLECTOR);
    check_waiting(COLLECTOR "/v1/traces");
}

/* ---- a pipeline that cannot be opened -------------------------------------------------------- */

static char fed[512]; /* the last answer */

static void answer(void *context, json_t *found)
{
    (void)context;
    answers++;
    empty_answers += !found;
    fed[json_dumpb(found, fed, sizeof(fed) - 1, JSON_COMPACT)] = '\0';
    json_decref(found);
}

/* Feeds an empty record. The allocation number fail_at fails. Returns true if an allocation has
 * failed. */
static bool feed_starved(struct feed *feed, const struct scan_order *order, uint64_t fail_at)
{
    struct feed_input input = {.order = order, .service = ""};
    const int64_t live = starve.live;

    CHECK((input.records.list = calloc(1, sizeof(*input.records.list))) != NULL);
    starve.count = starve.failed = 0;
    starve.fail_at = fail_at;
    feed_start(feed, &input);
    starve.fail_at = 0;
    feed_hurry(feed);
    CHECK(starve.live == live && !input.records.list);
    return starve.failed > 0;
}

static json_int_t times_said(const char *id)
{
    json_t *said = say_last(), *one;
    json_int_t times = 0;
    size_t i;

    json_array_foreach(said, i, one)
    {
        if (strcmp(json_string_value(json_object_get(one, "id")), id) == 0)
            times += json_integer_value(json_object_get(one, "count"));
    }
    json_decref(said);
    return times;
}

/* Each input has an answer. If the export cannot take an input, the agent logs a message. */
TEST(test_feed_is_not_opened)
{
    const struct test_span span = {5, 1, 0, 500, 400, "a", "n", 1, false, NULL, NULL};
    struct scan_order order = {.selection = selection_new()};
    struct feed_input input = {.order = &order, .service = ""};
    const json_int_t said = times_said("BK4054");
    unsigned starved = 0;
    struct feed *feed;

    open_export(to_file);
    answers = empty_answers = 0;
    feed = feed_new(loop, export, "host", NULL, answer, NULL);
    CHECK(feed && order.selection);
    while (feed_starved(feed, &order, starved + 1))
        starved++;
    CHECK(starved > 10 && answers == starved + 1);
    CHECK(empty_answers > 10 && empty_answers <= starved);
    CHECK(times_said("BK4054") - said == empty_answers);
    CHECK_TEXT(fed, "{\"untold\":0,\"traces\":[]}");
    /* a span that was sent before */
    add_test_span(&input.sdk_spans, &span);
    CHECK(selection_add(order.selection, NULL, 0, 0, NULL));
    feed_start(feed, &input);
    feed_hurry(feed);
    CHECK_TEXT(
        fed, "{\"untold\":0,\"traces\":[{\"id\":\"00000000000000070000000000000005\",\"begin\":500,"
             "\"spans\":1,\"have\":[\"0000000000000001\"],\"want\":[],\"cut\":false}]}");
    feed_free(feed);
    selection_free(order.selection);
    CHECK(close_export());
    CHECK(totals.output.spans == 1 && totals.output.outcome[OUTCOME_SKIPPED] == 1);
}

/* Traces beyond the limit of open requests get no verdict, so they are not open. */
TEST(test_too_many_requests)
{
    struct agent agent = {.config = to_collector,
                          .loop = loop,
                          .collected = collected_new(),
                          .collected_file = "/none/all",
                          .changed_file = "/none/changed"};
    struct wants *wants = wants_open(&agent, &error);
    const struct collected_trace *trace;
    uint64_t open = 0, asked = 1200;

    agent.scan_queue.max = asked;
    for (uint64_t i = 1; i <= asked; i++) {
        struct request *request = request_new("", "host");

        CHECK(request_add(request, (struct trace_id){0, i}, 0, "slow"));
        wants_send_for_alarms(wants, request);
    }
    collected_for_each(trace, agent.collected) open += trace->is_open;
    CHECK(open < asked && open + agent.totals.incomplete_untold == asked);
    timer_clear(loop, &agent.step);
    wants_close(wants);
    agent_close(&agent);
}

int main(void)
{
    char command[128];

    CHECK(mkdtemp(folder) && (loop = loop_new(&signals)));
    (void)snprintf(place, sizeof(place), "%s/here", folder);
    (void)snprintf(moved, sizeof(moved), "%s/there", folder);
    (void)snprintf(file, sizeof(file), "file:%s/spans", place);
    (void)snprintf(command, sizeof(command), "mkdir %s", place);
    CHECK(system(command) == 0);
    to_collector = configure(COLLECTOR);
    to_file = configure(file);
    to_nowhere = configure("file:/none/spans");
    check_run();
    config_free(to_collector);
    config_free(to_file);
    config_free(to_nowhere);
    loop_free(loop);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_status();
}
