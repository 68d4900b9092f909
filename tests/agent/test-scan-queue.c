/*
 * Requests that wait, collected traces, and halves as texts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/agent/collected.h"
#include "tools/agent/halves.h"
#include "tools/agent/scan_queue.h"
#include "tools/base/folders.h"
#include "tools/base/totals.h"

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static struct trace_id id_of(uint64_t low)
{
    return (struct trace_id){7, low};
}

/* Returns a request of `host` for the traces first to last. */
static struct request *request(const char *host, int64_t due_ms, uint64_t first, uint64_t last)
{
    struct request *made = request_new("a:1:2", host);

    made->due_ms = due_ms;
    for (uint64_t low = first; low <= last; low++)
        CHECK(request_add(made, id_of(low), 0, "why"));
    return made;
}

TEST(test_due)
{
    struct scan_queue scan_queue = {.max = 100};
    struct request *taken;

    CHECK(scan_queue_due_ms(&scan_queue, false) == INT64_MAX);
    CHECK(scan_queue_take(&scan_queue, 1000, false) == NULL);
    CHECK(scan_queue_add(&scan_queue, request("a", 200, 1, 2)) == 0);
    CHECK(scan_queue_add(&scan_queue, request("b", 100, 3, 3)) == 0);
    CHECK(scan_queue_add(&scan_queue, request("a", 300, 4, 4)) == 0);
    CHECK(scan_queue_due_ms(&scan_queue, false) == 100);
    CHECK(scan_queue_has(&scan_queue, id_of(3)) && !scan_queue_has(&scan_queue, id_of(5)));
    CHECK(scan_queue_take(&scan_queue, 99, false) == NULL);

    /* all due requests are taken together, in the order of arrival */
    taken = scan_queue_take(&scan_queue, 200, false);
    CHECK(taken && taken->count == 2 && taken->next && taken->next->count == 1);
    CHECK(taken && taken->next && taken->next->next == NULL);
    requests_free(taken);
    CHECK(scan_queue.traces == 1 && scan_queue_due_ms(&scan_queue, false) == 300);
    scan_queue_hurry(&scan_queue, 250);
    CHECK(scan_queue_due_ms(&scan_queue, false) == 250);
    requests_free(scan_queue_take(&scan_queue, 250, false));
    CHECK(scan_queue.traces == 0 && !scan_queue.list);
}

TEST(test_cap)
{
    struct scan_queue scan_queue = {.max = 3};
    struct request *taken;

    CHECK(scan_queue_add(&scan_queue, request("a", 0, 1, 2)) == 0);
    CHECK(scan_queue_add(&scan_queue, request("b", 0, 3, 6)) == 3);
    CHECK(scan_queue_add(&scan_queue, request("c", 0, 7, 8)) == 2);
    CHECK(scan_queue.traces == 3);
    scan_queue.max = 2; /* as after a reload */
    CHECK(scan_queue_room(&scan_queue, NULL) == 0);
    taken = scan_queue_take(&scan_queue, 0, false);
    CHECK(taken->next->count == 1 && taken->next->left_out == 3);
    /* a request without traces is taken, too: it must be answered */
    CHECK(taken->next->next && taken->next->next->count == 0 && taken->next->next->left_out == 2);
    requests_free(taken);

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
    struct request *list = NULL, *taken;

    for (uint64_t low = 1; low <= 5; low++)
        CHECK(request_add(requests_of(&list, &one, "a"), id_of(low), 0, "why"));
    CHECK(list && !list->next && list->asker == &one && one.payer.held == 1);
    CHECK(scan_queue_add(&scan_queue, list) == 2 && scan_queue_room(&scan_queue, &one) == 0);
    CHECK(scan_queue_room(&scan_queue, &other) == 3 && scan_queue_room(&scan_queue, NULL) == 3);
    list = NULL;
    CHECK(request_add(requests_of(&list, &other, "a"), id_of(6), 0, "why"));
    CHECK(scan_queue_add(&scan_queue, list) == 0 &&
          scan_queue_add(&scan_queue, request("b", 0, 7, 7)) == 0);
    CHECK(scan_queue_due_ms(&scan_queue, false) == 0);
    taken = scan_queue_take(&scan_queue, 400, false);
    CHECK(taken && taken->asker == &other && !taken->next);
    requests_free(taken);
    CHECK(other.payer.held == 0 && scan_queue_due_ms(&scan_queue, false) == 300);
    requests_free(scan_queue_take(&scan_queue, 400, false));
    CHECK(scan_queue_take(&scan_queue, 400, false) == NULL && scan_queue.traces == 1);
    scan_queue_hurry(&scan_queue, 400);
    requests_free(scan_queue_take(&scan_queue, 400, false));
    CHECK(one.payer.held == 0 && !scan_queue.list);
}

/* Returns a request, due at once, for all traces of the second until asked_s. */
static struct request *last(const char *host, int64_t asked_s, const char *service)
{
    struct request *made = request(host, 0, 1, 0);

    made->last_ms = 1000;
    made->came_mono_ns = asked_s * 1000000000;
    (void)snprintf(made->service, sizeof(made->service), "%s", service);
    return made;
}

/* Requests for windows have a scan of their own. Requests whose windows overlap share one scan. */
TEST(test_last)
{
    struct scan_queue scan_queue = {.max = 3};
    struct request *taken;

    CHECK(scan_queue_add(&scan_queue, request("a", 0, 1, 1)) == 0);
    CHECK(scan_queue_add(&scan_queue, last("a", 10, "")) == 0);
    CHECK(scan_queue_add(&scan_queue, last("a", 12, "")) == 0);
    CHECK(scan_queue_add(&scan_queue, last("b", 20, "")) == 0);
    CHECK(scan_queue_add(&scan_queue, last("c", 10, "osd")) == 0);
    CHECK(scan_queue_add(&scan_queue, last("b", 11, "")) == 0);
    CHECK(scan_queue_add(&scan_queue, request("b", 0, 2, 2)) == 0);
    CHECK(scan_queue_last_count(&scan_queue) == 5);
    taken = scan_queue_take(&scan_queue, 0, false);
    CHECK(taken->last_ms == 0 && taken->next && !taken->next->next);
    requests_free(taken);
    CHECK(scan_queue_due_ms(&scan_queue, false) == INT64_MAX &&
          scan_queue_due_ms(&scan_queue, true) == 0);
    taken = scan_queue_take(&scan_queue, 0, true); /* 12 overlaps only with 11 */
    CHECK(taken && taken->next && taken->next->next && !taken->next->next->next);
    CHECK(requests_window(taken).from_ns == INT64_C(9000000000));
    CHECK(requests_window(taken).until_ns == INT64_C(12000000000));
    requests_free(taken);
    taken = scan_queue_take(&scan_queue, 0, true);
    CHECK(taken && taken->came_mono_ns == INT64_C(20000000000) && !taken->next);
    requests_free(taken);
    taken = scan_queue_take(&scan_queue, 0, true);
    CHECK_TEXT(taken ? taken->service : "", "osd");
    requests_free(taken);
    CHECK(!scan_queue.list);
}

/* A request as this host sends it and another host reads it. */
TEST(test_message)
{
    struct request *made = request("store-1", 0, 1, 5), *read;
    size_t left;
    json_t *json, *bad;

    made->at_ns = 12345;
    made->traces[3].begin_ns = 12000;
    (void)request_add(made, id_of(6), 0, "two\nlines \x1b[31m");
    json = request_json(made);
    read = request_read(json, 4, &left);
    CHECK(read && read->count == 4 && left == 2 && read->at_ns == 12345);
    read->came_mono_ns = 1000; /* a begin is this time less the trace's age */
    CHECK(request_begin(read, &read->traces[3]) == 1000 - 345);
    CHECK(request_begin(read, &read->traces[2]) == INT64_MIN);
    read->at_ns = 11000;
    CHECK(request_begin(read, &read->traces[3]) == 1000);
    CHECK_TEXT(read->host, "store-1");
    CHECK(trace_id_equal(read->traces[3].id, id_of(4)));
    requests_free(read);
    read = request_read(json, 9, &left);
    CHECK_TEXT(read->traces[5].why, "two?lines ?[31m");
    requests_free(read);
    json_decref(json);

    /* the answer tells the number of left out traces, also for a request from a file */
    made->left_out = 3;
    made->count = 0;
    json = request_json(made);
    read = request_read(json, 9, &left);
    CHECK(read && read->left_out == 3 && left == 0 && read->count == 0);
    requests_free(read);
    requests_free(made);
    json_decref(json);

    /* a request for all of the last seconds, with its reason */
    made = request("store-1", 0, 1, 0);
    made->last_ms = 10000;
    request_set_why(made, "disk.busy > 95%: vda\n98%");
    json = request_json(made);
    read = request_read(json, 9, &left);
    CHECK(read && read->last_ms == 10000);
    CHECK_TEXT(read ? read->why : "", "disk.busy > 95%: vda?98%");
    requests_free(read);
    requests_free(made);
    json_decref(json);

    /* a message without a valid trace is no request */
    bad = json_pack("{ss, ss, ss, s[{ss}, s, {ss}]}", "type", "keep", "id", "x", "host", "y",
                    "traces", "id", "nonsense", "id", "id", "0");
    CHECK(request_read(bad, 9, &left) == NULL);
    json_decref(bad);
}

/* ---- collected traces ---- */

static void note(struct collected *collected, struct trace_id id, int64_t until_mono_ns,
                 uint64_t place)
{
    collected_note(collected, id, &(struct collected_fetch){INT64_MIN, until_mono_ns, 0, place});
}

static json_t *found(const char *id, int spans, const char *have, const char *want)
{
    return json_pack("{ss, si, s[s], s[s]}", "id", id, "spans", spans, "have", have, "want", want);
}

TEST(test_collected)
{
    struct collected *collected = collected_new();
    struct collected_trace *trace = collected_get(collected, id_of(1));
    json_t *first = found("00000000000000070000000000000001", 1, "a1", "a0");
    json_t *second = found("00000000000000070000000000000001", 1, "a0", "99"), *all;

    /* an alarm that is older than the fetch is ignored. A younger alarm is not, nor an alarm whose
     * span may have been written late */
    note(collected, id_of(1), 5000000000, 3);
    CHECK(trace->until_mono_ns == 5000000000 && trace->place == 3);
    note(collected, id_of(1), 4000000000, 2);
    CHECK(trace->until_mono_ns == 5000000000 && trace->place == 3);
    CHECK(collected_has(collected, id_of(1), 3999999999) &&
          !collected_has(collected, id_of(1), 4000000000));
    CHECK(!collected_has(collected, id_of(2), 1));
    /* the original's events know the lower half only */
    CHECK(collected_find(collected, (struct trace_id){0, 1}) == trace);
    CHECK(collected_find(collected, (struct trace_id){8, 1}) == NULL);

    /* two fetches: a parent that the second fetch has is not missing any more */
    CHECK(collected_json(trace) == NULL);
    (void)json_object_set_new(first, "begin", json_integer(900));
    (void)json_object_set_new(second, "begin", json_integer(800));
    collected_add(collected, first);
    collected_add(collected, second);
    collected_add(collected, first); /* the earliest begin counts, in any order of fetches */
    trace->found.spans--;
    all = collected_json(trace);
    CHECK(json_integer_value(json_object_get(all, "spans")) == 2);
    CHECK(json_integer_value(json_object_get(all, "begin")) == 800);
    CHECK(json_array_size(json_object_get(all, "have")) == 2);
    CHECK(json_array_size(json_object_get(all, "want")) == 1);
    CHECK_TEXT(json_string_value(json_array_get(json_object_get(all, "want"), 0)),
               "0000000000000099");
    json_decref(all);
    json_decref(first);
    json_decref(second);
    collected_free(collected);
}

/* With more ids than a list can have, the trace is marked as cut. */
TEST(test_cut)
{
    static const char *const lists[] = {"have", "want"};

    for (size_t i = 0; i < 2; i++) {
        struct collected *collected = collected_new();
        json_t *json = found("00000000000000070000000000000001", 1, "a1", "a0"), *all;
        json_t *list = json_object_get(json, lists[i]);
        char text[20];

        collected_add(collected, json);
        CHECK(!collected_find(collected, id_of(1))->found.is_cut);
        for (unsigned id = 1; id <= 4096; id++) {
            (void)snprintf(text, sizeof(text), "%x", id << 8);
            (void)json_array_append_new(list, json_string(text));
        }
        collected_add(collected, json);
        all = collected_json(collected_find(collected, id_of(1)));
        CHECK(json_is_true(json_object_get(all, "cut")));
        json_decref(all);
        json_decref(json);
        collected_free(collected);
    }
}

/* Windows that overlap are merged. If there are too many, the first ones are removed. */
TEST(test_windows)
{
    struct collected *collected = collected_new();
    const struct collected_window *windows;
    size_t count;

    collected_note_window(collected, (struct collected_window){100, 200, 0});
    collected_note_window(collected, (struct collected_window){300, 400, 0});
    collected_note_window(collected, (struct collected_window){150, 350, 0});
    windows = collected_windows(collected, &count);
    CHECK(count == 1 && windows[0].from_ns == 100 && windows[0].until_ns == 400);
    for (int64_t i = 1; i <= 1000; i++)
        collected_note_window(collected, (struct collected_window){i * 1000, i * 1000 + 1, 0});
    windows = collected_windows(collected, &count);
    CHECK(count == 64 && windows[0].from_ns == 937000 && windows[63].from_ns == 1000000);
    collected_free(collected);
}

/* Writes the file of all traces, or of changes. Returns the number of changes in it. */
static uint64_t write_file(struct collected *collected, const char *path, bool all,
                           uint64_t settled)
{
    struct error error;
    size_t length;
    uint64_t changes = 0;
    char *text = all ? collected_text_of_all(collected, settled, &length, &changes)
                     : collected_text(collected, settled, &length);

    CHECK(text && file_write(path, text, length, true, &error));
    free(text);
    return changes;
}

/* Writes the file of all traces as one agent, and reads it as the next agent. */
static struct collected *read_again(struct collected *collected, const char *path)
{
    (void)write_file(collected, path, true, UINT64_MAX);
    collected_free(collected);
    collected = collected_new();
    collected_load(collected, path);
    return collected;
}

/* The file has the collected traces, the open traces, and the times from which rings had them.
 */
TEST(test_file)
{
    char path[] = "/tmp/scan-queue.XXXXXX";
    struct collected *collected = collected_new();
    struct collected_trace *trace = collected_get(collected, id_of(1));
    json_t *json = found("00000000000000070000000000000001", 1, "a1", "a0");
    const struct collected_window *windows;
    struct timespec now;
    size_t count;

    clock_gettime(CLOCK_MONOTONIC, &now);
    CHECK(mkstemp(path) >= 0);
    note(collected, trace->id, (int64_t)now.tv_sec * 1000000000, 17);
    collected_note_held(collected, trace->id, 815);
    collected_note_window(collected, (struct collected_window){100, 200, 0});
    collected_open(trace, 4711, "osd*>20ms");
    collected_add(collected, json);
    collected = read_again(collected, path);
    windows = collected_windows(collected, &count);
    CHECK(count == 1 && windows[0].from_ns == 100 && windows[0].until_ns == 200);
    trace = collected_find(collected, id_of(1));
    CHECK(trace && trace->held_from_ns == 815);
    CHECK(trace && trace->place == 0 && trace->until_mono_ns && trace->is_open &&
          trace->asked_begin_ns == 4711 && trace->found.spans == 1);
    CHECK(trace && ids_have(&trace->found.have, 0xa1) && ids_have(&trace->found.want, 0xa0));
    CHECK_TEXT(trace ? trace->why : "", "osd*>20ms");
    collected_free(collected);

    /* a file of another form is ignored */
    collected = collected_new();
    CHECK(truncate(path, 20) == 0);
    collected_load(collected, path);
    CHECK(collected_find(collected, id_of(1)) == NULL);
    collected_free(collected);
    json_decref(json);
    (void)unlink(path);
}

/* A trace whose spans are not settled is saved as not collected, even if it was judged. Its window
 * is not saved. */
TEST(test_unsettled)
{
    struct collected *collected = collected_new();
    struct collected_trace *trace = collected_get(collected, id_of(1));
    const char *not_sent =
        "\"mono\":0,\"from\":-9223372036854775808,\"open\":true,\"judged\":true,\"unsent\":true";
    size_t length;
    char *text;

    collected_open(trace, 4711, "osd*>20ms");
    note(collected, trace->id, INT64_MAX, 1);
    collected_note_given(collected, trace->id, 10);
    collected_note_window(collected, (struct collected_window){100, 200, 10});
    collected_close(trace);
    text = collected_text(collected, 9, &length);
    CHECK(text && strstr(text, not_sent) && strstr(text, "\"windows\": []"));
    free(text);
    text = collected_text(collected, 10, &length);
    CHECK(text && strstr(text, "\"open\":false,\"judged\":false,\"unsent\":false") &&
          strstr(text, "[100, 200]"));
    free(text);
    collected_free(collected);
}

static bool file_has(struct collected *collected, const char *part)
{
    size_t length;
    char *text = collected_text(collected, UINT64_MAX, &length);
    const bool has = text && strstr(text, part);

    free(text);
    return has;
}

/* The file of changes has what the file of all traces lacks, and no more. */
TEST(test_two_files)
{
    static const char earlier[] = "{\"boot\": \"\", \"traces\": [{\"id\": \"70000000000000004\"}]}";
    char all[] = "/tmp/scan-queue.XXXXXX", new[] = "/tmp/scan-queue.XXXXXX";
    struct error error;
    struct collected *collected = collected_new();
    json_t *json = found("00000000000000070000000000000002", 1, "a1", "a0");
    uint64_t changes;
    struct collected_trace *trace;

    CHECK(mkstemp(all) >= 0 && mkstemp(new) >= 0);
    for (uint64_t id = 1; id <= 3; id++)
        collected_open(collected_get(collected, id_of(id)), 0, "first");
    collected_add(collected, json);
    collected_note_given(collected, id_of(3), 10);
    changes = write_file(collected, all, true, 9);
    collected_close(collected_find(collected, id_of(2))); /* while the file is written */
    collected_saved_all(collected, changes);
    CHECK(!file_has(collected, "000000000001\"") && file_has(collected, "000000000002\"") &&
          file_has(collected, "000000000003\""));
    collected_open(collected_get(collected, id_of(4)), 0, "new");
    (void)write_file(collected, new, false, UINT64_MAX);
    collected_free(collected);

    collected = collected_new();
    collected_load(collected, all);
    collected_load(collected, new);
    CHECK(collected_traces(collected)->count == 4);
    trace = collected_find(collected, id_of(2));
    CHECK(trace && !trace->is_open && trace->found.spans == 0);
    trace = collected_find(collected, id_of(4));
    CHECK(trace && trace->is_open);
    /* a trace that was closed in an earlier boot does not wait for a verdict */
    CHECK(file_write(new, earlier, strlen(earlier), true, &error));
    collected_load(collected, new);
    CHECK(!collected_find(collected, id_of(4)) && collected_find(collected, id_of(2)));
    collected_free(collected);
    json_decref(json);
    (void)unlink(all);
    (void)unlink(new);
}

/* The file has each change: a changed trace gets a new line. */
TEST(test_changes)
{
    struct collected *collected = collected_new();
    struct collected_trace *trace = collected_get(collected, id_of(1));
    json_t *json = found("00000000000000070000000000000001", 1, "a1", "a0");

    collected_open(trace, 4711, "osd*>20ms");
    CHECK(file_has(collected, "\"open\":true,\"judged\":false"));
    collected_add(collected, json);
    CHECK(file_has(collected, "00000000000000a1"));
    note(collected, trace->id, INT64_MAX, 1);
    CHECK(file_has(collected, "\"mono\":9223372036854775807"));
    collected_note_held(collected, trace->id, 815);
    CHECK(file_has(collected, "\"held\":815"));
    collected_note_held(collected, trace->id, 900); /* a later fetch has less */
    CHECK(file_has(collected, "\"held\":815"));
    collected_note_otlp_held(collected, trace->id, 816);
    CHECK(file_has(collected, "\"held\":816"));
    collected_close(trace);
    CHECK(file_has(collected, "\"open\":false") && !file_has(collected, "00000000000000a1"));
    collected_free(collected);
    json_decref(json);
}

/* The table has a bound: the oldest traces are removed. Neither this agent nor the next one takes
 * the alarms of removed traces as new. */
TEST(test_forgotten)
{
    char path[] = "/tmp/scan-queue.XXXXXX";
    struct collected *collected = collected_new();
    struct timespec now;
    int64_t now_ns;

    clock_gettime(CLOCK_MONOTONIC, &now);
    now_ns = (int64_t)now.tv_sec * 1000000000;
    for (uint64_t i = 1; i <= 10000; i++) {
        struct collected_trace *trace = collected_get(collected, id_of(i));

        CHECK(trace != NULL);
        if (trace) /* one trace for each millisecond until now */
            trace->until_mono_ns = now_ns - (10000 - (int64_t)i) * 1000000;
    }
    CHECK(collected_find(collected, id_of(10000)) && !collected_find(collected, id_of(1)));
    CHECK(collected_has(collected, id_of(1), (uint64_t)now_ns - UINT64_C(9999000000)));
    CHECK(mkstemp(path) >= 0);
    collected = read_again(collected, path);
    CHECK(!collected_find(collected, id_of(1)));
    CHECK(collected_has(collected, id_of(1), (uint64_t)now_ns - UINT64_C(9999000000)));
    collected_free(collected);
    (void)unlink(path);
}

/* A half as a text in a message. */
TEST(test_half)
{
    const struct join_half half = {.is_client = true,
                                   .key = 0x0123456789abcdef,
                                   .network = 1,
                                   .request_bytes = UINT64_MAX,
                                   .trace_id_high = JOIN_TRACE_HIGH,
                                   .trace_id = 2,
                                   .span_id = 3,
                                   .start_ns = 4,
                                   .end_ns = 5};
    json_t *text = half_json(&half), *wrong = json_string("c0123456789abcdef");
    struct join_half read;

    CHECK(half_read(text, &read) && read.is_client && read.key == half.key && read.network == 1 &&
          read.request_bytes == UINT64_MAX && read.span_id == 3 && read.start_ns == 4 &&
          read.end_ns == 5);
    CHECK(half_is_of(&read, (struct trace_id){JOIN_TRACE_HIGH, 2}));
    CHECK(!half_is_of(&read, (struct trace_id){0, 2}));
    CHECK(!half_read(wrong, &read) && !half_read(NULL, &read));
    json_decref(wrong);
    wrong = json_string("s");
    CHECK(json_string_setn(wrong, json_string_value(text), json_string_length(text)) == 0);
    ((char *)(uintptr_t)json_string_value(wrong))[144] = '3'; /* it ends before it begins */
    CHECK(!half_read(wrong, &read));
    json_decref(wrong);
    json_decref(text);
}

CHECK_MAIN
