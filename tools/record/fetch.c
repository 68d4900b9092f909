/*
 * Fetching.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fetch.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/folders.h"
#include "tools/base/privileges.h"
#include "tools/base/say.h"
#include "tools/base/totals.h"
#include "tools/lttng/session.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

static uint64_t cpu_ms(void)
{
    struct rusage usage;

    (void)getrusage(RUSAGE_SELF, &usage);
    return (uint64_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
           (uint64_t)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

/* The lower halves of the ids, for the scan; to be freed. */
static uint64_t *list_ids(const struct request *requests, size_t *count)
{
    uint64_t *ids;
    size_t all = 0;

    for (const struct request *r = requests; r; r = r->next)
        all += r->count;
    ids = calloc(all ? all : 1, sizeof(*ids));
    *count = 0;
    for (const struct request *r = requests; r && ids; r = r->next) {
        for (size_t i = 0; i < r->count; i++)
            ids[(*count)++] = r->traces[i].id.low;
    }
    return ids;
}

static bool pick_wanted(const struct fetch_order *order, const char *snapshot, const char *to,
                        struct fetch_result *result)
{
    const struct request *first = order->requests;
    struct pick_spec spec = {.count = 0};
    uint64_t *ids = NULL;
    bool is_well;

    if (first->last_ms > 0) {
        const struct request_window all = requests_window(first);

        spec.from_clock = all.from_ns > 0 ? (uint64_t)all.from_ns : 0;
        spec.until_clock = (uint64_t)all.until_ns;
    } else {
        ids = list_ids(first, &spec.count);
        spec.ids = ids;
        if (!ids) {
            error_set(&result->error, "out of memory");
            return false;
        }
        if (spec.count == 0) { /* all of it was too much: it is only answered */
            free(ids);
            return folder_make(to);
        }
    }
    is_well = pick(snapshot, to, &spec, &result->picked, &result->error);
    free(ids);
    return is_well;
}

/* ---- what the host did ----------------------------------------------------------------------- */

/* Of before the first trace, so that a counter has a value to begin with, and its name. */
#define HOST_LEAD_NS INT64_C(10000000000)

/* When the first trace began, by the trace's clock; 0: of one it is not known. */
static int64_t first_began(const struct request *requests, int64_t offset_ns)
{
    int64_t first_ns = INT64_MAX;

    if (requests->last_ms > 0)
        return requests_window(requests).from_ns;
    for (const struct request *r = requests; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++) {
            if (!r->traces[i].begin_ns)
                return 0;
            if (r->traces[i].begin_ns < first_ns)
                first_ns = r->traces[i].begin_ns;
        }
    }
    return first_ns - offset_ns;
}

/* Without it the traces are as they are: that LTTng fails is said elsewhere. */
static void pick_host(const struct fetch_order *order, const char *snapshot, const char *made,
                      int64_t offset_ns)
{
    const int64_t from_ns = first_began(order->requests, offset_ns) - HOST_LEAD_NS;
    const struct pick_spec spec = {.from_clock = from_ns > 0 ? (uint64_t)from_ns : 0,
                                   .until_clock = UINT64_MAX};
    struct pick_result ignored;
    struct error error;
    char to[PATH_ROOM];

    path_set(to, "%s/host", made);
    if (!pick(snapshot, to, &spec, &ignored, &error))
        (void)tree_remove(to);
}

/* ---- the files ------------------------------------------------------------------------------- */

/* "ID FROM UNTIL WHY": what was sent before is not sent again. */
static void print_traces(FILE *file, const struct fetch_order *order,
                         const struct fetch_result *result)
{
    for (const struct request *r = order->requests; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++) {
            const struct wanted *wanted = &r->traces[i];
            const struct fetched_trace *before = fetched_find(order->fetched, wanted->id);
            const int64_t from_ns = before ? before->until_ns : 0;
            char text[TRACE_ID_TEXT];

            trace_id_text(wanted->id, text);
            if (from_ns < result->until_ns)
                (void)fprintf(file, "%s %" PRId64 " %" PRId64 " %s\n", text, from_ns,
                              result->until_ns, wanted->why[0] ? wanted->why : "kept");
        }
    }
}

/* All of that time. */
static void print_last(FILE *file, const struct request *request, const struct fetch_result *result)
{
    const struct request_window window = request_window(request);
    char by_hand[WHY_MAX + 1];

    (void)snprintf(by_hand, sizeof(by_hand), "blkin keep --last %" PRId64 "ms", request->last_ms);
    (void)fprintf(file, "* %" PRId64 " %" PRId64 " %s\n", window.from_ns + result->offset_ns,
                  window.until_ns + result->offset_ns, request->why[0] ? request->why : by_hand);
}

static void print_sent_trace(void *context, struct fetched_trace *trace)
{
    char text[TRACE_ID_TEXT];

    trace_id_text(trace->id, text);
    if (trace->until_ns > 0)
        (void)fprintf(context, "-%s 0 %" PRId64 "\n", text, trace->until_ns);
}

/* What all of a time would send once more. */
static void print_sent(FILE *file, const struct fetch_order *order)
{
    size_t count;
    const struct fetched_window *windows = fetched_windows(order->fetched, &count);

    for (size_t i = 0; i < count; i++)
        (void)fprintf(file, "-* %" PRId64 " %" PRId64 "\n", windows[i].from_ns,
                      windows[i].until_ns);
    if (order->requests->last_ms > 0)
        fetched_each(order->fetched, print_sent_trace, file);
}

/* One without a trace is an error of the sink's: nothing is left to be sent then. */
static bool write_only(const char *path, const struct fetch_order *order,
                       const struct fetch_result *result)
{
    const struct request *first = order->requests;
    FILE *file = fopen(path, "we");
    bool is_well;
    long begin;

    if (!file)
        return false;
    (void)fprintf(file, "clock %" PRId64 "\n", wall_clock_ns() - clock_ns());
    begin = ftell(file);
    for (const struct request *r = first; r && r->last_ms > 0; r = r->next)
        print_last(file, r, result);
    if (first->last_ms == 0)
        print_traces(file, order, result);
    is_well = ftell(file) > begin;
    if (!first->service[0]) /* which is only read for its list */
        print_sent(file, order);
    return fclose(file) == 0 && is_well;
}

static bool write_requests(const char *path, const struct fetch_order *order,
                           struct fetch_result *result)
{
    json_t *list = json_array(), *json;
    bool is_well;

    for (const struct request *r = order->requests; r; r = r->next)
        (void)json_array_append_new(list, request_json(r));
    json = json_pack("{sI, sI, sI, so}", "until", (json_int_t)result->until_ns, "mono",
                     (json_int_t)result->until_mono_ns, "held_from",
                     (json_int_t)result->held_from_ns, "requests", list);
    is_well = json_save(json, path, &result->error);
    json_decref(json);
    return is_well;
}

struct request *fetch_requests(const char *kept, int64_t *until_ns, int64_t *until_mono_ns,
                               int64_t *held_from_ns)
{
    char path[PATH_ROOM];
    struct request *list = NULL, **end = &list;
    json_t *json, *message;
    size_t i, left;

    path_set(path, "%s/requests", kept);
    json = json_load_file(path, 0, NULL);
    *until_ns = json_integer_value(json_object_get(json, "until"));
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

static void set_held_from(const struct fetch_order *order, struct fetch_result *result)
{
    int64_t held_from_ns = (int64_t)result->picked.held_from;

    /* an empty one has been so since it was made; nothing is older than that */
    if (held_from_ns == 0 && order->ring_mono_ns == 0)
        held_from_ns = result->until_mono_ns;
    else if (held_from_ns < order->ring_mono_ns ||
             (result->picked.has_all && order->ring_mono_ns > 0))
        held_from_ns = order->ring_mono_ns;
    result->held_from_ns = held_from_ns + result->offset_ns;
}

static bool keep(const struct fetch_order *order, const char *made, struct fetch_result *result)
{
    char path[PATH_ROOM];

    result->until_ns = result->until_mono_ns + result->offset_ns;
    set_held_from(order, result);
    result->has_picked = true;
    if (result->picked.packets_kept == 0)
        return tree_remove(made);
    path_set(path, "%s/only", made);
    if (!write_only(path, order, result))
        return tree_remove(made);
    path_set(path, "%s/requests", made);
    if (!write_requests(path, order, result))
        return false;
    path_set(path, "%s/kept-%" PRIu64, order->folder, order->number);
    /* what has that name is whole, after a power cut too */
    if (tree_put(made, path)) {
        result->is_kept = true;
        return true;
    }
    error_set(&result->error, "cannot make %s: %s", path, strerror(errno));
    return false;
}

static bool take_snapshot(const struct fetch_order *order, const char *snapshot,
                          struct fetch_result *result)
{
    const int64_t begun_ms = clock_ms();
    struct error ignored;

    if (!tree_remove(snapshot)) {
        error_set(&result->error, "cannot remove %s: %s", snapshot, strerror(errno));
        return false;
    }
    result->until_mono_ns = clock_ns();
    if (!session_snapshot(order->session, snapshot, order->max_bytes, &result->error))
        return false;
    result->snapshot_ms += (uint64_t)(clock_ms() - begun_ms);
    result->has_snapshot = true;
    result->has_look =
        ring_look(snapshot, (uint64_t)result->until_mono_ns, STALLED_NS, &result->look, &ignored);
    if (!ring_clock(snapshot, &result->offset_ns, &ignored))
        result->offset_ns = wall_clock_ns() - clock_ns(); /* there is nothing in it */
    return true;
}

/* A thread that was just recording has hidden the newest packet of its CPU: the next snapshot has
 * it. One that was killed then hides it from all of them; such a stream is stalled before long. */
static bool lacks_newest(const struct fetch_result *result)
{
    return result->has_look && result->look.streams > 0 && result->look.streams_stalled == 0 &&
           result->look.held_until < (uint64_t)result->until_mono_ns;
}

static bool take_whole_snapshot(const struct fetch_order *order, const char *snapshot,
                                struct fetch_result *result)
{
    return take_snapshot(order, snapshot, result) &&
           (!order->requests || !lacks_newest(result) || take_snapshot(order, snapshot, result));
}

static bool take_host_snapshot(const struct fetch_order *order, const char *snapshot)
{
    struct error ignored;

    return order->requests && order->host_session && tree_remove(snapshot) &&
           session_snapshot(order->host_session, snapshot, 0, &ignored);
}

/* host: a snapshot, or NULL. */
static bool make_kept(const struct fetch_order *order, const char *snapshot, const char *host,
                      const char *made, struct fetch_result *result)
{
    if (!tree_remove(made) || !pick_wanted(order, snapshot, made, result))
        return false;
    if (host && result->picked.packets_kept > 0)
        pick_host(order, host, made, result->offset_ns);
    return keep(order, made, result);
}

void fetch(const struct fetch_order *order, struct fetch_result *result)
{
    char snapshot[PATH_ROOM], host[PATH_ROOM], made[PATH_ROOM];

    path_set(snapshot, "%s/snapshot", order->folder);
    path_set(host, "%s/snapshot-host", order->folder);
    path_set(made, "%s/kept-%" PRIu64 ".new", order->folder, order->number);
    if (take_whole_snapshot(order, snapshot, result)) {
        const bool has_host = take_host_snapshot(order, host);

        privileges_give_up();
        if (order->requests && !make_kept(order, snapshot, has_host ? host : NULL, made, result))
            (void)tree_remove(made);
    }
    (void)tree_remove(snapshot);
    (void)tree_remove(host);
    result->cpu_ms = cpu_ms();
}

static bool fetch_fill(const void *bytes, void *result)
{
    struct fetch_order order;

    if (!fetch_order_read(bytes, &order))
        return false;
    fetch(&order, result);
    return true;
}

const struct job fetch_job = {
    .name = "record-fetch", .fill = fetch_fill, .result_size = sizeof(struct fetch_result)};
