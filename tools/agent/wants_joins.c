/*
 * The callbacks of joins.h: sends the looks, wants, answers and fetches of joins.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wants.h"

#include "found.h"
#include "babeltrace-plugin/base/monotonic.h"

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

void wants_looked(struct wants *wants, const struct halves *found, int64_t held_from_ns,
                  const char *problem)
{
    joins_looked(wants->joins, found, held_from_ns, problem);
    agent_step(wants->agent);
}

bool wants_place(const struct wants *wants, struct trace_id id, struct join_place *place)
{
    return joins_find(wants->joins, id, place);
}

struct joins *wants_open_joins(struct wants *wants)
{
    const struct joins_calls calls = {wants_look,   wants_want,  wants_is_answered,
                                      wants_settle, wants_fetch, wants_answer_join,
                                      wants_mark,   wants};

    return joins_new(wants->agent, &calls);
}
