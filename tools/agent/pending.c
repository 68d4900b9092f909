/*
 * The pending set.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pending.h"

#include <string.h>

size_t pending_room(const struct pending *pending)
{
    return pending->max > pending->traces ? pending->max - pending->traces : 0;
}

size_t pending_add(struct pending *pending, struct request *request)
{
    struct request **at = &pending->list;
    const size_t room = pending_room(pending);
    const size_t left = request->count > room ? request->count - room : 0;

    request->count -= left;
    request->left_out += left;
    pending->traces += request->count;
    while (*at)
        at = &(*at)->next;
    *at = request;
    request->next = NULL;
    return left;
}

bool pending_has(const struct pending *pending, struct trace_id id, const char *host)
{
    for (const struct request *r = pending->list; r; r = r->next) {
        if ((!host || strcmp(r->host, host) == 0) && request_has(r, id))
            return true;
    }
    return false;
}

int64_t pending_due_ms(const struct pending *pending, bool is_last)
{
    int64_t due_ms = INT64_MAX;

    for (const struct request *r = pending->list; r; r = r->next) {
        if ((r->last_ms > 0) == is_last && r->due_ms < due_ms)
            due_ms = r->due_ms;
    }
    return due_ms;
}

size_t pending_last_count(const struct pending *pending)
{
    size_t count = 0;

    for (const struct request *r = pending->list; r; r = r->next)
        count += r->last_ms > 0;
    return count;
}

bool pending_has_look(const struct pending *pending)
{
    const struct request *request = pending->list;

    while (request && !request->is_look)
        request = request->next;
    return request != NULL;
}

/* Returns true if one scan can serve the request together with the taken ones. */
static bool pending_fits(const struct request *taken, const struct request *request)
{
    struct request_window all, one;

    if (!taken || request->last_ms == 0)
        return true;
    all = requests_window(taken);
    one = request_window(request);
    return strcmp(taken->service, request->service) == 0 && taken->is_look == request->is_look &&
           one.from_ns <= all.until_ns && one.until_ns >= all.from_ns;
}

struct request *pending_take(struct pending *pending, int64_t now_ms, bool is_last)
{
    struct request **at = &pending->list;
    struct request *taken = NULL, **end = &taken;

    while (*at) {
        struct request *request = *at;

        if (request->due_ms > now_ms || (request->last_ms > 0) != is_last ||
            !pending_fits(taken, request)) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        request->next = NULL;
        *end = request;
        end = &request->next;
        pending->traces -= request->count;
        if (is_last) /* begins again: the window is larger now, and may overlap others */
            at = &pending->list;
    }
    return taken;
}

void pending_hurry(struct pending *pending, int64_t now_ms)
{
    for (struct request *r = pending->list; r; r = r->next)
        r->due_ms = r->due_ms < now_ms ? r->due_ms : now_ms;
}
