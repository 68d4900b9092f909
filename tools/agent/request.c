/* SPDX-License-Identifier: BSD-2-Clause */
#include "request.h"

#include "babeltrace-plugin/base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct request *request_new(const char *id, const char *host)
{
    struct request *request = calloc(1, sizeof(*request));

    if (!request)
        return NULL;
    (void)snprintf(request->id, sizeof(request->id), "%s", id);
    (void)snprintf(request->host, sizeof(request->host), "%s", host);
    return request;
}

void requests_free(struct request *list)
{
    while (list) {
        struct request *next = list->next;

        asker_release(list->asker);
        free(list->traces);
        free(list);
        list = next;
    }
}

struct request *requests_of(struct request **list, struct asker *asker, const char *host)
{
    struct request *request = *list;

    while (request && request->asker != asker)
        request = request->next;
    if (!request && (request = request_new("", host))) {
        request->asker = asker_hold(asker);
        request->next = *list;
        *list = request;
    }
    return request;
}

bool request_has(const struct request *request, struct trace_id id)
{
    for (size_t i = 0; i < request->count; i++) {
        if (trace_id_equal(request->traces[i].id, id))
            return true;
    }
    return false;
}

size_t requests_traces(const struct request *list)
{
    size_t count = 0;

    for (; list; list = list->next)
        count += list->count;
    return count;
}

/* Copies the reason, with "?" in place of control characters. */
static void request_copy_why(char to[WHY_MAX + 1], const char *why)
{
    size_t length = strnlen(why, WHY_MAX);

    while (length && ((unsigned char)why[length] & 0xc0) == 0x80) /* cuts before a character */
        length--;
    (void)snprintf(to, WHY_MAX + 1, "%.*s", (int)length, why);
    for (char *c = to; *c; c++) {
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?';
    }
}

void request_set_why(struct request *request, const char *why)
{
    request_copy_why(request->why, why);
}

bool request_add(struct request *request, struct trace_id id, int64_t begin_ns, const char *why)
{
    struct wanted *wanted;

    if (request_has(request, id))
        return true;
    if (!ARRAY_FITS(request->traces, request->room, request->count))
        return false;
    wanted = &request->traces[request->count++];
    *wanted = (struct wanted){.id = id, .begin_ns = begin_ns};
    request_copy_why(wanted->why, why);
    return true;
}

int64_t request_begin(const struct request *request, const struct wanted *wanted)
{
    int64_t age_ns, begin_ns;

    if (!wanted->begin_ns || !request->came_mono_ns ||
        __builtin_sub_overflow(request->at_ns, wanted->begin_ns, &age_ns) ||
        __builtin_sub_overflow(request->came_mono_ns, age_ns, &begin_ns))
        return INT64_MIN;
    return begin_ns < request->came_mono_ns ? begin_ns : request->came_mono_ns;
}

/* ---- windows --------------------------------------------------------------------------------- */

struct request_window request_window(const struct request *request)
{
    return (struct request_window){request->came_mono_ns - request->last_ms * 1000000,
                                   request->came_mono_ns};
}

struct request_window requests_window(const struct request *list)
{
    struct request_window all = request_window(list);

    for (list = list->next; list; list = list->next) {
        const struct request_window one = request_window(list);

        all.from_ns = one.from_ns < all.from_ns ? one.from_ns : all.from_ns;
        all.until_ns = one.until_ns > all.until_ns ? one.until_ns : all.until_ns;
    }
    return all;
}

/* ---- as JSON --------------------------------------------------------------------------------- */

static json_t *request_traces_json(const struct request *request)
{
    json_t *list = json_array();

    for (size_t i = 0; list && i < request->count; i++) {
        const int64_t begin_ns = request->traces[i].begin_ns;
        char text[TRACE_ID_TEXT];

        trace_id_text(request->traces[i].id, text);
        if (json_array_append_new(list, json_pack("{ss, ss, so*}", "id", text, "why",
                                                  request->traces[i].why, "begin",
                                                  begin_ns ? json_integer(begin_ns) : NULL)) != 0) {
            json_decref(list);
            list = NULL;
        }
    }
    return list;
}

json_t *request_json(const struct request *request)
{
    const bool is_last = request->last_ms > 0;
    json_t *traces = is_last ? NULL : request_traces_json(request);

    if (!is_last && !traces)
        return NULL;
    return json_pack("{ss, ss, ss, sI, so*, ss*, ss*, so*, so*, so*}", "type", "keep", "id",
                     request->id, "host", request->host, "at", (json_int_t)request->at_ns,
                     "last_ms", is_last ? json_integer(request->last_ms) : NULL, "service",
                     is_last && request->service[0] ? request->service : NULL, "why",
                     is_last && request->why[0] ? request->why : NULL, "traces", traces, "left_out",
                     request->left_out ? json_integer((json_int_t)request->left_out) : NULL, "late",
                     request->is_late ? json_true() : NULL);
}

static bool request_read_traces(struct request *request, const json_t *traces, size_t max,
                                size_t *left)
{
    const json_t *trace;
    size_t i;

    json_array_foreach(traces, i, trace)
    {
        struct trace_id id;

        if (!trace_id_read(json_string_value(json_object_get(trace, "id")), &id))
            continue;
        if (request->count >= max)
            (*left)++;
        else if (!request_add(request, id, number_in(trace, "begin"), text_in(trace, "why")))
            return false;
    }
    return true;
}

struct request *request_read(const json_t *message, size_t max, size_t *left)
{
    const char *id = json_string_value(json_object_get(message, "id"));
    const char *host = json_string_value(json_object_get(message, "host"));
    const json_int_t left_out = number_in(message, "left_out");
    struct request *request;

    *left = 0;
    if (!id || !host || strlen(id) >= sizeof(request->id) || strlen(host) >= sizeof(request->host))
        return NULL;
    request = request_new(id, host);
    if (!request)
        return NULL;
    request->is_late = json_is_true(json_object_get(message, "late"));
    request->at_ns = number_in(message, "at");
    request->last_ms = number_in(message, "last_ms");
    (void)snprintf(request->service, sizeof(request->service), "%s", text_in(message, "service"));
    request_set_why(request, text_in(message, "why"));
    if (request->last_ms < 0 || request->last_ms > 86400000 ||
        !request_read_traces(request, json_object_get(message, "traces"), max, left) ||
        (request->last_ms == 0 && request->count == 0 && left_out <= 0)) {
        requests_free(request);
        return NULL;
    }
    request->left_out = *left + (left_out > 0 ? (size_t)left_out : 0);
    return request;
}
