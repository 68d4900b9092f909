/*
 * Fetching.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetch.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "copy.h"
#include "tools/base/folders.h"
#include "tools/base/privileges.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

static uint64_t fetch_cpu_ms(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* ---- the files ------------------------------------------------------------------------------- */

/* "ID FROM UNTIL WHY": what was sent before is not sent again, and where it is known how far the
 * rings were read before, it is not there. */
static void fetch_print_traces(FILE *file, const struct fetch_order *order)
{
    for (const struct request *r = order->requests; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++) {
            const struct wanted *wanted = &r->traces[i];
            const struct fetched_trace *before = fetched_find(order->fetched, wanted->id);
            const int64_t from_ns = before && before->until_mono_ns && !before->place
                                        ? before->until_mono_ns + order->offset_ns
                                        : 0;
            char text[TRACE_ID_TEXT];

            trace_id_text(wanted->id, text);
            (void)fprintf(file, "%s %" PRId64 " 0 %s\n", text, from_ns,
                          wanted->why[0] ? wanted->why : "kept");
        }
    }
}

/* All of that time. */
static void fetch_print_last(FILE *file, const struct request *request, int64_t offset_ns)
{
    const struct request_window window = request_window(request);
    char by_hand[WHY_MAX + 1];

    (void)snprintf(by_hand, sizeof(by_hand), "blkin keep --last %" PRId64 "ms", request->last_ms);
    (void)fprintf(file, "* %" PRId64 " %" PRId64 " %s\n", window.from_ns + offset_ns,
                  window.until_ns + offset_ns, request->why[0] ? request->why : by_hand);
}

struct fetch_sent {
    FILE *file;
    int64_t offset_ns;
};

static void fetch_print_sent_trace(void *context, struct fetched_trace *trace)
{
    const struct fetch_sent *sent = context;
    char text[TRACE_ID_TEXT];

    trace_id_text(trace->id, text);
    if (trace->until_mono_ns > 0)
        (void)fprintf(sent->file, "-%s 0 %" PRId64 "\n", text,
                      trace->until_mono_ns + sent->offset_ns);
}

/* What all of a time would send once more. */
static void fetch_print_sent(FILE *file, const struct fetch_order *order)
{
    struct fetch_sent sent = {file, order->offset_ns};
    size_t count;
    const struct fetched_window *windows = fetched_windows(order->fetched, &count);

    for (size_t i = 0; i < count; i++)
        (void)fprintf(file, "-* %" PRId64 " %" PRId64 "\n", windows[i].from_ns + order->offset_ns,
                      windows[i].until_ns + order->offset_ns);
    if (order->requests->last_ms > 0)
        fetched_each(order->fetched, fetch_print_sent_trace, &sent);
}

/* One without a trace is an error of the sink's: nothing is left to be sent then. */
static bool fetch_write_only(const char *path, const struct fetch_order *order)
{
    const struct request *first = order->requests;
    FILE *file = first ? fopen(path, "we") : NULL;
    bool is_well;
    long begin;

    if (!file)
        return false;
    (void)fprintf(file, "clock %" PRId64 "\n", order->offset_ns);
    begin = ftell(file);
    for (const struct request *r = first; r && r->last_ms > 0; r = r->next)
        fetch_print_last(file, r, order->offset_ns);
    if (first->last_ms == 0)
        fetch_print_traces(file, order);
    is_well = ftell(file) > begin;
    if (!first->service[0]) /* which is only read for its list */
        fetch_print_sent(file, order);
    return fclose(file) == 0 && is_well;
}

static bool fetch_write_requests(const char *path, const struct fetch_order *order,
                                 struct fetch_result *result)
{
    json_t *list = json_array(), *json;
    bool is_well;

    for (const struct request *r = order->requests; r; r = r->next)
        (void)json_array_append_new(list, request_json(r));
    json = json_pack("{sI, sI, so}", "mono", (json_int_t)order->until_mono_ns, "held_from",
                     (json_int_t)result->held_from_ns, "requests", list);
    is_well = json_save(json, path, &result->error);
    json_decref(json);
    return is_well;
}

struct request *fetch_requests(const char *kept, int64_t *until_mono_ns, int64_t *held_from_ns)
{
    char path[PATH_ROOM];
    struct request *list = NULL, **end = &list;
    json_t *json, *message;
    size_t i, left;

    path_set(path, "%s/requests", kept);
    json = json_load_file(path, 0, NULL);
    *until_mono_ns = json_integer_value(json_object_get(json, "mono"));
    *held_from_ns = json_integer_value(json_object_get(json, "held_from"));
    json_array_foreach(json_object_get(json, "requests"), i, message)
    {
        *end = request_read(message, SIZE_MAX, &left);
        if (*end)
            end = &(*end)->next;
    }
    json_decref(json);
    return list;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool fetch_fails(struct fetch_result *result, const char *what, const char *path)
{
    error_set(&result->error, "cannot %s %s: %s", what, path, strerror(errno));
    return false;
}

static bool fetch_write_foreign(const struct fetch_order *order, const char *path)
{
    FILE *file = fopen(path, "we");
    bool is_well = false;

    if (file) {
        is_well = fwrite(order->foreign, 1, order->foreign_bytes, file) == order->foreign_bytes;
        is_well = fclose(file) == 0 && is_well;
    }
    return is_well;
}

/* made: a new folder. Returns false with the result's error set. */
static bool fetch_keep(const struct fetch_order *order, struct copy *copy, const char *made,
                       struct fetch_result *result)
{
    char path[PATH_ROOM];

    if (!tree_remove(made) || !folder_make(made))
        return fetch_fails(result, "make", made);
    path_set(path, "%s/records", made);
    if (!copy_write(copy, path, result))
        return false;
    path_set(path, "%s/foreign", made);
    if (order->foreign_bytes && !fetch_write_foreign(order, path))
        return fetch_fails(result, "write", path);
    path_set(path, "%s/only", made);
    if (!fetch_write_only(path, order))
        return fetch_fails(result, "write", path);
    path_set(path, "%s/requests", made);
    if (!fetch_write_requests(path, order, result))
        return false;
    path_set(path, "%s/kept-%" PRIu64, order->folder, order->number);
    /* what has that name is whole, after a power cut too */
    result->is_kept = tree_put(made, path);
    return result->is_kept || fetch_fails(result, "make", path);
}

static void fetch(const struct fetch_order *order, struct fetch_result *result)
{
    struct copy *copy = copy_new(order);
    char made[PATH_ROOM];

    path_set(made, "%s/kept-%" PRIu64 ".new", order->folder, order->number);
    if (!copy)
        error_set(&result->error, "out of memory");
    else
        result->has_copied = copy_all(copy, result);
    if (order->foreign_from_ns > result->held_from_ns)
        result->held_from_ns = order->foreign_from_ns;
    if (result->has_copied && (result->records_kept || order->foreign_bytes) &&
        !fetch_keep(order, copy, made, result)) {
        result->has_copied = false;
        (void)tree_remove(made);
    }
    copy_free(copy);
    result->cpu_ms = fetch_cpu_ms();
}

static bool fetch_fill(const void *bytes, void *result)
{
    struct fetch_order order;

    if (!fetch_order_read(bytes, &order))
        return false;
    privileges_give_up();
    fetch(&order, result);
    fetch_order_free(&order);
    return true;
}

const struct job fetch_job = {
    .name = "record-fetch", .fill = fetch_fill, .result_size = sizeof(struct fetch_result)};
