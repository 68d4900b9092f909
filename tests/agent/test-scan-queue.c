/*
 * Requests that wait, and collected traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "plugin/starvation/starve.h"
#include "tools/agent/collected.h"
#include "tools/agent/scan_queue.h"
#include "tools/base/folders.h"
#include "tools/base/totals.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ID1 "00000000000000070000000000000001"

static struct trace_id id_of(uint64_t low)
{
    return (struct trace_id){7, low};
}

/* Returns a request of `host` for the traces first to last. */
static struct request *request(const char *host, int64_t due_ms, uint64_t first, uint64_t last)
{
    struct request *made = request_new("a:1:2", host);

    made->due_ms = due_ms;
    made->came_mono_ns = 9500 * MS + due_ms; /* does not matter for requests that name traces */
    for (uint64_t low = first; low <= last; low++)
        CHECK(request_add(made, id_of(low), 0, "why"));
    return made;
}

/* Takes requests, and compares them. For each, the text has the host, the number of traces and that
 * of left out ones: "a2 b1-3 ". For windows, it begins with their common window in s. The hosts
 * then have the ends: "9..12: c@12 d@10 ". */
static void take(struct scan_queue *scan_queue, int64_t now_ms, bool is_last, const char *expected)
{
    struct request *taken = scan_queue_take(scan_queue, now_ms, is_last);
    char text[200] = "", *at = text;

    if (taken && is_last)
        at += sprintf(at, "%ld..%ld: ", (long)(requests_window(taken).from_ns / SECOND),
                      (long)(requests_window(taken).until_ns / SECOND));
    for (const struct request *r = taken; r; r = r->next)
        at += sprintf(at,
                      is_last       ? "%s@%ld "
                      : r->left_out ? "%s%ld-%zu "
                                    : "%s%ld ",
                      r->host, (long)(is_last ? r->came_mono_ns / SECOND : (int64_t)r->count),
                      r->left_out);
    CHECK_TEXT(text, expected);
    requests_free(taken);
}

TEST(test_due)
{
    struct scan_queue scan_queue = {.max = 100};

    CHECK(scan_queue_due_ms(&scan_queue, false) == INT64_MAX);
    take(&scan_queue, 1000, false, "");
    CHECK(scan_queue_add(&scan_queue, request("a", 200, 1, 2)) == 0);
    CHECK(scan_queue_add(&scan_queue, request("b", 100, 3, 3)) == 0);
    CHECK(scan_queue_add(&scan_queue, request("a", 300, 4, 4)) == 0);
    CHECK(scan_queue_due_ms(&scan_queue, false) == 100);
    CHECK(scan_queue_has(&scan_queue, id_of(3)) && !scan_queue_has(&scan_queue, id_of(5)));
    take(&scan_queue, 99, false, "");
    /* all due requests are taken together, in the order of arrival */
    take(&scan_queue, 200, false, "a2 b1 ");
    CHECK(scan_queue.traces == 1 && scan_queue_due_ms(&scan_queue, false) == 300);
    scan_queue_hurry(&scan_queue, 250);
    CHECK(scan_queue_due_ms(&scan_queue, false) == 250);
    take(&scan_queue, 250, false, "a1 ");
    CHECK(scan_queue.traces == 0 && !scan_queue.list);
}

TEST(test_cap)
{
    struct scan_queue scan_queue = {.max = 3};

    CHECK(scan_queue_add(&scan_queue, request("a", 0, 1, 2)) == 0);
    CHECK(scan_queue_add(&scan_queue, request("b", 0, 3, 6)) == 3);
    CHECK(scan_queue_add(&scan_queue, request("c", 0, 7, 8)) == 2);
    CHECK(scan_queue.traces == 3);
    scan_queue.max = 2; /* as after a reload */
    CHECK(scan_queue_room(&scan_queue, NULL) == 0);
    /* a request without traces is taken, too: it must be answered */
    take(&scan_queue, 0, false, "a2 b1-3 c0-2 ");
    scan_queue.more_for_others = 4;
    CHECK(scan_queue_room(&scan_queue, NULL) == 6);
    CHECK(scan_queue_room(&scan_queue, &(struct asker){.rest_ms = 0}) == 2);
}

/* Each asker has a limit of its own. A scan is for one asker. An asker that rests does not delay
 * other askers. */
TEST(test_askers)
{
    struct scan_queue scan_queue = {.max = 3, .rest_ms = 500};
    struct asker one = {.rest_ms = 300}, other = {.rest_ms = 0};
    struct request *list = NULL;

    for (uint64_t low = 1; low <= 5; low++)
        CHECK(request_add(requests_of(&list, &one, "a"), id_of(low), 0, "why"));
    CHECK(list && !list->next && list->asker == &one && one.payer.held == 1);
    CHECK(scan_queue_add(&scan_queue, list) == 2 && scan_queue_room(&scan_queue, &one) == 0);
    CHECK(scan_queue_room(&scan_queue, &other) == 3 && scan_queue_room(&scan_queue, NULL) == 3);
    list = NULL;
    CHECK(request_add(requests_of(&list, &other, "c"), id_of(6), 0, "why"));
    CHECK(scan_queue_add(&scan_queue, list) == 0 &&
          scan_queue_add(&scan_queue, request("b", 0, 7, 7)) == 0);
    CHECK(scan_queue_due_ms(&scan_queue, false) == 0);
    take(&scan_queue, 400, false, "c1 ");
    CHECK(other.payer.held == 0 && scan_queue_due_ms(&scan_queue, false) == 300);
    scan_queue_rest(&scan_queue, NULL, 300); /* of two that are due, the first one comes first */
    take(&scan_queue, 400, false, "a3-2 ");
    scan_queue_rest(&scan_queue, NULL, 500);
    take(&scan_queue, 400, false, "");
    CHECK(scan_queue.traces == 1);
    scan_queue_hurry(&scan_queue, 400);
    take(&scan_queue, 400, false, "b1 ");
    CHECK(one.payer.held == 0 && !scan_queue.list);
}

/* Returns a request, due at once, for all traces of the second until asked_s. */
static struct request *last(const char *host, int64_t asked_s, const char *service)
{
    struct request *made = request(host, 0, 1, 0);

    made->last_ms = 1000;
    made->came_mono_ns = asked_s * SECOND;
    (void)snprintf(made->service, sizeof(made->service), "%s", service);
    return made;
}

/* Requests for windows have a scan of their own. Requests whose windows overlap share one scan. */
TEST(test_last)
{
    static const int asked_s[] = {12, 10, 20, 11, 13};
    struct scan_queue scan_queue = {.max = 3};
    struct request *look = last("look", 12, "");

    CHECK(scan_queue_add(&scan_queue, request("a", 0, 1, 1)) == 0);
    for (size_t i = 0; i < 5; i++)
        CHECK(scan_queue_add(&scan_queue, last("a", asked_s[i], "")) == 0);
    CHECK(scan_queue_add(&scan_queue, last("osd", 10, "osd")) == 0);
    CHECK(!scan_queue_has_look(&scan_queue));
    look->is_look = true;
    CHECK(scan_queue_add(&scan_queue, look) == 0 && scan_queue_has_look(&scan_queue));
    CHECK(scan_queue_add(&scan_queue, request("b", 0, 2, 2)) == 0);
    CHECK(scan_queue_last_count(&scan_queue) == 7);
    take(&scan_queue, 0, false, "a1 b1 ");
    CHECK(scan_queue_due_ms(&scan_queue, false) == INT64_MAX &&
          scan_queue_due_ms(&scan_queue, true) == 0);
    take(&scan_queue, 0, true, "9..13: a@12 a@11 a@10 a@13 "); /* 11 touches 10 */
    take(&scan_queue, 0, true, "19..20: a@20 ");
    take(&scan_queue, 0, true, "9..10: osd@10 ");
    take(&scan_queue, 0, true, "11..12: look@12 ");
    CHECK(!scan_queue.list);
}

/* Writes a message, and reads it as another host: the same request, unless traces are left out. */
static struct request *message(const struct request *made, size_t max, size_t *left)
{
    json_t *json = request_json(made), *again;
    struct request *read = request_read(json, max, left);

    again = request_json(read);
    CHECK(*left || json_equal(json, again));
    json_decref(json);
    json_decref(again);
    return read;
}

/* A request as this host sends it and another host reads it. */
TEST(test_message)
{
    struct request *made = request("store-1", 0, 1, 5), *read;
    static const char *const bad[] = {
        "{\"id\":\"x\",\"host\":\"y\",\"traces\":[{\"id\":\"nonsense\"},\"id\",{\"id\":\"0\"}]}",
        "{\"id\":\"x\",\"last_ms\":1}", "{\"host\":\"y\",\"last_ms\":1}",
        "{\"id\":\"x\",\"host\":\"y\",\"last_ms\":-1}",
        "{\"id\":\"x\",\"host\":\"y\",\"last_ms\":86400001}"};
    char longest[205];
    size_t left;

    made->at_ns = 12345;
    made->traces[3].begin_ns = 12000;
    made->is_late = true;
    (void)request_add(made, id_of(6), 0, "two\nlines \x1b[31m\x7f");
    read = message(made, 6, &left);
    CHECK(read->count == 6 && left == 0 && read->left_out == 0 && read->is_late);
    CHECK(request_begin(read, &read->traces[3]) == INT64_MIN);
    read->came_mono_ns = 1000; /* a begin is this time less the trace's age */
    CHECK(request_begin(read, &read->traces[3]) == 1000 - 345);
    CHECK(request_begin(read, &read->traces[2]) == INT64_MIN);
    read->at_ns = 11000;
    CHECK(request_begin(read, &read->traces[3]) == 1000);
    read->traces[3].begin_ns = INT64_MIN;
    CHECK(request_begin(read, &read->traces[3]) == INT64_MIN);
    CHECK_TEXT(read->traces[5].why, "two?lines ?[31m?");
    requests_free(read);

    /* the answer tells the number of left out traces, also for a request from a file */
    made->left_out = 3;
    read = message(made, 4, &left);
    CHECK(read->count == 4 && left == 2 && read->left_out == 5);
    requests_free(read);
    made->count = 0;
    read = message(made, 9, &left);
    CHECK(read && read->left_out == 3 && left == 0 && read->count == 0);
    requests_free(read);
    requests_free(made);

    /* a request for all of the last seconds, with its reason and its service */
    made = last("store-1", 10, "o");
    made->last_ms = 86400000;
    request_set_why(made, "disk.busy > 95%: vda\n98%");
    read = message(made, 9, &left);
    CHECK(read && read->last_ms == 86400000 && !read->is_late);
    CHECK_TEXT(read ? read->service : "", "o");
    requests_free(read);

    /* a reason is cut between characters */
    memset(longest, 'x', sizeof(longest));
    memcpy(longest + 199, "\xc3\xa4", 2);
    request_set_why(made, longest);
    CHECK(strlen(made->why) == 199);
    request_set_why(made, longest + 1);
    CHECK(strlen(made->why) == 200);
    requests_free(made);

    /* a message without a valid trace is no request */
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        json_t *json = json_loads(bad[i], 0, NULL);

        CHECK(json && request_read(json, 9, &left) == NULL);
        json_decref(json);
    }
}

/* ---- collected traces ---- */

static struct collected *collected; /* of the running test */
static int64_t live;                /* allocated blocks before the test */

static void begin(void)
{
    json_set_alloc_funcs(malloc, free);
    live = starve.live;
    collected = collected_new();
}

static void end(void)
{
    collected_free(collected);
    CHECK(starve.live == live);
}

static void note(struct trace_id id, int64_t until_mono_ns, uint64_t place)
{
    collected_note(collected, id, &(struct collected_fetch){INT64_MIN, until_mono_ns, 0, place});
}

/* Adds one found span; begin 0: its begin is not known. Frees `have`. */
static void add_found(const char *id, int64_t begin_ns, json_t *have, const char *want)
{
    json_t *json = json_pack("{ss, si, so, s[s], so*}", "id", id, "spans", 1, "have", have, "want",
                             want, "begin", begin_ns ? json_integer(begin_ns) : NULL);

    collected_add(collected, json);
    json_decref(json);
}

TEST(test_collected)
{
    struct collected_trace *trace = collected_get(collected, id_of(1));
    json_t *empty = json_pack("{ss, si, si}", "id", ID1, "spans", -1, "begin", 0), *all;
    char *text;

    /* an alarm that is older than the fetch is ignored. A younger alarm is not, nor an alarm whose
     * span may have been written late */
    note(id_of(1), 5000000000, 3);
    note(id_of(1), 5000000000, 2);
    CHECK(trace->until_mono_ns == 5000000000 && trace->place == 3);
    CHECK(collected_has(collected, id_of(1), 3999999999) &&
          !collected_has(collected, id_of(1), 4000000000));
    CHECK(!collected_has(collected, id_of(2), 1));
    /* the original's events know the lower half only */
    CHECK(collected_find(collected, (struct trace_id){0, 1}) == trace);
    CHECK(collected_find(collected, (struct trace_id){8, 1}) == NULL);

    /* two fetches: a parent that the second fetch has is not missing any more */
    CHECK(collected_json(trace) == NULL);
    add_found(ID1, 900, json_pack("[s]", "a1"), "a0");
    add_found(ID1, 800, json_pack("[s]", "a0"), "99");
    add_found(ID1, 900, json_array(), "a0"); /* the earliest begin counts, in any order */
    collected_add(collected, empty);
    collected_note_held(collected, id_of(1), 815);
    all = collected_json(trace);
    text = json_dumps(all, JSON_COMPACT);
    CHECK_TEXT(text, "{\"id\":\"" ID1 "\",\"spans\":3,"
                     "\"have\":[\"00000000000000a0\",\"00000000000000a1\"],"
                     "\"want\":[\"0000000000000099\"],\"begin\":800,\"held_from\":815}");
    free(text);
    json_decref(all);
    all = collected_copy(collected, empty);
    CHECK(json_object_size(all) == 4 &&
          json_integer_value(json_object_get(all, "held_from")) == 815);
    json_decref(all);
    json_decref(empty);
}

/* A fetch that continues the last one extends the collected time. */
TEST(test_fetches)
{
    /* from, until and their places, and the trace's begin after the fetch */
    static const int64_t steps[][6] = {
        {INT64_MIN, 100, 0, 1, INT64_MIN, 0},
        {90, 200, 2, 3, INT64_MIN, 0},
        {201, 300, 4, 5, 201, 4}, /* a gap */
        {300, 400, 6, 7, 201, 4},
        {201, 500, 8, 9, 201, 4},
        {200, 600, 0, 11, 200, 0},    /* has more than the trace */
        {590, 700, 12, 13, 590, 12}}; /* the place of 200 is not known */
    const struct collected_trace *trace = collected_get(collected, id_of(1));

    for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
        const int64_t *step = steps[i];
        const struct collected_fetch fetch = {step[0], step[1], (uint64_t)step[2],
                                              (uint64_t)step[3]};

        collected_note(collected, id_of(1), &fetch);
        CHECK(trace->until_mono_ns == step[1] && trace->place == fetch.place);
        CHECK(trace->from_mono_ns == step[4] && trace->from_place == (uint64_t)step[5]);
    }
}

/* With more ids than a list can have, the trace is marked as cut. */
TEST(test_cut)
{
    static const char *const lists[] = {"have", "want"};

    for (size_t i = 0; i < 2; i++) {
        json_t *list = json_array(), *json = json_pack("{ss, so}", "id", ID1, lists[i], list);
        char text[20];

        for (unsigned id = 1; id <= 4097; id++) {
            CHECK(id < 4097 || !collected_get(collected, id_of(1))->found.is_cut);
            (void)snprintf(text, sizeof(text), "%x", id << 8);
            (void)json_array_append_new(list, json_string(text));
            if (id >= 4096)
                collected_add(collected, json);
        }
        CHECK(collected_find(collected, id_of(1))->found.is_cut);
        json_decref(json);
        end();
        begin();
    }
}

static void note_window(int64_t from_ns, int64_t until_ns, uint64_t given)
{
    collected_note_window(collected, (struct collected_window){from_ns, until_ns, given});
}

/* Windows that overlap are merged. If there are too many, the first ones are removed. */
TEST(test_windows)
{
    const struct collected_window *windows;
    size_t count;

    note_window(100, 200, 5);
    note_window(300, 400, 7);
    note_window(200, 300, 6); /* touches both */
    note_window(98, 99, 0);
    note_window(401, 402, 0);
    windows = collected_windows(collected, &count);
    CHECK(count == 3 && windows[0].from_ns == 100 && windows[0].until_ns == 400 &&
          windows[0].given == 7);
    for (int64_t i = 1; i <= 1000; i++)
        note_window(i * 1000, i * 1000 + 1, 0);
    windows = collected_windows(collected, &count);
    CHECK(count == 64);
    for (int64_t i = 0; i < 64; i++)
        CHECK(windows[i].from_ns == 937000 + i * 1000 && windows[i].until_ns == 937001 + i * 1000);
}

/* ---- the files ---- */

static char path[] = "/tmp/scan-queue.XXXXXX", path_of_changes[] = "/tmp/scan-queue.XXXXXX";
static char *written; /* the last file */

/* Writes the file of all traces, or of changes. Returns the number of changes in it. */
static uint64_t write_file(bool all, uint64_t settled)
{
    struct error error;
    size_t length;
    uint64_t changes = 0;

    live -= written != NULL; /* was allocated by libc */
    free(written);
    written = all ? collected_text_of_all(collected, settled, &length, &changes)
                  : collected_text(collected, settled, &length);
    CHECK(written && file_write(all ? path : path_of_changes, written, length, true, &error));
    return changes;
}

/* Writes the file of all traces as one agent, and reads it as the next agent. */
static void read_again(uint64_t settled)
{
    (void)write_file(true, settled);
    end();
    begin();
    collected_load(collected, path);
}

/* Returns true if the file of changes has that part. */
static bool file_has(uint64_t settled, const char *part)
{
    (void)write_file(false, settled);
    return written && strstr(written, part);
}

/* The file has the collected traces, the open traces, and the times from which rings had them. */
TEST(test_file)
{
    static const char expected[] =
        "{\"id\":\"" ID1 "\",\"deaths\":3,\"mono\":4000000000,\"from\":-9223372036854775808,"
        "\"open\":true,\"judged\":true,\"unsent\":false,\"asked\":4711,\"held\":815,"
        "\"why\":\"osd*>20ms\",\"found\":{\"id\":\"" ID1 "\",\"spans\":1,"
        "\"have\":[\"00000000000000a1\"],\"want\":[\"00000000000000a0\"],\"held_from\":815}}], "
        "\"windows\": [[100, 200], [300, 400]]}\n";
    struct collected_trace *trace = collected_get(collected, id_of(1));

    note(trace->id, 4000000000, 17);
    collected_note_held(collected, trace->id, 815);
    note_window(100, 200, 0);
    note_window(300, 400, 0);
    collected_open(trace, 4711, "osd*>20ms");
    collected_note_deaths(trace, 1);
    collected_note_deaths(trace, 2);
    trace->was_judged = true;
    add_found(ID1, 0, json_pack("[s]", "a1"), "a0");
    CHECK(file_has(0, expected));
    read_again(0);
    CHECK(file_has(0, expected));
    trace = collected_find(collected, id_of(1));
    CHECK(trace && trace->place == 0 && trace->is_ours && !trace->is_asked);

    /* a file of another form is ignored */
    end();
    begin();
    CHECK(truncate(path, 20) == 0);
    collected_load(collected, path);
    CHECK(collected_find(collected, id_of(1)) == NULL);
}

/* A trace whose spans are not settled is saved as not collected, even if it was judged. Its window
 * is not saved. */
TEST(test_unsettled)
{
    struct collected_trace *trace = collected_get(collected, id_of(1));

    note_window(100, 200, 10);
    collected_open(trace, 4711, "osd*>20ms");
    note(trace->id, INT64_MAX, 1);
    trace->is_unsent = true;
    collected_note_given(collected, trace->id, 12);
    collected_close(trace);
    CHECK(file_has(9, "\"mono\":0,\"from\":-9223372036854775808,\"open\":true,\"judged\":true,"
                      "\"unsent\":true,\"asked\":4711,\"held\":0"));
    CHECK(collected_waits(collected) && file_has(9, "\"windows\": []") &&
          file_has(11, "\"windows\": [[100, 200]]") && collected_waits(collected));
    CHECK(file_has(12, "\"mono\":9223372036854775807,\"from\":-9223372036854775808,"
                       "\"open\":false,\"judged\":false,\"unsent\":false"));
    CHECK(!collected_waits(collected));
    note_window(300, 400, 13);
    CHECK(file_has(12, "\"windows\": [[100, 200]]") && collected_waits(collected));
    CHECK(file_has(13, "\"windows\": [[100, 200], [300, 400]]") && !collected_waits(collected));
    collected_note_given(collected, trace->id, 14); /* late spans: the trace has its verdict */
    CHECK(collected_waits(collected));
    read_again(13);
    CHECK(file_has(0, "\"open\":false,\"judged\":false,\"unsent\":true"));
    collected_skip(collected_find(collected, id_of(1)));
    CHECK(file_has(0, "\"open\":false,\"judged\":false,\"unsent\":false"));
}

/* The file of changes has what the file of all traces lacks, and no more. */
TEST(test_two_files)
{
    static const char earlier[] = "{\"boot\": \"\", \"traces\": [{\"id\": \"70000000000000004\"}]}";
    struct error error;
    uint64_t changes;
    struct collected_trace *trace;

    for (uint64_t id = 1; id <= 3; id++)
        collected_open(collected_get(collected, id_of(id)), 0, "first");
    add_found("70000000000000002", 0, json_pack("[s]", "a1"), "a0");
    collected_note_given(collected, id_of(3), 10);
    collected_open(collected_get(collected, id_of(1)), 0, "again");
    changes = write_file(true, 9);
    collected_close(collected_find(collected, id_of(2))); /* while the file is written */
    collected_saved_all(collected, changes);
    CHECK(!file_has(9, "000000000001\"") && file_has(9, "000000000002\"") &&
          file_has(9, "000000000003\""));
    collected_open(collected_get(collected, id_of(4)), 0, "new");
    (void)write_file(false, UINT64_MAX);
    end();
    begin();
    collected_load(collected, path);
    collected_load(collected, path_of_changes);
    CHECK(collected_traces(collected)->count == 4);
    trace = collected_find(collected, id_of(2));
    CHECK(trace && !trace->is_open && trace->found.spans == 0);
    trace = collected_find(collected, id_of(4));
    CHECK(trace && trace->is_open);
    /* a trace that was closed in an earlier boot does not wait for a verdict */
    CHECK(file_write(path, earlier, strlen(earlier), true, &error));
    collected_load(collected, path);
    CHECK(!collected_find(collected, id_of(4)) && collected_find(collected, id_of(2)));
}

/* The file has each change: a changed trace gets a new line. */
TEST(test_changes)
{
    struct collected_trace *trace = collected_get(collected, id_of(1));

    trace->was_judged = true;
    collected_open(trace, 4711, "osd*>20ms");
    CHECK(file_has(0, "\"open\":true,\"judged\":false"));
    collected_note_deaths(trace, 2);
    CHECK(file_has(0, "\"deaths\":2"));
    add_found(ID1, 0, json_pack("[s]", "a1"), "a0");
    CHECK(file_has(0, "00000000000000a1"));
    note(trace->id, INT64_MAX, 1);
    CHECK(file_has(0, "\"mono\":9223372036854775807"));
    collected_note_held(collected, trace->id, 815);
    collected_note_held(collected, trace->id, 900); /* a later fetch has less */
    CHECK(file_has(0, "\"held\":815"));
    collected_note_otlp_held(collected, trace->id, 816);
    CHECK(file_has(0, "\"held\":816"));
    collected_close(trace);
    CHECK(file_has(0, "\"deaths\":0") && file_has(0, "\"open\":false") &&
          !file_has(0, "00000000000000a1"));
}

/* The table has a bound: the oldest traces are removed. Neither this agent nor the next one takes
 * the alarms of removed traces as new. */
TEST(test_forgotten)
{
    const int64_t now_ns = clock_ns();

    for (uint64_t i = 1; i <= 10000; i++) {
        struct collected_trace *trace = collected_get(collected, id_of(i));

        CHECK(trace != NULL);
        /* one trace for each millisecond until now. Some of the oldest are needed still */
        trace->until_mono_ns = i == 4 ? 0 : now_ns - (10000 - (int64_t)i) * MS;
        trace->is_open = i == 1;
        trace->given = i == 2;
        trace->is_unsent = i == 3;
        trace->watched_ms = i == 4 || i == 5;
    }
    for (uint64_t i = 1; i <= 5; i++)
        CHECK((collected_find(collected, id_of(i)) != NULL) == (i < 5));
    collected_find(collected, id_of(10000))->until_mono_ns = now_ns - 500 * SECOND;
    collected_find(collected, id_of(9999))->until_mono_ns = now_ns - 601 * SECOND;
    CHECK(collected_has(collected, id_of(5), (uint64_t)now_ns - UINT64_C(9999000000)));
    read_again(UINT64_MAX);
    CHECK(!collected_find(collected, id_of(5)) && !collected_find(collected, id_of(9999)));
    CHECK(collected_find(collected, id_of(9998)) && collected_find(collected, id_of(10000)));
    CHECK(collected_has(collected, id_of(5), (uint64_t)now_ns - UINT64_C(9999000000)));

    end();
    begin();
    for (uint64_t i = 1; i <= 8192; i++)
        collected_get(collected, id_of(i))->is_open = true;
    CHECK(!collected_get(collected, id_of(8193)) && collected_get(collected, id_of(1)));
}

CHECK_MAIN_WITH((check_before = begin, check_after = end,
                 check_failures += mkstemp(path) < 0 || mkstemp(path_of_changes) < 0),
                (unlink(path), unlink(path_of_changes), free(written)))
