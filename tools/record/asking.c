/*
 * The agent's requests: to all hosts and from them, the answers, and what becomes of them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "agent.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANSWER_TRACES_MAX 4096
#define ANSWER_IDS_MAX    24576 /* of all traces: a message of the exchange may have 1 MiB */
#define LAST_MAX          256   /* requests for all of a time that may wait */

/* ---- asking ---------------------------------------------------------------------------------- */

json_t *asking_hosts(const struct agent *agent)
{
    json_t *exchange = agent->exchange ? exchange_json(agent->exchange) : NULL;
    json_t *hosts = json_incref(json_object_get(exchange, "hosts"));
    const json_t *host;
    size_t i;

    json_decref(exchange);
    if (!json_is_array(hosts)) {
        json_decref(hosts);
        hosts = json_array();
    }
    json_array_foreach(hosts, i, host)
    {
        const char *name = json_string_value(host);

        if (name && strcmp(name, agent->host) == 0)
            return hosts;
    }
    (void)json_array_append_new(hosts, json_string(agent->host));
    return hosts;
}

static void note_open(struct agent *agent, const struct request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        struct fetched_trace *trace = fetched_get(agent->fetched, request->traces[i].id);

        if (!trace)
            continue;
        trace->is_open = trace->is_asked = true;
        (void)snprintf(trace->why, sizeof(trace->why), "%s", request->traces[i].why);
    }
    /* who kills us now kills no request: two polls later the alarm is overwritten */
    agent_save_fetched(agent);
}

static void set_id(struct agent *agent, struct request *request)
{
    (void)snprintf(request->id, sizeof(request->id), "%.100s:%d:%lu", agent->host, (int)getpid(),
                   ++agent->requests);
}

/* All but what is to be done here. */
static void ask_others(struct agent *agent, struct request *request, const char *name,
                       int64_t linger_ms)
{
    json_t *hosts = asking_hosts(agent), *message;

    set_id(agent, request);
    request->at_ns = wall_clock_ns();
    request->came_mono_ns = clock_ns();
    request->due_ms = clock_ms() + linger_ms;
    message = request_json(request);
    if (!ledger_ask(agent->ledger, request, hosts, name,
                    config_integer(agent->config, "answer-timeout-ms")))
        say(BK4040, "too many requests are open: nobody judges %s", request->id);
    else if (!name)
        note_open(agent, request);
    if (agent->exchange && message)
        exchange_post(agent->exchange, message);
    json_decref(message);
    json_decref(hosts);
}

void asking_ask(struct agent *agent, struct request *request, const char *name, int64_t linger_ms)
{
    ask_others(agent, request, name, linger_ms);
    (void)pending_add(&agent->pending, request);
    agent_step(agent);
}

struct again {
    struct agent *agent;
    struct request *request;
    bool is_fetched; /* such as were fetched already, or such as were not */
};

static void add_open(void *context, struct fetched_trace *trace)
{
    const struct again *again = context;

    if (!trace->is_open || trace->is_asked || (trace->until_mono_ns != 0) != again->is_fetched ||
        again->request->count >= again->agent->pending.max)
        return;
    trace->is_asked = true;
    (void)request_add(again->request, trace->id, 0, trace->why);
}

/* NULL: there is none. */
static struct request *list_open(struct agent *agent, bool is_fetched)
{
    struct again again = {agent, request_new("", agent->host), is_fetched};

    if (again.request)
        fetched_each(agent->fetched, add_open, &again);
    if (again.request && again.request->count) {
        agent->totals.traces_asked += again.request->count;
        agent->totals.traces_asked_again += again.request->count;
        say(BK4041, "%zu traces were asked for when the agent ended: they are again",
            again.request->count);
        return again.request;
    }
    requests_free(again.request);
    return NULL;
}

/* Nobody else knows what was answered before. As many at once as a snapshot may have. */
void asking_again(struct agent *agent)
{
    struct request *request;

    if (!agent->asks_again || agent->pending.traces || !kept_is_told(&agent->kept))
        return;
    request = list_open(agent, true);
    if (request) { /* what this host has of them is known */
        ask_others(agent, request, NULL, 0);
        asking_answer(agent, request, 0, NULL, NULL);
        requests_free(request);
        return;
    }
    request = list_open(agent, false);
    if (request)
        asking_ask(agent, request, NULL, 0);
    agent->asks_again = request != NULL;
}

/* ---- what others have asked for, and was not fetched yet: it outlives us */

static void add_others(const struct agent *agent, json_t *list, const struct request *requests)
{
    for (const struct request *r = requests; r; r = r->next) {
        if (strcmp(r->host, agent->host) != 0 && r->last_ms == 0)
            (void)json_array_append_new(list, request_json(r));
    }
}

void asking_save(struct agent *agent)
{
    json_t *list = json_array();
    size_t length = 0;

    add_others(agent, list, agent->fetching);
    add_others(agent, list, agent->pending.list);
    if (json_array_size(list) || agent->has_saved_others) {
        char *text = json_text(list, &length);

        saver_write(agent->others_file, text, length);
    }
    agent->has_saved_others = json_array_size(list) > 0;
    json_decref(list);
}

/* What an earlier run has fetched, whether it could note it or not. */
static void note_kept(struct agent *agent)
{
    for (const struct kept_folder *f = agent->kept.list; f; f = f->next) {
        for (const struct request *r = f->requests; r; r = r->next) {
            for (size_t i = 0; i < r->count; i++)
                fetched_note(agent->fetched, r->traces[i].id, f->until_ns, f->until_mono_ns);
        }
    }
}

void asking_load(struct agent *agent)
{
    json_t *list = json_load_file(agent->others_file, 0, NULL);
    const json_t *message;
    size_t i, left;

    json_array_foreach(list, i, message)
    {
        struct request *request = request_read(message, agent->pending.max, &left);

        if (!request)
            continue;
        request->came_mono_ns = clock_ns();
        agent->totals.traces_dropped += left + pending_add(&agent->pending, request);
    }
    agent->has_saved_others = json_array_size(list) > 0;
    json_decref(list);
    note_kept(agent);
}

/* ---- answers --------------------------------------------------------------------------------- */

/* A list of an answer, and its room: that of a message is shared by all that a snapshot answers. */
struct listing {
    json_t *list;
    size_t traces, ids; /* that may be added */
};

/* Those whose ids have no place are told without; where traces have none, who calls counts them. */
static void add_trace(struct listing *listing, json_t *trace)
{
    const size_t more = json_array_size(json_object_get(trace, "have")) +
                        json_array_size(json_object_get(trace, "want"));

    if (!trace || listing->traces == 0) {
        json_decref(trace);
        return;
    }
    listing->traces--;
    if (more > listing->ids) {
        (void)json_array_clear(json_object_get(trace, "have"));
        (void)json_array_clear(json_object_get(trace, "want"));
        (void)json_object_set_new(trace, "cut", json_true());
    } else {
        listing->ids -= more;
    }
    (void)json_array_append_new(listing->list, trace);
}

static json_t *list_fetched(const struct agent *agent, const struct request *request,
                            const json_t *found, size_t requests)
{
    struct listing listing = {json_array(), ANSWER_TRACES_MAX, ANSWER_IDS_MAX};
    const json_t *trace;
    size_t i;

    if (request->last_ms > 0) {
        listing.traces /= requests;
        listing.ids /= requests;
        json_array_foreach(json_object_get(found, "traces"), i, trace)
            add_trace(&listing, json_deep_copy(trace));
    }
    for (size_t k = 0; k < request->count; k++) {
        const struct fetched_trace *known = fetched_find(agent->fetched, request->traces[k].id);

        if (known)
            add_trace(&listing, fetched_json(known));
    }
    return listing.list;
}

/* Traces that were sent, and that an answer has no place for. */
static size_t unlisted(const struct request *request, const json_t *found, const json_t *list)
{
    const size_t sent = json_array_size(json_object_get(found, "traces"));
    const size_t listed = json_array_size(list);
    const json_int_t more = json_integer_value(json_object_get(found, "more"));

    if (request->last_ms == 0)
        return 0;
    return (sent > listed ? sent - listed : 0) + (more > 0 ? (size_t)more : 0);
}

void asking_answer(struct agent *agent, const struct request *requests, int64_t held_from_ns,
                   const json_t *found, const char *problem)
{
    size_t count = 0;

    for (const struct request *r = requests; r; r = r->next)
        count++;
    for (const struct request *r = requests; r; r = r->next) {
        json_t *list = list_fetched(agent, r, found, count), *answer;
        const size_t more = unlisted(r, found, list);
        char left_out[80];

        (void)snprintf(left_out, sizeof(left_out),
                       "%zu traces of the request were too many (snapshot-traces)", r->left_out);
        answer =
            json_pack("{ss, ss, ss, ss, sI, ss*, so*, so}", "type", "found", "id", r->id, "to",
                      r->host, "host", agent->host, "held_from", (json_int_t)held_from_ns, "error",
                      problem       ? problem
                      : r->left_out ? left_out
                                    : NULL,
                      "more", more ? json_integer((json_int_t)more) : NULL, "traces", list);
        if (answer && strcmp(r->host, agent->host) == 0)
            ledger_answer(agent->ledger, answer, clock_ms());
        else if (answer && agent->exchange)
            exchange_post(agent->exchange, answer);
        json_decref(answer);
    }
    agent_step(agent);
}

void asking_found(void *context, const struct kept_folder *folder, const json_t *found)
{
    struct agent *agent = context;
    const bool is_last = folder->requests && folder->requests->last_ms > 0;
    const json_t *trace;
    size_t i;

    json_array_foreach(is_last ? NULL : json_object_get(found, "traces"), i, trace)
        fetched_add(agent->fetched, trace);
    if (!is_last)
        agent_save_fetched(agent);
    asking_answer(agent, folder->requests, folder->held_from_ns, found,
                  found ? NULL : "what was kept there could not be read, or had no room");
}

/* ---- from other hosts ------------------------------------------------------------------------ */

/* Why all of a time is not fetched for that host; NULL: it is. */
static const char *refuses(const struct agent *agent, const char *host)
{
    const char *from = config_text(agent->config, "keep-from");

    if (strcmp(from, "none") == 0 || (strcmp(from, "local") == 0 && strcmp(host, agent->host) != 0))
        return "refuses to send all of a time: its keep-from says so";
    if (pending_last_count(&agent->pending) >= LAST_MAX)
        return "is asked by too many at once for all of a time";
    return NULL;
}

/* How long it was on its way, as far as the poster and the hub have seen: no clock of another host
 * is compared with ours. */
static int64_t held_ns(const json_t *message)
{
    const json_int_t held_ms = json_integer_value(json_object_get(message, "held_ms"));

    return held_ms > 0 && held_ms < 86400000 ? held_ms * 1000000 : 0;
}

static void take_request(struct agent *agent, const json_t *message)
{
    size_t left;
    struct request *request = request_read(message, agent->pending.max, &left);
    const char *problem = NULL;

    if (!request)
        return;
    request->left_out = left; /* here: not what its own host has left out */
    request->came_mono_ns = clock_ns() - held_ns(message);
    if (request->last_ms > 0)
        problem = refuses(agent, request->host);
    if (problem) {
        asking_answer(agent, request, 0, NULL, problem);
        requests_free(request);
        return;
    }
    request->due_ms =
        clock_ms() + (request->last_ms > 0 ? 0 : config_integer(agent->config, "linger-ms"));
    ledger_yield(agent->ledger, request);
    agent->totals.traces_asked_by_others += request->count + left;
    agent->totals.traces_dropped += left + pending_add(&agent->pending, request);
    asking_save(agent);
    agent_step(agent);
}

static void take_message(void *context, const json_t *message)
{
    struct agent *agent = context;
    const char *type = json_string_value(json_object_get(message, "type"));
    const char *to = json_string_value(json_object_get(message, "to"));

    if (type && strcmp(type, "keep") == 0) {
        take_request(agent, message);
    } else if (type && strcmp(type, "found") == 0 && to && strcmp(to, agent->host) == 0) {
        ledger_answer(agent->ledger, message, clock_ms());
        agent_step(agent);
    } else if (type && strcmp(type, "dropped") == 0) {
        ledger_drop(agent->ledger, message);
    }
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void close_trace(struct agent *agent, struct trace_id id)
{
    struct fetched_trace *trace = fetched_find(agent->fetched, id);

    if (trace)
        trace->is_open = false;
}

static void say_verdict(const struct verdict *verdict)
{
    char text[TRACE_ID_TEXT];

    trace_id_text(verdict->id, text);
    if (verdict->is_complete)
        say(BK4042, "trace %s is found whole, and goes out: %" PRIu64 " spans of %s (%s)", text,
            verdict->spans, verdict->hosts, verdict->why);
    else
        say(BK4043, "trace %s is incomplete: %s (%s; %" PRIu64 " spans of %s)", text,
            verdict->lacks, verdict->why, verdict->spans, verdict->hosts);
}

/* An incomplete one is counted when the span that tells of it is delivered: until then it is asked
 * for again after a restart. */
static void judged(void *context, const struct verdict *verdict)
{
    struct agent *agent = context;

    say_verdict(verdict);
    if (verdict->is_complete) {
        agent->totals.traces_complete++;
    } else if (verdict->is_by_hand && verdict->spans == 0) {
        agent->totals.traces_not_found++;
    } else if (incomplete_add(&agent->incomplete, verdict)) {
        return;
    } else {
        agent->totals.traces_incomplete++;
        agent->totals.incomplete_untold++;
    }
    close_trace(agent, verdict->id);
}

static void incomplete_told(void *context, struct trace_id id)
{
    struct agent *agent = context;

    agent->totals.traces_incomplete++;
    close_trace(agent, id);
    agent_step(agent);
}

static void left(void *context, struct trace_id id, bool to_other)
{
    struct agent *agent = context;

    if (to_other) {
        agent->totals.traces_of_others++;
        close_trace(agent, id);
    } else {
        agent->totals.traces_asked_again++;
    }
}

/* The ids of the traces of a service: now these are asked for. */
static void listed(void *context, const char *name, const struct request *traces)
{
    struct agent *agent = context;
    struct request *request = request_new("", agent->host);

    for (size_t i = 0; request && i < traces->count; i++) {
        if (request->count < agent->pending.max)
            (void)request_add(request, traces->traces[i].id, 0, "blkin keep --last --service");
        else
            request->left_out++;
    }
    if (!request)
        return;
    agent->totals.traces_asked_by_hand += request->count;
    agent->totals.traces_dropped += request->left_out;
    asking_ask(agent, request, name, 0);
}

int64_t asking_judge(struct agent *agent)
{
    const size_t open = ledger_open(agent->ledger);
    const int64_t next_ms = ledger_judge(agent->ledger, clock_ms());

    if (open != ledger_open(agent->ledger)) {
        agent_save(agent);
        agent_save_fetched(agent);
    }
    return next_ms;
}

bool asking_open(struct agent *agent, struct error *error)
{
    const struct ledger_callbacks callbacks = {judged, left, listed, agent};
    const struct exchange_callbacks on = {take_message, agent};
    const char *hub = config_text(agent->config, "hub");

    agent->ledger = ledger_new(&callbacks);
    agent->incomplete.loop = agent->loop;
    agent->incomplete.config = agent->config;
    agent->incomplete.told = incomplete_told;
    agent->incomplete.context = agent;
    incomplete_open(&agent->incomplete);
    if (!agent->ledger) {
        error_set(error, "out of memory");
        return false;
    }
    if (hub && hub[0])
        agent->exchange = exchange_open(agent->loop, agent->config, agent->host, &on, error);
    return !hub || !hub[0] || agent->exchange;
}

/* ---- for persons ----------------------------------------------------------------------------- */

static json_t *problem(const char *text)
{
    return json_pack("{ss}", "error", text);
}

static json_t *ask_by_hand(struct agent *agent, struct request *request)
{
    char name[sizeof(request->id)];

    (void)snprintf(name, sizeof(name), "%.100s:%d:%lu", agent->host, (int)getpid(),
                   agent->requests + 1);
    agent->totals.traces_asked_by_hand += request->count;
    asking_ask(agent, request, name, 0);
    return json_pack("{ss}", "id", name);
}

/* "ID ID ...": the text is cut up. */
static json_t *keep(struct agent *agent, char *text)
{
    struct request *request = request_new("", agent->host);
    char *rest = NULL;

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
        if (request->count < agent->pending.max - agent->pending.traces)
            (void)request_add(request, id, 0, "blkin keep");
        else
            request->left_out++;
    }
    if (request && request->left_out == 0 && request->count)
        return ask_by_hand(agent, request);
    agent->totals.traces_dropped += request ? request->left_out : 0;
    requests_free(request);
    return problem("expected one trace id at least, and not more than snapshot-traces allows "
                   "together with those that are waiting");
}

/* "MS [SERVICE]", or "MS WHY" */
static json_t *keep_last(struct agent *agent, const char *text, bool has_why)
{
    char *end;
    const long long ms = strtoll(text, &end, 10);
    struct request *request;

    if (end == text || (*end && *end != ' ') || ms < 1 || ms > 86400000)
        return problem("expected 1 to 86400000 ms, and maybe a service, or why");
    request = request_new("", agent->host);
    if (!request)
        return NULL;
    request->last_ms = ms;
    if (refuses(agent, agent->host)) {
        requests_free(request);
        return json_pack("{ss+}", "error", "this recorder ", refuses(agent, agent->host));
    }
    end += strspn(end, " ");
    if (has_why)
        request_set_why(request, end);
    else
        (void)snprintf(request->service, sizeof(request->service), "%s", end);
    return ask_by_hand(agent, request);
}

json_t *asking_control(struct agent *agent, const char *request)
{
    char text[8192];
    json_t *answer;

    (void)snprintf(text, sizeof(text), "%s", request);
    if (strncmp(text, "keep ", 5) == 0)
        return keep(agent, text + 5);
    if (strncmp(text, "keep-last ", 10) == 0)
        return keep_last(agent, text + 10, false);
    if (strncmp(text, "keep-why ", 9) == 0)
        return keep_last(agent, text + 9, true);
    if (strncmp(text, "kept ", 5) != 0)
        return NULL;
    answer = ledger_json(agent->ledger, text + 5);
    return answer ? answer
                  : problem("no such request is known (any more): the agent was started "
                            "anew, or it is long ago");
}
