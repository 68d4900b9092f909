/*
 * The outputs that are made from the account's table, also while other threads change the counters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/account/account.h"
#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/listen.h"
#include "babeltrace-plugin/account/stats_file.h"
#include "check.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "loopback.h"
#include "waits.h"

#include <fcntl.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- sums and lines ---- */

static struct counts plausible(void)
{
    return (struct counts){
        .input = {.events = 10,
                  .foreign = 2,
                  .unreadable = 1,
                  .trace_time_ns = INT64_C(1500000000987654321)},
        .core = {.events_in_span = 6, .events_late = 1, .spans_open = 2},
        .output = {.spans = 5,
                   .outcome = {[OUTCOME_ACCEPTED] = 3, [OUTCOME_DROPPED] = 1},
                   .waiting = 1},
    };
}

TEST(test_sums)
{
    struct counts counts = {0};

    CHECK(counts_add_up(&counts));
    counts = plausible();
    CHECK(counts_add_up(&counts));
    counts.output.waiting = 0;
    CHECK(!counts_add_up(&counts));
    counts = plausible();
    counts.input.events++;
    CHECK(!counts_add_up(&counts));
}

/* A spooled span is in two accounts, which must agree. */
TEST(test_spool_sums)
{
    struct counts counts = plausible();

    counts.output.outcome[OUTCOME_ACCEPTED] = 1;
    counts.output.outcome[OUTCOME_SPOOLED] = 2;
    CHECK(!counts_add_up(&counts));
    counts.output.spool = (struct spool_counts){.in_use = 1,
                                                .spans = 12,
                                                .found = 10,
                                                .outcome = {[OUTCOME_ACCEPTED] = 6},
                                                .expired = 1,
                                                .corrupt = 2,
                                                .waiting = 3};
    CHECK(counts_add_up(&counts));
    counts.output.spool.found--;
    CHECK(!counts_add_up(&counts));
    counts.output.spool.found++;
    counts.output.spool.corrupt--;
    CHECK(!counts_add_up(&counts));
}

/* Lines have the spool's counts only if there is a spool. */
TEST(test_spool_line)
{
    struct counts counts = plausible();
    char line[COUNTS_LINE_MAX];

    counts_line(&counts, LINE_WHOLE, line);
    CHECK(strstr(line, "spool") == NULL);
    counts.output.spool.in_use = 1;
    counts_line(&counts, LINE_WHOLE, line);
    CHECK(strstr(line, " + 0 spooled + 1 waiting; spool: 0 = 0 delivered + 0 refused + 0 invalid "
                       "+ 0 too large + 0 undelivered + 0 dropped + 0 expired + 0 corrupt + 0 in "
                       "it; lost by") != NULL);
    counts_line(&counts, LINE_SHORT, line);
    CHECK(strstr(line, "; spool: 0") != NULL && strstr(line, "spooled") == NULL);
}

TEST(test_lines)
{
    const struct counts none = {0};
    const struct counts counts = plausible();
    struct counts huge;
    char line[COUNTS_LINE_MAX];

    counts_line(&none, LINE_SHORT, line);
    CHECK_TEXT(line, "events: 0; spans: 0");
    counts_line(&counts, LINE_SHORT, line);
    CHECK_TEXT(line, "events: 10 = 6 in spans + 2 foreign + 1 unreadable + 1 late; "
                     "spans: 5 = 3 accepted + 1 dropped + 1 waiting; also: 2 spans open");
    counts_line(&counts, LINE_WHOLE, line);
    CHECK_TEXT(line,
               "events: 10 = 6 in spans + 2 foreign + 1 unreadable + 0 invalid + 0 no room"
               " + 0 duplicate + 1 late + 0 of processes; missing: 0 events, 0 annotations and "
               "tags, 0 spans cut short; "
               "spans: 5 = 3 accepted + 0 refused + 0 invalid + 0 too large + 0 undelivered"
               " + 1 dropped + 0 no memory + 1 waiting; lost by LTTng: 0 events, 0 packets; "
               "also: 2 spans open");
    memset(&huge, 0xff, sizeof(huge)); /* the longest numbers */
    counts_line(&huge, LINE_WHOLE, line);
    CHECK(strlen(line) < COUNTS_LINE_MAX - 1024);
}

/* ---- texts ---- */

static const struct run_info run = {
    .endpoint = (char *)"file:/tmp/\"quoted\"\\\n",
    .start_ns = INT64_C(1500000000123456789),
    .events_ns = INT64_C(1500000001000000000),
    .now_ns = INT64_C(1500000002050000000),
};

TEST(test_page)
{
    const struct counts counts = plausible();
    struct printer printer = {.has_failed = false};
    char *page;

    prometheus_print(&printer, &counts, &run);
    page = print_end(&printer);
    CHECK(strstr(page, "blkin_sink_info{version=\"" BLKIN_RELEASE
                       "\",endpoint=\"file:/tmp/\\\"quoted\\\"\\\\\\n\"} 1\n") != NULL);
    CHECK(strstr(page, "\nblkin_start_time_seconds 1500000000.123\n") != NULL);
    CHECK(strstr(page, "\nblkin_trace_time_seconds 1500000000.987\n") != NULL);
    CHECK(strstr(page, "\n# TYPE blkin_events_total counter\nblkin_events_total 10\n") != NULL);
    CHECK(strstr(page, "\n# TYPE blkin_spans_waiting gauge\nblkin_spans_waiting 1\n") != NULL);
    CHECK(page[strlen(page) - 1] == '\n');
    free(page);
}

TEST(test_stats)
{
    const struct counts counts = plausible();
    char *text = stats_text(&counts, &run);
    json_t *json = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_t *values = json_object_get(json, "counters");

    CHECK_TEXT(json_string_value(json_object_get(json, "endpoint")), run.endpoint);
    CHECK_TEXT(json_string_value(json_object_get(json, "started")), "2017-07-14T02:40:00.123Z");
    CHECK_TEXT(json_string_value(json_object_get(json, "written")), "2017-07-14T02:40:02.050Z");
    CHECK_TEXT(json_string_value(json_object_get(json, "state")), "running");
    CHECK_TEXT(json_string_value(json_object_get(json, "trace_time")), "2017-07-14T02:40:00.987Z");
    CHECK(json_object_size(values) == counters_count);
    CHECK(json_integer_value(json_object_get(values, "spans_accepted")) == 3);
    json_decref(json);
    free(text);
}

static bool may_be_at(const char *path, struct error *error)
{
    struct stats_file file;
    const bool is_open = stats_file_open(&file, path, error);

    stats_file_close(&file);
    return is_open;
}

/* Two sinks must not write one file. If the file exists, the second sink does not start. If not,
 * the first sink that writes owns the file. */
static void test_two_files(const char *path)
{
    const struct counts counts = plausible();
    struct stats_file first, second;
    struct error error;

    for (int exists = 0; exists < 2; exists++) {
        CHECK(stats_file_open(&first, path, &error));
        CHECK(stats_file_open(&second, path, &error) == !exists);
        for (int i = 0; i < 3; i++) {
            CHECK(stats_file_write(&first, &counts, &run, &error));
            CHECK(!may_be_at(path, &error));
            CHECK(strstr(error.text, "another sink writes it") != NULL);
        }
        if (!exists) { /* both have found no file: the first to write owns it */
            CHECK(!stats_file_write(&second, &counts, &run, &error));
            CHECK(strstr(error.text, "another sink writes it") != NULL);
        }
        stats_file_close(&second);
        stats_file_close(&first);
    }
    CHECK(unlink(path) == 0);
}

/* The sink does not replace files of other programs. test-params.sh has a regular file with another
 * text. */
TEST(test_file)
{
    const char *folder = getenv("TMPDIR");
    const struct counts counts = plausible();
    char path[512], link_path[520];
    struct stats_file stats;
    struct error error;
    struct stat status;

    (void)snprintf(path, sizeof(path), "%s/stats", folder);
    (void)snprintf(link_path, sizeof(link_path), "%s.link", path);
    test_two_files(path);
    CHECK(stats_file_open(&stats, path, &error));
    CHECK(stats_file_write(&stats, &counts, &run, &error));
    stats_file_close(&stats);
    CHECK(may_be_at(path, &error)); /* a file of an earlier run */
    CHECK(symlink(path, link_path) == 0);
    CHECK(!may_be_at(link_path, &error));
    CHECK(!may_be_at(folder, &error));
    CHECK(!may_be_at("/dev/null", &error));
    CHECK(!may_be_at("", &error));
    CHECK(unlink(link_path) == 0);
    CHECK(truncate(path, 0) == 0);
    CHECK(may_be_at(path, &error));
    CHECK(unlink(path) == 0);
    CHECK(stats_file_open(&stats, "/nowhere/stats", &error));
    CHECK(!stats_file_write(&stats, &counts, &run, &error));
    stats_file_close(&stats);
    CHECK(strstr(error.text, "/nowhere/stats") && strstr(error.text, "No such file"));
    CHECK(stat("/dev/null", &status) == 0 && S_ISCHR(status.st_mode));
}

/* ---- all outputs, while counters change ---- */

static struct {
    pthread_mutex_t lock;
    struct exporter_counts counts;
    atomic_int port;
    atomic_int lines;
    atomic_int scrapes;
    atomic_bool is_over;
} world = {.lock = PTHREAD_MUTEX_INITIALIZER};

static struct exporter_counts delivery(void *context)
{
    struct exporter_counts counts;

    (void)context;
    pthread_mutex_lock(&world.lock);
    counts = world.counts;
    pthread_mutex_unlock(&world.lock);
    return counts;
}

static void inform(void *context, const char *message)
{
    const char *port = strstr(message, "127.0.0.1:");

    (void)context;
    if (port)
        world.port = atoi(port + strlen("127.0.0.1:"));
    if (strstr(message, "events: "))
        world.lines++;
}

static void warn(void *context, const char *message)
{
    (void)context;
    fprintf(stderr, "%s\n", message);
    check_failures += strncmp(message, "trace time ", 11) != 0; /* a busy machine stops it */
}

/* Fills text with the answer of the metrics page; with "" if there is none. */
static void scrape(char *text, size_t size)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    const int fd = loopback_connect((uint16_t)world.port);
    size_t length = 0;
    ssize_t got = 1;

    if (send(fd, request, strlen(request), MSG_NOSIGNAL) > 0)
        while (length + 1 < size && (got = recv(fd, text + length, size - 1 - length, 0)) > 0)
            length += (size_t)got;
    close(fd);
    text[length] = '\0';
}

static uint64_t value_in(const char *page, const char *name)
{
    char line[128];
    const char *found;

    (void)snprintf(line, sizeof(line), "\n%s ", name);
    found = strstr(page, line);
    CHECK(found != NULL);
    return found ? strtoull(found + strlen(line), NULL, 10) : 0;
}

static void *scrape_all(void *context)
{
    static char page[65536];
    uint64_t last = 0;

    (void)context;
    while (!world.is_over) {
        uint64_t events, spans;

        scrape(page, sizeof(page));
        if (strncmp(page, "HTTP/1.1 200 OK\r\n", 17) != 0)
            continue; /* the sink ends */
        events = value_in(page, "blkin_events_total");
        spans = value_in(page, "blkin_spans_finished_total");
        CHECK(events == value_in(page, "blkin_events_in_spans_total") +
                            value_in(page, "blkin_events_foreign_total"));
        CHECK(spans == value_in(page, "blkin_spans_accepted_total") +
                           value_in(page, "blkin_spans_skipped_total") +
                           value_in(page, "blkin_spans_held") +
                           value_in(page, "blkin_spans_waiting"));
        CHECK(events >= last);
        last = events;
        world.scrapes++;
    }
    return NULL;
}

static void count_one(struct input_counts *input, struct assembler_counts *core)
{
    if (input->events++ % 3)
        input->foreign++;
    else
        core->events_in_span++;
    if (input->spans++ % 5 == 0) {
        input->spans_skipped++;
        return;
    }
    pthread_mutex_lock(&world.lock);
    world.counts.spans++;
    if (world.counts.spans % 2)
        world.counts.waiting++;
    else
        world.counts.outcome[OUTCOME_ACCEPTED]++;
    pthread_mutex_unlock(&world.lock);
}

TEST(test_threads)
{
    char path[512];
    const struct account_options options = {.endpoint = "http://h/?secret",
                                            .stats_file = path,
                                            .listen = "0",
                                            .period_ms = 1,
                                            .shows_progress = true};
    const struct account_callbacks callbacks = {delivery, inform, warn, NULL};
    struct input_counts input = {0};
    struct assembler_counts core = {0};
    struct counts final;
    struct error error;
    struct account *account;
    pthread_t scraper;
    const int64_t give_up_ms = clock_ms() + 120000;
    json_t *json;

    (void)snprintf(path, sizeof(path), "%s/stats", getenv("TMPDIR"));
    account = account_open(&options, &callbacks, &error);
    if (!account) {
        warn(NULL, error.text);
        return;
    }
    account_watch(account);
    CHECK(pthread_create(&scraper, NULL, scrape_all, NULL) == 0);
    while ((world.scrapes < 50 || world.lines < 300) && clock_ms() < give_up_ms) {
        count_one(&input, &core);
        input.trace_time_ns++;
        if (account_is_due(account))
            account_publish_now(account, &input, &core);
        json = json_load_file(path, 0, NULL); /* whole at any time */
        CHECK(json != NULL);
        json_decref(json);
    }
    world.is_over = true;
    pthread_join(scraper, NULL);
    final = account_end(account, &input, &core);
    CHECK(world.scrapes >= 50 && world.lines >= 300);
    CHECK(counts_add_up(&final) && final.input.events == input.events);
    CHECK(final.output.spans == input.events && final.output.held == 0);
    CHECK(final.output.outcome[OUTCOME_SKIPPED] == input.spans_skipped);
    json = json_load_file(path, 0, NULL);
    CHECK_TEXT(json_string_value(json_object_get(json, "state")), "ended");
    CHECK_TEXT(json_string_value(json_object_get(json, "endpoint")), "http://h/");
    json_decref(json);
    account_free(account);
    CHECK(unlink(path) == 0);
}

static unsigned warnings;

static void count_warning(void *context, const char *message)
{
    (void)context;
    (void)message;
    warnings++;
}

/* Each failure is counted, and the first one has a message. */
TEST(test_file_errors)
{
    const char *folder = getenv("TMPDIR");
    char gone[400], away[400], path[512], left[512];
    const struct account_options options = {
        .endpoint = "http://h/", .stats_file = path, .period_ms = 500};
    const struct account_callbacks callbacks = {delivery, inform, count_warning, NULL};
    const struct input_counts input = {0};
    const struct assembler_counts core = {0};
    struct account *account;
    struct error error;

    (void)snprintf(gone, sizeof(gone), "%s/gone", folder);
    (void)snprintf(path, sizeof(path), "%s/stats", gone);
    CHECK(mkdir(gone, 0700) == 0);
    account = account_open(&options, &callbacks, &error);
    (void)snprintf(away, sizeof(away), "%s/away", folder);
    (void)snprintf(left, sizeof(left), "%s/stats", away);
    CHECK(account && rename(gone, away) == 0);
    if (!account)
        return;
    WAIT_UNTIL(account_counts(account).display.file_errors >= 2);
    CHECK(account_end(account, &input, &core).display.file_errors >= 3 && warnings == 1);
    account_free(account);
    CHECK(unlink(left) == 0 && rmdir(away) == 0);
}

/* ---- a live session that stands still ---- */

#define STUCK 99 /* a value of streams_open, which stands for: the graph's thread is stuck */

static void check_message(struct watch *watch, const struct input_counts *input, int64_t now_ms,
                          const char *expected)
{
    const bool is_stuck = input->streams_open == STUCK;
    char message[WATCH_MESSAGE_MAX];

    CHECK(watch_look(watch, input, is_stuck, now_ms, message) == (expected != NULL));
    if (expected)
        CHECK_TEXT(message, expected);
}

TEST(test_watch)
{
    struct input_counts input = {0};
    struct watch watch;

    watch_begin(&watch, 1000);
    check_message(&watch, &input, 10999, NULL);
    check_message(
        &watch, &input, 11000,
        "trace time stands still for 10 s: there is no session of this name, or no program "
        "has recorded in it yet (babeltrace2 -i lttng-live net://HOST lists the sessions)");
    check_message(&watch, &input, 99000, NULL);
    input.streams_open = 2; /* the first program starts: its first event is awaited */
    check_message(&watch, &input, 99500, NULL);
    CHECK(watch.is_still && !watch.is_stalled);
    input = (struct input_counts){.streams_open = 2, .trace_time_ns = 7};
    check_message(&watch, &input, 100000, "trace time continues after 99 s");
    for (int64_t now_ms = 101000; now_ms < 200000; now_ms += 9000) {
        input.trace_time_ns++;
        check_message(&watch, &input, now_ms, NULL);
    }
    check_message(
        &watch, &input, 211000,
        "trace time stands still for 20 s: LTTng's session or consumer daemon hangs, or a "
        "program was killed while it recorded; events may be lost");
    CHECK(watch.is_stalled);
    input.trace_time_ns = 1; /* another session may have another clock */
    check_message(&watch, &input, 212000, "trace time continues after 21 s");
    input.streams_open = 0;
    check_message(
        &watch, &input, 222000,
        "trace time stands still for 10 s: the session has ended, or its daemons are gone; "
        "waiting for another session of this name");
    input = (struct input_counts){.streams_open = STUCK, .trace_time_ns = 2};
    check_message(&watch, &input, 223000, "trace time continues after 11 s");
    check_message(
        &watch, &input, 233000,
        "trace time stands still for 10 s: the relay daemon does not answer, or the queue "
        "is full and on-full is \"block\"");

    watch_begin(&watch, 0);
    check_message(&watch, &(struct input_counts){0}, 9000, NULL);
    input = (struct input_counts){.streams_open = 2};
    check_message(&watch, &input, 18999, NULL);
    check_message(
        &watch, &input, 19000,
        "trace time stands still for 19 s: LTTng's session or consumer daemon hangs, or a "
        "program was killed while it recorded; events may be lost");
}

CHECK_MAIN
