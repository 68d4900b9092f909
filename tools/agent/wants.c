/* SPDX-License-Identifier: BSD-2-Clause */
#include "wants.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "export.h"
#include "tools/base/saver.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRIES_MAX 2   /* further requests with a begin; the next one searches all records */
#define LAST_MAX  256 /* waiting requests for windows */

/* ---- requests -------------------------------------------------------------------------------- */

json_t *wants_hosts(const struct wants *wants)
{
    return wants->cluster ? cluster_hosts(wants->cluster) : json_pack("[s]", wants->agent->host);
}

static void wants_note_open(struct wants *wants, const struct request *request)
{
    for (size_t i = 0; i < request->count; i++) {
        struct collected_trace *trace =
            collected_get(wants->agent->collected, request->traces[i].id);

        if (trace)
            collected_open(trace, request->traces[i].begin_ns, request->traces[i].why);
    }
    /* if this process is killed, only the file has the request: the alarm is overwritten soon */
    agent_save_collected(wants->agent);
}

static void wants_close_trace(struct wants *wants, struct trace_id id)
{
    struct collected_trace *trace = collected_find(wants->agent->collected, id);

    if (trace)
        collected_close(trace);
}

void wants_set_id(struct wants *wants, struct request *request)
{
    (void)snprintf(request->id, sizeof(request->id), "%.100s:%d:%lu", wants->agent->host,
                   (int)getpid(), ++wants->requests);
}

/* Returns the message to other hosts; NULL: out of memory. */
static json_t *wants_begin(struct wants *wants, struct request *request, int64_t linger_ms)
{
    if (!request->id[0])
        wants_set_id(wants, request);
    request->came_mono_ns = clock_ns(); /* read before the wall clock: see request_begin() */
    request->at_ns = wall_clock_ns();
    request->due_ms = clock_ms() + linger_ms;
    return request_json(request);
}

void wants_ask_others(struct wants *wants, struct request *request, const char *name,
                      int64_t linger_ms, json_t *halves)
{
    json_t *hosts = wants_hosts(wants), *message = wants_begin(wants, request, linger_ms);

    if (!judge_ask(wants->judge, request, hosts, name,
                   config_integer(wants->agent->config, "answer-timeout-ms"))) {
        say(BK4040,
            "too many requests are open: the traces of request %s are sent, but not checked for "
            "completeness",
            request->id);
        wants->agent->totals.traces_incomplete += request->count;
        wants->agent->totals.incomplete_untold += request->count;
        for (size_t i = 0; i < request->count && !name; i++)
            wants_close_trace(wants, request->traces[i].id); /* no verdict follows */
    } else if (!name) {
        wants_note_open(wants, request);
    }
    if (halves)
        (void)json_object_set(json_array_get(json_object_get(message, "traces"), 0), "halves",
                              halves);
    cluster_send(wants->cluster, message);
    json_decref(halves);
    json_decref(message);
    json_decref(hosts);
}

/* Sends the request to all hosts, and fetches the spans of this host. Takes the request. name: of a
 * person's request; NULL: a request for alarms, whose marked traces go to joins.h first. linger_ms:
 * the delay of the fetch. */
static void wants_send(struct wants *wants, struct request *request, const char *name,
                       int64_t linger_ms)
{
    if (!name && request->last_ms == 0) {
        wants_note_open(wants, request);
        joins_take(wants->joins, request, clock_ms() + linger_ms);
        if (request->count == 0) {
            requests_free(request);
            agent_step(wants->agent);
            return;
        }
    }
    wants_ask_others(wants, request, name, linger_ms, NULL);
    wants->agent->totals.traces_dropped += scan_queue_add(&wants->agent->scan_queue, request);
    agent_step(wants->agent);
}

void wants_send_for_alarms(struct wants *wants, struct request *request)
{
    const int64_t linger_ms = config_integer(wants->agent->config, "linger-ms");
    json_t *message;

    if (!agent_sends_all(wants->agent)) {
        wants->agent->totals.traces_asked += request->count;
        wants_send(wants, request, NULL, linger_ms);
        return;
    }
    /* no verdict, because no part notes which spans of this host are sent */
    wants->agent->totals.alarms_double += request->count;
    message = wants->cluster ? wants_begin(wants, request, linger_ms) : NULL;
    cluster_send(wants->cluster, message);
    json_decref(message);
    requests_free(request);
}

json_t *wants_send_by_hand(struct wants *wants, struct request *request)
{
    char name[sizeof(request->id)];

    wants_set_id(wants, request);
    memcpy(name, request->id, sizeof(name));
    wants->agent->totals.traces_asked_by_hand += request->count;
    wants_send(wants, request, name, 0);
    return json_pack("{ss}", "id", name);
}

/* Returns a request for at most `room` traces that an earlier process had requested: those with
 * collected spans, or those without. NULL: no trace is open. */
static struct request *wants_list_open(struct wants *wants, bool is_fetched, size_t room)
{
    struct request *request = request_new("", wants->agent->host);
    struct collected_trace *trace;
    size_t judged = 0; /* traces that an earlier process has judged and counted */

    collected_for_each(trace, wants->agent->collected)
    {
        if (!request || !trace->is_open || trace->is_asked ||
            (trace->until_mono_ns != 0) != is_fetched || request->count >= room)
            continue;
        trace->is_asked = true;
        judged += trace->was_judged;
        (void)request_add(request, trace->id, trace->asked_begin_ns, trace->why);
    }
    if (request && request->count) {
        wants->agent->totals.traces_asked += request->count;
        wants->agent->totals.traces_asked_again += request->count - judged;
        say(BK4041, "%zu traces were asked for when the last agent ended: this one asks again",
            request->count);
        return request;
    }
    requests_free(request);
    return NULL;
}

/* Fetches again the traces that were collected for another host or by hand, and whose spans were
 * not settled. Asks no other host. Returns false if there are no such traces. */
static bool wants_fetch_unsent(struct wants *wants, size_t room)
{
    struct agent *agent = wants->agent;
    struct request *request = request_new("", agent->host);
    struct collected_trace *trace;

    collected_for_each(trace, agent->collected)
    {
        if (!request || !trace->is_unsent || request->count >= room)
            continue;
        trace->is_unsent = false;
        (void)request_add(request, trace->id, trace->asked_begin_ns, trace->why);
    }
    if (!request || !request->count) {
        requests_free(request);
        return false;
    }
    say(BK4044,
        "the spans of %zu traces were not settled when the service ended: they are sent again, "
        "and some may come twice",
        request->count);
    (void)scan_queue_add(&agent->scan_queue, request);
    return true;
}

/* Traces without collected spans come first, as rings hold the spans only for seconds. For
 * collected traces, the agent asks the other hosts again, because it lost their answers with its
 * process. */
void wants_repeat(struct wants *wants)
{
    const struct scan_queue *scan_queue = &wants->agent->scan_queue;
    const size_t free_room = scan_queue_room(scan_queue, NULL);
    const size_t room = free_room < scan_queue->max ? free_room : scan_queue->max;
    struct request *request;
    bool has_unsent;

    if (!wants->asks_again || room == 0)
        return;
    request = wants_list_open(wants, false, room);
    if (request) {
        wants_send(wants, request, NULL, 0);
        return;
    }
    has_unsent = wants_fetch_unsent(wants, free_room);
    request = wants_list_open(wants, true, scan_queue->max);
    if (request) { /* this host's answer comes from the list of collected traces */
        wants_ask_others(wants, request, NULL, 0, NULL);
        wants_answer(wants, request, NULL, NULL, NULL);
        requests_free(request);
    }
    wants->asks_again = request || has_unsent;
}

#define TRACES_MAX 4096 /* of a request: request_read() compares each pair of them */

/* Returns the largest number of traces of a request from another host. */
static size_t wants_traces_max(const struct wants *wants)
{
    const size_t max = wants->agent->scan_queue.max + wants->agent->scan_queue.more_for_others;

    return max < TRACES_MAX ? max : TRACES_MAX;
}

/* ---- the file of waiting requests from other hosts ------------------------------------------- */

static void wants_add_others(const struct wants *wants, json_t *list,
                             const struct request *requests)
{
    for (const struct request *r = requests; r; r = r->next) {
        if (strcmp(r->host, wants->agent->host) != 0 && r->last_ms == 0 && !r->is_late)
            (void)json_array_append_new(list, request_json(r));
    }
}

void wants_save(struct wants *wants)
{
    json_t *list;
    size_t length = 0;

    if (!wants->others_changed)
        return;
    wants->others_changed = false;
    list = json_array();
    wants_add_others(wants, list, wants->agent->scan_queue.taken);
    wants_add_others(wants, list, wants->agent->scan_queue.list);
    if (json_array_size(list) || wants->has_saved_others) {
        char *text = json_text(list, &length);

        saver_write_often(wants->others_file, text, length);
    }
    wants->has_saved_others = json_array_size(list) > 0;
    json_decref(list);
}

void wants_load(struct wants *wants)
{
    json_t *list = json_read(wants->others_file);
    const json_t *message;
    size_t i, left;

    json_array_foreach(list, i, message)
    {
        struct request *request = request_read(message, wants_traces_max(wants), &left);

        if (!request)
            continue;
        request->came_mono_ns = clock_ns();
        for (size_t k = 0; k < request->count; k++) /* unusable, as the request's age is unknown */
            request->traces[k].begin_ns = 0;
        wants->agent->totals.traces_dropped +=
            left + scan_queue_add(&wants->agent->scan_queue, request);
    }
    wants->has_saved_others = json_array_size(list) > 0;
    json_decref(list);
    wants->asks_again = true;
}

/* ---- from other hosts ------------------------------------------------------------------------ */

const char *wants_refuses(const struct wants *wants, const char *host)
{
    const char *from = config_text(wants->agent->config, "keep-from");

    if (strcmp(from, "none") == 0 ||
        (strcmp(from, "local") == 0 && strcmp(host, wants->agent->host) != 0))
        return "refuses to send the last seconds: its key keep-from forbids it";
    if (scan_queue_last_count(&wants->agent->scan_queue) >= LAST_MAX)
        return "has too many requests for the last seconds: try again";
    return NULL;
}

/* Extends the window by a second at its begin and, if the broker held the want, at its end: the
 * broker counts in whole seconds how long it held the want. */
static void wants_widen(struct request *request, int64_t held_ms)
{
    const int64_t now_ns = clock_ns();
    const int64_t later_ns = request->came_mono_ns + INT64_C(1000000000);

    request->last_ms += 1000;
    if (held_ms <= 0)
        return;
    request->last_ms += 1000;
    request->came_mono_ns = later_ns < now_ns ? later_ns : now_ns;
}

static void wants_take_request(struct wants *wants, const json_t *message, bool over)
{
    size_t left;
    struct request *request =
        request_read(message, over ? wants->agent->scan_queue.max : wants_traces_max(wants), &left);
    const char *problem =
        over ? "accepts no more wants per second: its key cluster-wants-per-s" : NULL;
    const bool is_join =
        json_object_get(json_array_get(json_object_get(message, "traces"), 0), "halves") != NULL;

    if (!request)
        return;
    if (is_join)
        joins_note(wants->joins, message, over);
    request->left_out = left; /* without the traces that the sender left out */
    /* from the message's age, as the clocks of two hosts cannot be compared */
    request->came_mono_ns = clock_ns() - number_in(message, "held_ms") * 1000000;
    if (!problem && request->last_ms > 0)
        problem = wants_refuses(wants, request->host);
    if (request->last_ms > 0)
        wants_widen(request, number_in(message, "held_ms"));
    if (problem) {
        wants_answer(wants, request, NULL, NULL, problem);
        requests_free(request);
        return;
    }
    request->due_ms =
        clock_ms() + (request->last_ms > 0 ? 0 : config_integer(wants->agent->config, "linger-ms"));
    wants->agent->totals.traces_asked_by_others += request->count + left;
    if (is_join) {
        joins_queue_want(wants->joins, request);
        agent_step(wants->agent);
        return;
    }
    judge_yield(wants->judge, request);
    wants->agent->totals.traces_dropped +=
        left + scan_queue_add(&wants->agent->scan_queue, request);
    wants->others_changed = true;
    agent_step(wants->agent);
}

static void wants_take_message(void *context, const json_t *message, bool over)
{
    struct wants *wants = context;

    if (json_object_get(message, "settled")) {
        joins_take_settled(wants->joins, message);
        agent_step(wants->agent);
    } else if (strcmp(text_in(message, "type"), "keep") == 0) {
        wants_take_request(wants, message, over);
    } else {
        judge_answer(wants->judge, message, clock_ms());
        agent_step(wants->agent);
    }
}

static void wants_take_config(void *context, const char *text)
{
    const struct wants *wants = context;

    frame_take_topic(&wants->agent->frame, text);
}

/* ---- verdicts -------------------------------------------------------------------------------- */

static void wants_say_verdict(const struct verdict *verdict)
{
    char text[TRACE_ID_TEXT];

    trace_id_text(verdict->id, text);
    if (verdict->is_complete)
        say(BK4042, "trace %s is found whole, and is sent: %" PRIu64 " spans of %s (%s)", text,
            verdict->spans, verdict->hosts, verdict->why);
    else
        say(BK4043, "trace %s is incomplete: %s (%s; %" PRIu64 " spans of %s)", text,
            verdict->lacks, verdict->why, verdict->spans, verdict->hosts);
}

/* Counts the verdict and closes the trace. A restarted agent requests the trace again unless its
 * spans were settled: see collected_text(). */
static void wants_judged(void *context, const struct verdict *verdict)
{
    struct wants *wants = context;
    struct verdict moved = *verdict;
    struct join_place place;

    wants_say_verdict(verdict);
    if (verdict->is_complete) {
        wants->agent->totals.traces_complete++;
    } else if (verdict->is_by_hand && verdict->spans == 0) {
        wants->agent->totals.traces_not_found++;
    } else {
        wants->agent->totals.traces_incomplete++;
        if (joins_find(wants->joins, verdict->id, &place))
            moved.id = (struct trace_id){place.trace_id_high, place.trace_id};
        judge_report(wants->agent->export, &moved);
        collected_note_given(wants->agent->collected, verdict->id,
                             export_given(wants->agent->export));
    }
    wants_close_trace(wants, verdict->id);
}

static void wants_left(void *context, struct trace_id id, bool to_other)
{
    struct wants *wants = context;

    if (to_other) {
        wants->agent->totals.traces_of_others++;
        wants_close_trace(wants, id);
    } else {
        wants->agent->totals.traces_asked_again++;
    }
}

/* Collects a trace that began before the oldest record that a host has searched. begin_ns: 0 if the
 * begin is not known. */
static void wants_earlier(void *context, struct asker *asker, const struct wanted *wanted,
                          int64_t begin_ns)
{
    struct wants *wants = context;
    struct request *request = requests_of(&wants->earlier, asker, wants->agent->host);

    if (request &&
        request_add(request, wanted->id, wanted->tries < TRIES_MAX ? begin_ns : 0, wanted->why))
        request->traces[request->count - 1].tries = wanted->tries + 1;
}

static void wants_ask_earlier(struct wants *wants)
{
    struct request *request;

    while ((request = wants->earlier) != NULL) {
        wants->earlier = request->next;
        request->next = NULL;
        wants->agent->totals.traces_asked += request->count;
        wants_send(wants, request, NULL, 0);
    }
}

/* Requests by their ids the traces that the hosts have listed for a service. */
static void wants_listed(void *context, const char *name, const struct request *traces)
{
    struct wants *wants = context;
    struct request *request = request_new("", wants->agent->host);

    for (size_t i = 0; request && i < traces->count; i++) {
        if (request->count < wants->agent->scan_queue.max)
            (void)request_add(request, traces->traces[i].id, 0, "blkin keep --last --service");
        else
            request->left_out++;
    }
    if (!request)
        return;
    request->left_out += traces->left_out;
    wants->agent->totals.traces_asked_by_hand += request->count;
    wants->agent->totals.traces_dropped += request->left_out;
    wants_send(wants, request, name, 0);
}

int64_t wants_judge(struct wants *wants)
{
    const size_t open = judge_open(wants->judge);
    const int64_t judge_ms = judge_due(wants->judge, clock_ms());
    const int64_t join_ms = joins_step(wants->joins);

    wants_ask_earlier(wants);
    if (open != judge_open(wants->judge)) {
        agent_save(wants->agent);
        agent_save_collected(wants->agent);
    }
    return join_ms < judge_ms ? join_ms : judge_ms;
}

/* ---- begin and end --------------------------------------------------------------------------- */

static bool wants_set_up(struct wants *wants, struct error *error)
{
    const struct judge_callbacks callbacks = {wants_judged, wants_left, wants_listed, wants_earlier,
                                              wants};
    const struct cluster_callbacks on = {wants_take_message, wants_take_config, wants};
    struct agent *agent = wants->agent;
    const char *url = config_text(agent->config, "cluster");
    char hosts_file[4096];

    agent_path(agent, "agent.asked", wants->others_file);
    wants->judge = judge_new(&callbacks);
    wants->joins = wants_open_joins(wants);
    error_set(error, "out of memory");
    if (!wants->judge || !wants->joins)
        return false;
    if (!url || !url[0])
        return true;
    agent_path(agent, "agent.hosts", hosts_file);
    wants->cluster = cluster_open(agent->loop, agent->config, agent->host, hosts_file, &on, error);
    return wants->cluster != NULL;
}

struct wants *wants_open(struct agent *agent, struct error *error)
{
    struct wants *wants = calloc(1, sizeof(*wants));

    error_set(error, "out of memory");
    if (!wants)
        return NULL;
    wants->agent = agent;
    wants->requests = (unsigned long)(wall_clock_ns() / 1000000);
    if (wants_set_up(wants, error))
        return wants;
    wants_close(wants);
    return NULL;
}

void wants_close(struct wants *wants)
{
    if (!wants)
        return;
    cluster_close(wants->cluster);
    joins_free(wants->joins);
    if (wants->judge)
        judge_free(wants->judge);
    requests_free(wants->earlier);
    free(wants);
}

size_t wants_open_count(const struct wants *wants)
{
    return judge_open(wants->judge) + joins_open(wants->joins);
}
