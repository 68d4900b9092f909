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
#include "tools/base/json.h"
#include "tools/base/say.h"

#include <stdlib.h>
#include <unistd.h>

#define COLLECTOR "http://127.0.0.1:1" /* nobody listens */

static char folder[] = "/tmp/test-export.XXXXXX", place[64], moved[64], file[80];
static unsigned failures;               /* calls of export_calls.failed() */
static unsigned answers, empty_answers; /* of the feed: all, and those without JSON */

static void fail(void *context)
{
    (void)context;
    failures++;
}

static void settle(void *context)
{
    (void)context;
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

static json_t *ended; /* the file of the last run; NULL: none */

static struct export *open_export(const struct config *config)
{
    const struct export_calls calls = {fail, settle, NULL};
    struct error error = {""};
    struct export *export = export_open(loop, config, ended, &calls, &error);

    CHECK(export != NULL);
    CHECK_TEXT(error.text + (export ? strlen(error.text) : 0), "");
    return export;
}

static bool close_export(struct export *export, struct counts *totals)
{
    json_decref(ended);
    return export_close(export, totals, &ended);
}

/* ---- an exporter that cannot be opened again ------------------------------------------------- */

TEST(test_reopen_fails_twice)
{
    struct config *first = configure(COLLECTOR), *second = configure("file:/none/spans");
    struct export *export = open_export(first);
    struct pipeline pipeline = {.shared = NULL};
    struct counts totals = {.output = {.spans = 0}};
    struct error error = {""};
    struct span span = {.trace_id = 1, .id = 1};

    CHECK(rename(place, moved) == 0 && symlink("/none", place) == 0); /* no room for its spool */
    CHECK(!export_change(export, second, &error));
    CHECK(strstr(error.text, "/none") != NULL);
    CHECK(failures == 1);
    CHECK(!export_is_same(export, first) && !export_is_same(export, second));
    CHECK(!export_check(export) && failures == 1);
    /* calls that the agent may still make until its loop ends */
    export_add_own(export, &span);
    CHECK(!export_open_pipeline(export, &pipeline, &error));
    pipeline_close(&pipeline);
    CHECK(export_given(export) == 0 && export_settled(export) == 0);
    CHECK(!close_export(export, &totals));
    CHECK(totals.output.spans == 0);
    CHECK(unlink(place) == 0 && rename(moved, place) == 0);
    config_free(first);
    config_free(second);
}

/* The old exporter is used again. */
TEST(test_reopen_fails_once)
{
    struct config *first = configure(COLLECTOR), *second = configure("file:/none/spans");
    struct export *export = open_export(first);
    struct counts totals = {.output = {.spans = 0}};
    struct error error = {""};

    failures = 0;
    CHECK(!export_change(export, second, &error));
    CHECK(failures == 0 && export_is_same(export, first) && export_check(export));
    CHECK(close_export(export, &totals));
    config_free(first);
    config_free(second);
}

/* After a reload that fails, the agent continues the old file. It continues no other file. */
TEST(test_file_is_continued)
{
    struct config *first = configure(file), *second = configure("file:/none/spans");
    struct config *other;
    struct export *export = open_export(first);
    struct counts totals = {.output = {.spans = 0}};
    struct span span = {.trace_id = 1, .id = 1, .start_ns = 1, .end_ns = 2};
    char there[100];
    struct error error = {""};
    json_t *spans;

    (void)snprintf(there, sizeof(there), "%s.there", file);
    failures = 0;
    export_add_own(export, &span);
    CHECK(!export_change(export, second, &error));
    CHECK(failures == 0 && export_is_same(export, first) && export_check(export));
    export_add_own(export, &span);
    /* another exporter has written this one */
    other = configure(there);
    spans = json_pack("[{}]");
    CHECK(json_dump_file(spans, there + strlen("file:"), 0) == 0);
    json_decref(spans);
    CHECK(!export_change(export, other, &error) && strstr(error.text, "is not overwritten"));
    CHECK(failures == 0 && export_check(export));
    export_add_own(export, &span);
    CHECK(close_export(export, &totals));
    spans = json_load_file(file + strlen("file:"), 0, NULL);
    CHECK(json_array_size(spans) == 3 && totals.output.outcome[OUTCOME_ACCEPTED] == 3);
    json_decref(spans);
    CHECK(unlink(file + strlen("file:")) == 0);
    config_free(first);
    config_free(second);
    config_free(other);
}

static size_t spans_in(const char *name)
{
    json_t *spans = json_load_file(name + strlen("file:"), 0, NULL);
    const size_t count = json_array_size(spans);

    json_decref(spans);
    return count;
}

/* Gives one span to an export that is opened as at the start of the agent. */
static void run_once(const struct config *config, const char *expected)
{
    struct export *export = open_export(config);
    struct counts totals = {.output = {.spans = 0}};
    struct span span = {.trace_id = 1, .id = 1, .start_ns = 1, .end_ns = 2};

    CHECK_TEXT(export_file(export), expected);
    export_add_own(export, &span);
    CHECK(close_export(export, &totals));
}

/* The agent continues the file of a run that ended normally. After a kill, or if somebody has
 * changed the file, the agent takes the next name. */
TEST(test_file_at_start)
{
    struct config *config = configure(file);
    char second[100], third[100];
    json_t *spans = json_pack("{ss}", "of", "another program");

    (void)snprintf(second, sizeof(second), "%s.2", file);
    (void)snprintf(third, sizeof(third), "%s.3", file);
    json_decref(ended);
    ended = NULL;
    run_once(config, file);
    run_once(config, file);
    CHECK(spans_in(file) == 2);
    json_decref(ended); /* a kill */
    ended = NULL;
    run_once(config, second);
    run_once(config, second);
    CHECK(spans_in(file) == 2 && spans_in(second) == 2);
    CHECK(json_dump_file(spans, second + strlen("file:"), 0) == 0);
    run_once(config, third);
    run_once(config, third);
    CHECK(spans_in(file) == 2 && spans_in(third) == 2);
    CHECK(unlink(file + strlen("file:")) == 0); /* the user takes the first file away */
    run_once(config, file);
    CHECK(spans_in(file) == 1 && spans_in(third) == 2);
    CHECK(unlink(file + strlen("file:")) == 0 && unlink(second + strlen("file:")) == 0 &&
          unlink(third + strlen("file:")) == 0);
    json_decref(spans);
    json_decref(ended);
    ended = NULL;
    config_free(config);
}

/* Spans that wait in the spool can be read, in both formats. */
static void check_waiting(const char *endpoint)
{
    struct config *config = configure(endpoint);
    struct export *export = open_export(config);
    struct counts totals = {.output = {.spans = 0}};
    struct span span = {.trace_id = 7, .id = 8, .start_ns = 1000000, .end_ns = 3000000};
    json_t *spans;
    char spool[100];

    export_add_own(export, &span);
    span.id = 9;
    export_add_own(export, &span);
    (void)snprintf(spool, sizeof(spool), "%s", export_spool(export));
    CHECK(close_export(export, &totals));
    spans = waiting_spans(spool);
    CHECK(json_array_size(spans) == 2);
    CHECK_TEXT(text_in(json_array_get(spans, 0), "id"), "0000000000000008");
    CHECK_TEXT(text_in(json_array_get(spans, 1), "id"), "0000000000000009");
    json_decref(spans);
    CHECK(rename(spool, moved) == 0);
    spans = waiting_spans(spool);
    CHECK(json_array_size(spans) == 0);
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

static void answer(void *context, json_t *found)
{
    (void)context;
    answers++;
    empty_answers += !found;
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
    struct config *config = configure(file);
    struct export *export = open_export(config);
    struct feed *feed = feed_new(loop, export, "host", NULL, answer, NULL);
    struct scan_order order = {.selection = selection_new()};
    struct counts totals = {.output = {.spans = 0}};
    const json_int_t said = times_said("BK4054");
    unsigned starved = 0;

    CHECK(feed && order.selection);
    while (feed_starved(feed, &order, starved + 1))
        starved++;
    CHECK(starved > 10 && answers == starved + 1);
    CHECK(empty_answers > 10 && empty_answers <= starved);
    CHECK(times_said("BK4054") - said == empty_answers);
    feed_free(feed);
    selection_free(order.selection);
    CHECK(close_export(export, &totals));
    config_free(config);
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
    check_run();
    loop_free(loop);
    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
    return check_status();
}
