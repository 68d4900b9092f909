/* SPDX-License-Identifier: BSD-2-Clause */
#include "by_hand.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static json_t *by_hand_problem(const char *text)
{
    return json_pack("{ss}", "error", text);
}

/* text: "ID ID ..."; the function changes the text. */
static json_t *by_hand_keep(struct agent *agent, char *text)
{
    struct request *request;
    char *rest = NULL;

    request = request_new("", agent->host);
    for (char *word = strtok_r(text, " ", &rest); word && request;
         word = strtok_r(NULL, " ", &rest)) {
        struct trace_id id;

        if (!trace_id_read(word, &id)) {
            requests_free(request);
            return json_pack("{s: s++}", "error",
                             "expected a trace id, 1 to 32 hexadecimal digits, "
                             "got \"",
                             word, "\"");
        }
        if (request->count < scan_queue_room(&agent->scan_queue, NULL))
            (void)request_add(request, id, 0, "blkin keep");
        else
            request->left_out++;
    }
    if (request && request->left_out == 0 && request->count)
        return wants_send_by_hand(agent->wants, request);
    agent->totals.traces_dropped += request ? request->left_out : 0;
    requests_free(request);
    return by_hand_problem("expected one or more trace ids: together with the waiting traces, at "
                           "most as many as fetch-traces allows");
}

json_t *by_hand_keep_last(struct agent *agent, int64_t last_ms, const char *service,
                          const char *why)
{
    const char *refusal;
    struct request *request;

    refusal = wants_refuses(agent->wants, agent->host);
    if (refusal)
        return json_pack("{ss+}", "error", "this agent ", refusal);
    request = request_new("", agent->host);
    if (!request)
        return NULL;
    request->last_ms = last_ms;
    request_set_why(request, why);
    (void)snprintf(request->service, sizeof(request->service), "%s", service);
    return wants_send_by_hand(agent->wants, request);
}

/* text: "MS [SERVICE]" */
static json_t *by_hand_parse_last(struct agent *agent, const char *text)
{
    char *end;
    const long long ms = strtoll(text, &end, 10);

    if (end == text || (*end && *end != ' ') || ms < 1 || ms > 86400000)
        return by_hand_problem("expected a number of 1 to 86400000 ms, and optionally a service");
    return by_hand_keep_last(agent, ms, end + strspn(end, " "), "");
}

json_t *by_hand_answer(struct agent *agent, const char *request)
{
    char text[8192];
    json_t *answer;

    (void)snprintf(text, sizeof(text), "%s", request);
    if (strncmp(text, "keep ", 5) == 0)
        return by_hand_keep(agent, text + 5);
    if (strncmp(text, "keep-last ", 10) == 0)
        return by_hand_parse_last(agent, text + 10);
    if (strncmp(text, "kept ", 5) != 0)
        return NULL;
    answer = judge_json(agent->wants->judge, text + 5);
    return answer ? answer
                  : by_hand_problem("the agent does not know this request: the agent was "
                                    "restarted, or the request is too old");
}
