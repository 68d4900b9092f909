/* SPDX-License-Identifier: BSD-2-Clause */
#include "found.h"

#include "feed.h"
#include "tools/rings/ring_event.h"

#include <stdio.h>

#define FOUND_IDS_MAX 24576 /* ids in one answer: a message of the cluster has 1 MiB at most */

struct found_list {
    const struct request *request;
    json_t *list;
    size_t traces_left, ids_left; /* the room that this answer still has */
};

/* Adds the time from which on this host has all spans. held_from, for people: ns since 1970.
 * held_us, for the asking host, whose clock differs: the time before the request, in us. */
static void found_set_held(json_t *json, const struct request *request, int64_t held_mono_ns)
{
    const int64_t before_ns = request->came_mono_ns - held_mono_ns;

    (void)json_object_set_new(json, "held_from", json_integer(held_mono_ns + ring_clock_offset()));
    if (request->came_mono_ns)
        (void)json_object_set_new(json, "held_us",
                                  json_integer(before_ns > 0 ? before_ns / 1000 : 0));
}

/* Adds the trace. If its ids have no room, adds it without them, marked "cut". A trace that has no
 * room is left out; found_unlisted() counts such traces of a window. */
static void found_add_trace(struct found_list *listing, json_t *trace)
{
    const size_t ids = json_array_size(json_object_get(trace, "have")) +
                       json_array_size(json_object_get(trace, "want"));

    if (!trace || listing->traces_left == 0) {
        json_decref(trace);
        return;
    }
    listing->traces_left--;
    if (number_in(trace, "held_from") > 0)
        found_set_held(trace, listing->request, number_in(trace, "held_from"));
    if (ids > listing->ids_left) {
        (void)json_array_clear(json_object_get(trace, "have"));
        (void)json_array_clear(json_object_get(trace, "want"));
        (void)json_object_set_new(trace, "cut", json_true());
    } else {
        listing->ids_left -= ids;
    }
    (void)json_array_append_new(listing->list, trace);
}

static json_t *found_list_collected(const struct collected *collected,
                                    const struct request *request, const json_t *found,
                                    size_t requests)
{
    struct found_list listing = {request, json_array(), FEED_NAMED_MAX, FOUND_IDS_MAX};
    const json_t *trace;
    size_t i;

    if (request->is_late)
        requests = 1;
    if (request->last_ms > 0 || request->is_late) {
        /* each request of the scan gets an equal part of one message's room */
        listing.traces_left /= requests;
        listing.ids_left /= requests;
        json_array_foreach(json_object_get(found, "traces"), i, trace)
            found_add_trace(&listing, collected_copy(collected, trace));
    }
    for (size_t k = 0; k < request->count && !request->is_late; k++) {
        const struct collected_trace *known = collected_find(collected, request->traces[k].id);

        if (known)
            found_add_trace(&listing, collected_json(known));
    }
    return listing.list;
}

/* Returns the number of found traces of a window that the answer does not list. */
static size_t found_unlisted(const struct request *request, const json_t *found, const json_t *list)
{
    const json_int_t untold = number_in(found, "untold");
    const size_t sent =
        json_array_size(json_object_get(found, "traces")) + (untold > 0 ? (size_t)untold : 0);
    const size_t listed = json_array_size(list);

    return request->last_ms > 0 && sent > listed ? sent - listed : 0;
}

json_t *found_new(const struct agent *agent, const struct request *request, size_t requests,
                  const struct found_reach *reach, const json_t *found, const char *problem)
{
    json_t *list = found_list_collected(agent->collected, request, found, requests);
    const size_t unlisted = found_unlisted(request, found, list);
    const bool is_bounded = reach && reach->reach_ns > INT64_MIN && request->came_mono_ns;
    char left_out[80];
    json_t *answer;

    (void)snprintf(left_out, sizeof(left_out),
                   "%zu traces of the request were too many (fetch-traces)", request->left_out);
    answer = json_pack(
        "{ss, ss, ss, ss, si, so*, ss*, so*, so*, so}", "type", "found", "id", request->id, "to",
        request->host, "host", agent->host, "held_from", 0, "reach_ms",
        is_bounded ? json_integer((request->came_mono_ns - reach->reach_ns) / 1000000 + 1) : NULL,
        "error",
        problem             ? problem
        : request->left_out ? left_out
                            : NULL,
        "late", request->is_late ? json_true() : NULL, "more",
        unlisted ? json_integer((json_int_t)unlisted) : NULL, "traces", list);
    if (reach)
        found_set_held(answer, request, reach->held_from_ns);
    return answer;
}
