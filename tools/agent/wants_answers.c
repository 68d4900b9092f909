/*
 * The answers of this host: the message "found" (tools/cluster/cluster.h). Also the functions of
 * struct joins_calls (joins.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wants.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "feed.h"
#include "tools/rings/ring_event.h"

#include <stdio.h>
#include <string.h>

#define FOUND_IDS_MAX 24576 /* ids in one answer: a message of the cluster has 1 MiB at most */

struct found_list {
    const struct request *request;
    json_t *list;
    size_t traces_left, ids_left; /* the room that this answer still has */
};

/* Adds the time from which this host has all spans. held_from, for people: ns since 1970.
 * held_us, for the asking host, whose clock differs: how long before the request, in us. */
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

static bool found_is_of(const struct request *request, const json_t *trace)
{
    struct trace_id id;

    return trace_id_read(json_string_value(json_object_get(trace, "id")), &id) &&
           request_has(request, id);
}

static json_t *found_list_collected(const struct collected *collected,
                                    const struct request *request, const json_t *found,
                                    size_t requests)
{
    const bool is_new_only = request->last_ms > 0 || request->is_late;
    struct found_list listing = {request, json_array(), FEED_NAMED_MAX, FOUND_IDS_MAX};
    const json_t *trace;
    size_t i;

    if (request->last_ms > 0) {
        /* each request of the scan gets an equal part of one message's room */
        listing.traces_left /= requests;
        listing.ids_left /= requests;
    }
    /* of a late answer, the first answer had the other spans */
    json_array_foreach(is_new_only ? json_object_get(found, "traces") : NULL, i, trace)
    {
        if (request->last_ms > 0 || found_is_of(request, trace))
            found_add_trace(&listing, collected_copy(collected, trace));
    }
    for (size_t k = 0; k < request->count && !is_new_only; k++) {
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

/* Makes the answer to one request. requests: the number of requests that the scan was for. Returns
 * NULL when out of memory. */
static json_t *found_new(const struct agent *agent, const struct request *request, size_t requests,
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
    if (request->came_mono_ns)
        (void)json_object_set_new(answer, "took_us",
                                  json_integer((clock_ns() - request->came_mono_ns) / 1000));
    return answer;
}

/* ---- answers --------------------------------------------------------------------------------- */

void wants_answer(struct wants *wants, const struct request *requests,
                  const struct found_reach *reach, const json_t *found, const char *problem)
{
    size_t count = 0;

    for (const struct request *r = requests; r; r = r->next)
        count++;
    for (const struct request *r = requests; r; r = r->next) {
        json_t *answer = found_new(wants->agent, r, count, reach, found, problem);
        const bool is_empty = json_array_size(json_object_get(answer, "traces")) == 0;

        if (r->is_late && is_empty) {
            json_decref(answer);
            continue;
        }
        if (answer && strcmp(r->host, wants->agent->host) == 0)
            judge_answer(wants->judge, answer, clock_ms());
        else
            cluster_send(wants->cluster, answer);
        json_decref(answer);
    }
    agent_step(wants->agent);
}

void wants_found(struct wants *wants, const struct request *requests,
                 const struct found_reach *reach, const json_t *found)
{
    const bool is_last = requests && requests->last_ms > 0;
    const json_t *trace;
    size_t i;

    json_array_foreach(is_last ? NULL : json_object_get(found, "traces"), i, trace)
        collected_add(wants->agent->collected, trace);
    wants_answer(wants, requests, reach, found, NULL);
}

/* ---- joins ----------------------------------------------------------------------------------- */

static void wants_look(void *context, struct request *request)
{
    const struct wants *wants = context;

    (void)scan_queue_add(&wants->agent->scan_queue, request);
    agent_step(wants->agent);
}

static void wants_want(void *context, struct request *request, json_t *halves)
{
    wants_ask_others(context, request, NULL, 0, halves);
}

static bool wants_is_answered(void *context, const struct request *request)
{
    const struct wants *wants = context;
    json_t *away = wants->cluster ? cluster_away(wants->cluster) : NULL;
    const bool is_answered = judge_is_answered(wants->judge, request->id, away);

    json_decref(away);
    return is_answered;
}

static void wants_settle(void *context, json_t *settled)
{
    struct wants *wants = context;
    struct request head = {.count = 0};
    json_t *message;

    wants_set_id(wants, &head);
    message = json_pack("{ss, ss, ss, sI, s[], so}", "type", "keep", "id", head.id, "host",
                        wants->agent->host, "at", (json_int_t)wall_clock_ns(), "traces", "settled",
                        settled);
    cluster_send(wants->cluster, message);
    json_decref(message);
}

static void wants_fetch(void *context, struct request *request, const char *doubt)
{
    struct wants *wants = context;

    if (doubt)
        judge_doubt(wants->judge, request->id, doubt);
    request->due_ms = clock_ms();
    wants->agent->totals.traces_dropped += scan_queue_add(&wants->agent->scan_queue, request);
    agent_step(wants->agent);
}

static void wants_answer_join(void *context, const struct request *request, int64_t held_from_ns,
                              const char *problem)
{
    struct wants *wants = context;
    const struct found_reach reach = {held_from_ns, INT64_MIN};
    json_t *answer = found_new(wants->agent, request, 1, &reach, NULL, problem);

    cluster_send(wants->cluster, answer);
    json_decref(answer);
}

static void wants_mark(void *context, struct trace_id id, int64_t time_ns, const char *why)
{
    struct wants *wants = context;
    const struct verdict verdict = {
        .id = id,
        .why = why,
        .time_ns = time_ns,
        .lacks = "a part of this request is a trace of its own: its place was not found in time",
        .hosts = wants->agent->host,
        .held = ""};

    wants->agent->totals.traces_apart++;
    judge_report(wants->agent->export, &verdict);
}

struct joins *wants_open_joins(struct wants *wants)
{
    const struct joins_calls calls = {wants_look,   wants_want,  wants_is_answered,
                                      wants_settle, wants_fetch, wants_answer_join,
                                      wants_mark,   wants};

    return joins_new(wants->agent, &calls);
}
