/*
 * The callbacks of joins.h: sends the looks, wants, answers and fetches of joins.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "asking_parts.h"

#include "answer.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "incomplete.h"

static void asking_look(void *context, struct request *request)
{
    const struct asking *asking = context;

    (void)pending_add(&asking->agent->pending, request);
    agent_step(asking->agent);
}

static void asking_want(void *context, struct request *request, json_t *halves)
{
    asking_ask_others(context, request, NULL, 0, halves);
}

static bool asking_is_answered(void *context, const struct request *request)
{
    const struct asking *asking = context;
    json_t *away = asking->cluster ? cluster_away(asking->cluster) : NULL;
    const bool is_answered = ledger_is_answered(asking->ledger, request->id, away);

    json_decref(away);
    return is_answered;
}

static void asking_settle(void *context, json_t *settled)
{
    struct asking *asking = context;
    struct request head = {.count = 0};
    json_t *message;

    asking_set_id(asking, &head);
    message = json_pack("{ss, ss, ss, sI, s[], so}", "type", "keep", "id", head.id, "host",
                        asking->agent->host, "at", (json_int_t)wall_clock_ns(), "traces", "settled",
                        settled);
    if (message && asking->cluster)
        cluster_send(asking->cluster, message);
    json_decref(message);
}

static void asking_fetch(void *context, struct request *request, const char *doubt)
{
    struct asking *asking = context;

    if (doubt)
        ledger_doubt(asking->ledger, request->id, doubt);
    request->due_ms = clock_ms();
    asking->agent->totals.traces_dropped += pending_add(&asking->agent->pending, request);
    agent_step(asking->agent);
}

static void asking_answer_join(void *context, const struct request *request, int64_t held_from_ns,
                               const char *problem)
{
    struct asking *asking = context;
    const struct answer_reach reach = {held_from_ns, INT64_MIN};
    json_t *answer = answer_new(asking->agent, request, 1, &reach, NULL, problem);

    if (answer && asking->cluster)
        cluster_send(asking->cluster, answer);
    json_decref(answer);
}

static void asking_mark(void *context, struct trace_id id, int64_t time_ns, const char *why)
{
    struct asking *asking = context;
    const struct verdict verdict = {
        .id = id,
        .why = why,
        .time_ns = time_ns,
        .lacks = "a part of this request is a trace of its own: its place was not found in time",
        .hosts = asking->agent->host,
        .held = ""};

    asking->agent->totals.traces_apart++;
    incomplete_report(asking->agent->export, &verdict);
}

void asking_looked(struct asking *asking, const struct halves *found, int64_t held_from_ns,
                   const char *problem)
{
    joins_looked(asking->joins, found, held_from_ns, problem);
    agent_step(asking->agent);
}

bool asking_place(const struct asking *asking, struct trace_id id, struct join_place *place)
{
    return joins_find(asking->joins, id, place);
}

void asking_end_joins(struct asking *asking)
{
    joins_end(asking->joins);
}

struct joins *asking_open_joins(struct asking *asking)
{
    const struct joins_calls calls = {asking_look,   asking_want,  asking_is_answered,
                                      asking_settle, asking_fetch, asking_answer_join,
                                      asking_mark,   asking};

    return joins_new(asking->agent, &calls);
}
