/*
 * Makes the answer of this host to a request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "answer.h"

#include "feed.h"

#include <stdio.h>

#define ANSWER_IDS_MAX 24576 /* ids in one answer: a message of the cluster has 1 MiB at most */

struct answer_list {
    json_t *list;
    size_t traces_left, ids_left; /* of the limits of this answer */
};

/* Adds the trace. If its ids have no room, adds it without them, marked "cut". A trace that has no
 * room is left out; answer_unlisted() counts such traces of a window. */
static void answer_add_trace(struct answer_list *listing, json_t *trace)
{
    const size_t ids = json_array_size(json_object_get(trace, "have")) +
                       json_array_size(json_object_get(trace, "want"));

    if (!trace || listing->traces_left == 0) {
        json_decref(trace);
        return;
    }
    listing->traces_left--;
    if (ids > listing->ids_left) {
        (void)json_array_clear(json_object_get(trace, "have"));
        (void)json_array_clear(json_object_get(trace, "want"));
        (void)json_object_set_new(trace, "cut", json_true());
    } else {
        listing->ids_left -= ids;
    }
    (void)json_array_append_new(listing->list, trace);
}

static json_t *answer_list_fetched(const struct fetched *fetched, const struct request *request,
                                   const json_t *found, size_t requests)
{
    struct answer_list listing = {json_array(), FEED_NAMED_MAX, ANSWER_IDS_MAX};
    const json_t *trace;
    size_t i;

    if (request->is_late)
        requests = 1;
    if (request->last_ms > 0 || request->is_late) {
        /* each request of the scan gets an equal part of one message's room */
        listing.traces_left /= requests;
        listing.ids_left /= requests;
        json_array_foreach(json_object_get(found, "traces"), i, trace)
            answer_add_trace(&listing, fetched_copy(fetched, trace));
    }
    for (size_t k = 0; k < request->count && !request->is_late; k++) {
        const struct fetched_trace *known = fetched_find(fetched, request->traces[k].id);

        if (known)
            answer_add_trace(&listing, fetched_json(known));
    }
    return listing.list;
}

/* Returns the number of found traces of a window that the answer does not list. */
static size_t answer_unlisted(const struct request *request, const json_t *found,
                              const json_t *list)
{
    const json_int_t untold = number_in(found, "untold");
    const size_t sent =
        json_array_size(json_object_get(found, "traces")) + (untold > 0 ? (size_t)untold : 0);
    const size_t listed = json_array_size(list);

    return request->last_ms > 0 && sent > listed ? sent - listed : 0;
}

json_t *answer_new(const struct agent *agent, const struct request *request, size_t requests,
                   const struct answer_reach *reach, const json_t *found, const char *problem)
{
    json_t *list = answer_list_fetched(agent->fetched, request, found, requests);
    const size_t unlisted = answer_unlisted(request, found, list);
    const bool is_bounded = reach && reach->reach_ns > INT64_MIN && request->came_mono_ns;
    char left_out[80];

    (void)snprintf(left_out, sizeof(left_out),
                   "%zu traces of the request were too many (fetch-traces)", request->left_out);
    return json_pack(
        "{ss, ss, ss, ss, sI, so*, ss*, so*, so*, so}", "type", "found", "id", request->id, "to",
        request->host, "host", agent->host, "held_from",
        (json_int_t)(reach ? reach->held_from_ns : 0), "reach_ms",
        is_bounded ? json_integer((request->came_mono_ns - reach->reach_ns) / 1000000 + 1) : NULL,
        "error",
        problem             ? problem
        : request->left_out ? left_out
                            : NULL,
        "late", request->is_late ? json_true() : NULL, "more",
        unlisted ? json_integer((json_int_t)unlisted) : NULL, "traces", list);
}
