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

static bool fetch_fails(struct fetch_result *result, const char *what, const char *path)
{
    return error_set(&result->error, "cannot %s %s: %s", what, path, strerror(errno));
}

/* A file of the new folder: the head, and these bytes. Returns false with the result's error set.
 */
static bool fetch_write(const char *made, const char *name, const char *head, const char *bytes,
                        size_t length, struct fetch_result *result)
{
    char path[PATH_ROOM];
    FILE *file;
    bool is_well = false;

    path_set(path, "%s/%s", made, name);
    file = fopen(path, "we");
    if (file) {
        is_well = fputs(head, file) >= 0 && fwrite(bytes, 1, length, file) == length;
        is_well = fclose(file) == 0 && is_well;
    }
    return is_well || fetch_fails(result, "write", path);
}

struct request *fetch_requests(const char *kept, int64_t *until_mono_ns, int64_t *held_from_ns)
{
    char path[PATH_ROOM];
    struct request *list = NULL, **end = &list;
    json_t *json, *message;
    size_t i, left;

    path_set(path, "%s/requests", kept);
    json = json_read(path);
    *until_mono_ns = number_in(json, "mono");
    *held_from_ns = number_in(json, "held_from");
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

/* made: a new folder. Returns false with the result's error set. */
static bool fetch_keep(const struct fetch_order *order, struct copy *copy, const char *made,
                       struct fetch_result *result)
{
    char path[PATH_ROOM], head[100];

    if (!tree_remove(made) || !folder_make(made))
        return fetch_fails(result, "make", made);
    path_set(path, "%s/records", made);
    if (!copy_write(copy, path, result))
        return false;
    (void)snprintf(head, sizeof(head), "{\"mono\": %" PRId64 ", \"held_from\": %" PRId64 ", ",
                   order->until_mono_ns, result->held_from_ns);
    if ((order->foreign_bytes &&
         !fetch_write(made, "foreign", "", order->foreign, order->foreign_bytes, result)) ||
        !fetch_write(made, "only", "", order->only, order->only_bytes, result) ||
        !fetch_write(made, "requests", head, order->requests, order->requests_bytes, result))
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
    /* of a trace that is wanted by its id asking.h tells it, if it has foreign spans */
    if (order->is_window && order->foreign_from_ns > result->held_from_ns)
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

    fetch_order_read(bytes, &order);
    privileges_give_up();
    fetch(&order, result);
    return true;
}

const struct job fetch_job = {
    .name = "agent-fetch", .fill = fetch_fill, .result_size = sizeof(struct fetch_result)};
