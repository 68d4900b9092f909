/*
 * Sends the requests of this host, answers the requests of all hosts, and counts the verdicts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "asking_parts.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "incomplete.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES_MAX 2   /* requests with a trace's begin; the next one searches all records */
#define LAST_MAX  256 /* waiting requests for windows */

/* ---- requests -------------------------------------------------------------------------------- */

json_t *asking_hosts(const struct asking *asking)
{
    return asking->cluster ? cluster_hosts(asking->cluster) : json_pack("[s]", asking->agent->host);
}

static void asking_note_open(struct asking *asking, const struct request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        struct fetched_trace *trace = fetched_get(asking->agent->fetched, request->traces[i].id);

        if (trace)
            fetched_open(trace, request->traces[i].begin_ns, request->traces[i].why);
    }
    /* if this process is killed, only the file has the request: the alarm is overwritten soon */
    agent_save_fetched(asking->agent);
}

void asking_set_id(struct asking *asking, struct request *request)
{
    (void)snprintf(request->id, sizeof(request->id), "%.100s:%d:%lu", asking->agent->host,
                   (int)getpid(), ++asking->requests);
}

void asking_ask_others(struct asking *asking, struct request *request, const char *name,
                       int64_t linger_ms, json_t *halves)
{
    json_t *hosts = asking_hosts(asking), *message;

    if (!request->id[0])
        asking_set_id(asking, request);
    request->came_mono_ns = clock_ns(); /* read before the wall clock: see request_begin() */
    request->at_ns = wall_clock_ns();
    request->due_ms = clock_ms() + linger_ms;
    message = request_json(request);
    if (!ledger_ask(asking->ledger, request, hosts, name,
                    config_integer(asking->agent->config, "answer-timeout-ms"))) {
        say(BK4040,
            "too many requests are open: the traces of request %s are sent, but not checked for "
            "completeness",
            request->id);
        asking->agent->totals.traces_incomplete += request->count;
        asking->agent->totals.incomplete_untold += request->count;
    } else if (!name) {
        asking_note_open(asking, request);
    }
    if (halves)
        (void)json_object_set(json_array_get(json_object_get(message, "traces"), 0), "halves",
                              halves);
    if (asking->cluster && message)
        cluster_send(asking->cluster, message);
    json_decref(halves);
    json_decref(message);
    json_decref(hosts);
}

void asking_ask(struct asking *asking, struct request *request, const char *name, int64_t linger_ms)
{
    if (!name && request->last_ms == 0) {
        asking_note_open(asking, request);
        joins_take(asking->joins, request, clock_ms() + linger_ms);
        if (request->count == 0) {
            requests_free(request);
            agent_step(asking->agent);
            return;
        }
    }
    asking_ask_others(asking, request, name, linger_ms, NULL);
    asking->agent->totals.traces_dropped += pending_add(&asking->agent->pending, request);
    agent_step(asking->agent);
}

void asking_ask_for_alarms(struct asking *asking, struct request *request)
{
    const int64_t linger_ms = config_integer(asking->agent->config, "linger-ms");

    if (!agent_sends_all(asking->agent)) {
        asking_ask(asking, request, NULL, linger_ms);
        return;
    }
    asking_ask_others(asking, request, NULL, linger_ms, NULL);
    asking_answer(asking, request, NULL, NULL, NULL);
    requests_free(request);
}

json_t *asking_ask_by_hand(struct asking *asking, struct request *request)
{
    char name[sizeof(request->id)];

    asking_set_id(asking, request);
    memcpy(name, request->id, sizeof(name));
    asking->agent->totals.traces_asked_by_hand += request->count;
    asking_ask(asking, request, name, 0);
    return json_pack("{ss}", "id", name);
}

json_t *asking_known(const struct asking *asking, const char *name)
{
    return ledger_json(asking->ledger, name);
}

/* The collection of traces that an earlier process had requested. */
struct again {
    struct asking *asking;
    struct request *request;
    size_t judged;   /* traces of `request` that an earlier process has judged and counted */
    bool is_fetched; /* true: only traces with fetched spans; false: only traces without */
    size_t room;     /* the largest number of traces */
};

static void asking_add_open(void *context, struct fetched_trace *trace)
{
    struct again *again = context;

    if (!trace->is_open || trace->is_asked || (trace->until_mono_ns != 0) != again->is_fetched ||
        again->request->count >= again->room)
        return;
    trace->is_asked = true;
    again->judged += trace->was_judged;
    (void)request_add(again->request, trace->id, trace->asked_ns, trace->why);
}

/* Returns a request for the open traces; NULL: no trace is open. */
static struct request *asking_list_open(struct asking *asking, bool is_fetched, size_t room)
{
    struct again again = {asking, request_new("", asking->agent->host), 0, is_fetched, room};

    if (again.request)
        fetched_each(asking->agent->fetched, asking_add_open, &again);
    if (again.request && again.request->count) {
        asking->agent->totals.traces_asked += again.request->count;
        asking->agent->totals.traces_asked_again += again.request->count - again.judged;
        say(BK4041, "%zu traces were asked for when the service ended: it asks for them again",
            again.request->count);
        return again.request;
    }
    requests_free(again.request);
    return NULL;
}

/* Adds a trace that was fetched for another host or by hand, if its spans were not settled. */
static void asking_add_unsent(void *context, struct fetched_trace *trace)
{
    const struct again *again = context;

    if (!trace->is_unsent || again->request->count >= again->room)
        return;
    trace->is_unsent = false;
    (void)request_add(again->request, trace->id, trace->asked_ns, trace->why);
}

/* Fetches again from the rings of this host. No other host is asked. */
static void asking_fetch_unsent(struct asking *asking)
{
    struct agent *agent = asking->agent;
    struct again again = {asking, request_new("", agent->host), 0, false,
                          pending_room(&agent->pending)};

    if (again.request)
        fetched_each(agent->fetched, asking_add_unsent, &again);
    if (again.request && again.request->count) {
        say(BK4044,
            "the spans of %zu traces were not settled when the service ended: they are sent again, "
            "and some may come twice",
            again.request->count);
        (void)pending_add(&agent->pending, again.request);
    } else {
        requests_free(again.request);
    }
}

/* Traces without fetched spans come first, as rings hold the spans only for seconds. For fetched
 * traces, the other hosts are asked again, because their answers were lost with the process. */
void asking_again(struct asking *asking)
{
    const struct pending *pending = &asking->agent->pending;
    struct request *request;

    if (!asking->asks_again || pending_room(pending) == 0)
        return;
    request = asking_list_open(asking, false, pending_room(pending));
    if (request) {
        asking_ask(asking, request, NULL, 0);
        return;
    }
    asking_fetch_unsent(asking);
    request = asking_list_open(asking, true, pending->max);
    if (request) { /* this host's answer comes from the list of fetched traces */
        asking_ask_others(asking, request, NULL, 0, NULL);
        asking_answer(asking, request, NULL, NULL, NULL);
        requests_free(request);
    }
    asking->asks_again = request != NULL;
}

/* ---- the file of waiting requests from other hosts ------------------------------------------- */

static void asking_add_others(const struct asking *asking, json_t *list,
                              const struct request *requests)
{
    for (const struct request *r = requests; r; r = r->next) {
        if (strcmp(r->host, asking->agent->host) != 0 && r->last_ms == 0)
            (void)json_array_append_new(list, request_json(r));
    }
}

void asking_save(struct asking *asking)
{
    json_t *list = json_array();
    size_t length = 0;

    asking_add_others(asking, list, asking->agent->pending.taken);
    asking_add_others(asking, list, asking->agent->pending.list);
    if (json_array_size(list) || asking->has_saved_others) {
        char *text = json_text(list, &length);

        saver_write(asking->others_file, text, length);
    }
    asking->has_saved_others = json_array_size(list) > 0;
    json_decref(list);
}

void asking_load(struct asking *asking)
{
    json_t *list = json_read(asking->others_file);
    const json_t *message;
    size_t i, left;

    json_array_foreach(list, i, message)
    {
        struct request *request = request_read(message, asking->agent->pending.max, &left);

        if (!request)
            continue;
        request->came_mono_ns = clock_ns();
        for (size_t k = 0; k < request->count; k++) /* unusable, as the request's age is unknown */
            request->traces[k].begin_ns = 0;
        asking->agent->totals.traces_dropped +=
            left + pending_add(&asking->agent->pending, request);
    }
    asking->has_saved_others = json_array_size(list) > 0;
    json_decref(list);
    asking->asks_again = true;
}

/* ---- answers --------------------------------------------------------------------------------- */

void asking_answer(struct asking *asking, const struct request *requests,
                   const struct answer_reach *reach, const json_t *found, const char *problem)
{
    size_t count = 0;

    for (const struct request *r = requests; r; r = r->next)
        count++;
    for (const struct request *r = requests; r; r = r->next) {
        json_t *answer = answer_new(asking->agent, r, count, reach, found, problem);

        if (answer && strcmp(r->host, asking->agent->host) == 0)
            ledger_answer(asking->ledger, answer, clock_ms());
        else if (answer && asking->cluster)
            cluster_send(asking->cluster, answer);
        json_decref(answer);
    }
    agent_step(asking->agent);
}

void asking_found(struct asking *asking, const struct request *requests,
                  const struct answer_reach *reach, const json_t *found)
{
    const bool is_last = requests && requests->last_ms > 0;
    const json_t *trace;
    size_t i;

    json_array_foreach(is_last ? NULL : json_object_get(found, "traces"), i, trace)
        fetched_add(asking->agent->fetched, trace);
    asking_answer(asking, requests, reach, found, NULL);
}

/* ---- from other hosts ------------------------------------------------------------------------ */

const char *asking_refuses(const struct asking *asking, const char *host)
{
    const char *from = config_text(asking->agent->config, "keep-from");

    if (strcmp(from, "none") == 0 ||
        (strcmp(from, "local") == 0 && strcmp(host, asking->agent->host) != 0))
        return "refuses to send the last seconds: its key keep-from forbids it";
    if (pending_last_count(&asking->agent->pending) >= LAST_MAX)
        return "has too many requests for the last seconds: try again";
    return NULL;
}

/* Extends the window by a second at its begin and, if the broker held the want, at its end: the
 * broker counts in whole seconds how long it held the want. */
static void asking_widen(struct request *request, int64_t held_ms)
{
    const int64_t now_ns = clock_ns();
    const int64_t later_ns = request->came_mono_ns + INT64_C(1000000000);

    request->last_ms += 1000;
    if (held_ms <= 0)
        return;
    request->last_ms += 1000;
    request->came_mono_ns = later_ns < now_ns ? later_ns : now_ns;
}

static void asking_take_request(struct asking *asking, const json_t *message, bool over)
{
    size_t left;
    struct request *request = request_read(message, asking->agent->pending.max, &left);
    const char *problem = over ? "other hosts may not want more traces a second of it: its key "
                                 "cluster-wants-per-s"
                               : NULL;
    const bool is_join =
        json_object_get(json_array_get(json_object_get(message, "traces"), 0), "halves") != NULL;

    if (!request)
        return;
    if (is_join)
        joins_note(asking->joins, message, over);
    request->left_out = left; /* without the traces that the sender left out */
    /* from the message's age, as the clocks of two hosts cannot be compared */
    request->came_mono_ns = clock_ns() - number_in(message, "held_ms") * 1000000;
    if (!problem && request->last_ms > 0)
        problem = asking_refuses(asking, request->host);
    if (request->last_ms > 0)
        asking_widen(request, number_in(message, "held_ms"));
    if (problem) {
        asking_answer(asking, request, NULL, NULL, problem);
        requests_free(request);
        return;
    }
    request->due_ms =
        clock_ms() +
        (request->last_ms > 0 ? 0 : config_integer(asking->agent->config, "linger-ms"));
    asking->agent->totals.traces_asked_by_others += request->count + left;
    if (is_join) {
        joins_hear(asking->joins, request);
        agent_step(asking->agent);
        return;
    }
    ledger_yield(asking->ledger, request);
    asking->agent->totals.traces_dropped += left + pending_add(&asking->agent->pending, request);
    asking_save(asking);
    agent_step(asking->agent);
}

static void asking_take_message(void *context, const json_t *message, bool over)
{
    struct asking *asking = context;

    if (json_object_get(message, "settled")) {
        joins_hear_settled(asking->joins, message);
        agent_step(asking->agent);
    } else if (strcmp(text_in(message, "type"), "keep") == 0) {
        asking_take_request(asking, message, over);
    } else {
        ledger_answer(asking->ledger, message, clock_ms());
        agent_step(asking->agent);
    }
}

static void asking_take_config(void *context, const char *text)
{
    const struct asking *asking = context;

    frame_take_topic(asking->agent->frame, text);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void asking_close_trace(struct asking *asking, struct trace_id id)
{
    struct fetched_trace *trace = fetched_find(asking->agent->fetched, id);

    if (trace)
        fetched_close(trace);
}

static void asking_say_verdict(const struct verdict *verdict)
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

/* Counts the verdict and closes the trace. A restarted agent requests the trace again unless its
 * spans were settled: see fetched_text(). */
static void asking_judged(void *context, const struct verdict *verdict)
{
    struct asking *asking = context;
    struct verdict moved = *verdict;
    struct join_place place;

    asking_say_verdict(verdict);
    if (verdict->is_complete) {
        asking->agent->totals.traces_complete++;
    } else if (verdict->is_by_hand && verdict->spans == 0) {
        asking->agent->totals.traces_not_found++;
    } else {
        asking->agent->totals.traces_incomplete++;
        if (joins_find(asking->joins, verdict->id, &place))
            moved.id = (struct trace_id){place.trace_id_high, place.trace_id};
        incomplete_report(asking->agent->export, &moved);
        fetched_note_given(asking->agent->fetched, verdict->id,
                           export_given(asking->agent->export));
    }
    asking_close_trace(asking, verdict->id);
}

static void asking_left(void *context, struct trace_id id, bool to_other)
{
    struct asking *asking = context;

    if (to_other) {
        asking->agent->totals.traces_of_others++;
        asking_close_trace(asking, id);
    } else {
        asking->agent->totals.traces_asked_again++;
    }
}

/* Collects a trace that began before the oldest record that a host has searched. begin_ns: 0 if the
 * begin is not known. */
static void asking_earlier(void *context, const struct wanted *wanted, int64_t begin_ns)
{
    struct asking *asking = context;

    if (!asking->earlier)
        asking->earlier = request_new("", asking->agent->host);
    if (!asking->earlier || !request_add(asking->earlier, wanted->id,
                                         wanted->tries < TRIES_MAX ? begin_ns : 0, wanted->why))
        return;
    asking->earlier->traces[asking->earlier->count - 1].tries = wanted->tries + 1;
}

static void asking_ask_earlier(struct asking *asking)
{
    struct request *request = asking->earlier;

    asking->earlier = NULL;
    if (!request)
        return;
    asking->agent->totals.traces_asked += request->count;
    asking_ask(asking, request, NULL, 0);
}

/* Requests by their ids the traces that the hosts have listed for a service. */
static void asking_listed(void *context, const char *name, const struct request *traces)
{
    struct asking *asking = context;
    struct request *request = request_new("", asking->agent->host);

    for (size_t i = 0; request && i < traces->count; i++) {
        if (request->count < asking->agent->pending.max)
            (void)request_add(request, traces->traces[i].id, 0, "blkin keep --last --service");
        else
            request->left_out++;
    }
    if (!request)
        return;
    request->left_out += traces->left_out;
    asking->agent->totals.traces_asked_by_hand += request->count;
    asking->agent->totals.traces_dropped += request->left_out;
    asking_ask(asking, request, name, 0);
}

void asking_note_stall(struct asking *asking, int64_t stall_ms)
{
    ledger_note_stall(asking->ledger, stall_ms);
}

int64_t asking_judge(struct asking *asking)
{
    const size_t open = ledger_open(asking->ledger);
    const int64_t judge_ms = ledger_judge(asking->ledger, clock_ms());
    const int64_t join_ms = joins_step(asking->joins);

    asking_ask_earlier(asking);
    if (open != ledger_open(asking->ledger)) {
        agent_save(asking->agent);
        agent_save_fetched(asking->agent);
    }
    return join_ms < judge_ms ? join_ms : judge_ms;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static bool asking_set_up(struct asking *asking, struct error *error)
{
    const struct ledger_callbacks callbacks = {asking_judged, asking_left, asking_listed,
                                               asking_earlier, asking};
    const struct cluster_callbacks on = {asking_take_message, asking_take_config, asking};
    struct agent *agent = asking->agent;
    const char *url = config_text(agent->config, "cluster");
    char hosts_file[4096];

    agent_path(agent, "state-dir", "agent.asked", asking->others_file);
    asking->ledger = ledger_new(&callbacks);
    asking->joins = asking_open_joins(asking);
    error_set(error, "out of memory");
    if (!asking->ledger || !asking->joins)
        return false;
    if (!url || !url[0])
        return true;
    agent_path(agent, "state-dir", "agent.hosts", hosts_file);
    asking->cluster = cluster_open(agent->loop, agent->config, agent->host, hosts_file, &on, error);
    return asking->cluster != NULL;
}

struct asking *asking_open(struct agent *agent, struct error *error)
{
    struct asking *asking = calloc(1, sizeof(*asking));

    error_set(error, "out of memory");
    if (!asking)
        return NULL;
    asking->agent = agent;
    asking->requests = (unsigned long)(wall_clock_ns() / 1000000);
    if (asking_set_up(asking, error))
        return asking;
    asking_close(asking);
    return NULL;
}

void asking_close(struct asking *asking)
{
    if (!asking)
        return;
    cluster_close(asking->cluster);
    joins_free(asking->joins);
    if (asking->ledger)
        ledger_free(asking->ledger);
    requests_free(asking->earlier);
    free(asking);
}

bool asking_is_posting(const struct asking *asking)
{
    return asking->cluster && cluster_is_sending(asking->cluster);
}

size_t asking_open_count(const struct asking *asking)
{
    return ledger_open(asking->ledger) + joins_open(asking->joins);
}

json_t *asking_cluster_json(const struct asking *asking)
{
    return asking->cluster ? cluster_json(asking->cluster) : NULL;
}
