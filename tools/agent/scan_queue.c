/* SPDX-License-Identifier: BSD-2-Clause */
#include "scan_queue.h"

#include <string.h>

size_t scan_queue_room(const struct scan_queue *scan_queue, const struct asker *asker)
{
    const size_t max = scan_queue->max + (asker ? 0 : scan_queue->more_for_others);
    size_t traces = 0;

    for (const struct request *r = scan_queue->list; r; r = r->next)
        traces += r->asker == asker ? r->count : 0;
    return max > traces ? max - traces : 0;
}

size_t scan_queue_add(struct scan_queue *scan_queue, struct request *request)
{
    struct request **at = &scan_queue->list;
    const size_t room = scan_queue_room(scan_queue, request->asker);
    const size_t left = request->count > room ? request->count - room : 0;

    request->count -= left;
    request->left_out += left;
    scan_queue->traces += request->count;
    while (*at)
        at = &(*at)->next;
    *at = request;
    request->next = NULL;
    return left;
}

bool scan_queue_has(const struct scan_queue *scan_queue, struct trace_id id)
{
    const struct request *request = scan_queue->list;

    while (request && !request_has(request, id))
        request = request->next;
    return request != NULL;
}

void scan_queue_rest(struct scan_queue *scan_queue, struct asker *asker, int64_t until_ms)
{
    if (asker)
        asker->rest_ms = until_ms;
    else
        scan_queue->rest_ms = until_ms;
}

static int64_t scan_queue_due_of(const struct scan_queue *scan_queue, const struct request *request)
{
    const int64_t rest_ms = request->last_ms > 0 ? 0
                            : request->asker     ? request->asker->rest_ms
                                                 : scan_queue->rest_ms;

    return request->due_ms > rest_ms ? request->due_ms : rest_ms;
}

/* Returns the request that is due first; NULL: there is none. */
static const struct request *scan_queue_first(const struct scan_queue *scan_queue, bool is_last)
{
    const struct request *first = NULL;

    for (const struct request *r = scan_queue->list; r; r = r->next) {
        if ((r->last_ms > 0) == is_last &&
            (!first || scan_queue_due_of(scan_queue, r) < scan_queue_due_of(scan_queue, first)))
            first = r;
    }
    return first;
}

int64_t scan_queue_due_ms(const struct scan_queue *scan_queue, bool is_last)
{
    const struct request *first = scan_queue_first(scan_queue, is_last);

    return first ? scan_queue_due_of(scan_queue, first) : INT64_MAX;
}

size_t scan_queue_last_count(const struct scan_queue *scan_queue)
{
    size_t count = 0;

    for (const struct request *r = scan_queue->list; r; r = r->next)
        count += r->last_ms > 0;
    return count;
}

bool scan_queue_has_look(const struct scan_queue *scan_queue)
{
    const struct request *request = scan_queue->list;

    while (request && !request->is_look)
        request = request->next;
    return request != NULL;
}

/* Returns true if one scan can serve the request together with the taken ones. */
static bool scan_queue_fits(const struct request *taken, const struct request *request)
{
    struct request_window all, one;

    if (!taken || request->last_ms == 0)
        return true;
    all = requests_window(taken);
    one = request_window(request);
    return strcmp(taken->service, request->service) == 0 && taken->is_look == request->is_look &&
           one.from_ns <= all.until_ns && one.until_ns >= all.from_ns;
}

struct request *scan_queue_take(struct scan_queue *scan_queue, int64_t now_ms, bool is_last)
{
    const struct request *first = scan_queue_first(scan_queue, is_last);
    const struct asker *asker = first ? first->asker : NULL;
    struct request **at = &scan_queue->list;
    struct request *taken = NULL, **end = &taken;

    while (*at) {
        struct request *request = *at;

        if (scan_queue_due_of(scan_queue, request) > now_ms || (request->last_ms > 0) != is_last ||
            request->asker != asker || !scan_queue_fits(taken, request)) {
            at = &request->next;
            continue;
        }
        *at = request->next;
        request->next = NULL;
        *end = request;
        end = &request->next;
        scan_queue->traces -= request->count;
        if (is_last) /* the loop begins again: the larger window may overlap earlier requests */
            at = &scan_queue->list;
    }
    return taken;
}

void scan_queue_hurry(struct scan_queue *scan_queue, int64_t now_ms)
{
    for (struct request *r = scan_queue->list; r; r = r->next) {
        r->due_ms = r->due_ms < now_ms ? r->due_ms : now_ms;
        scan_queue_rest(scan_queue, r->asker, 0);
    }
}
