/* SPDX-License-Identifier: BSD-2-Clause */
#include "scans.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "feed.h"
#include "tools/base/loop.h"
#include "tools/rings/ring_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REST         12 /* an asker's pause, in CPU times of its last scan: 8 % of a core */
#define RETRY_MS     1000
#define FAILURES_MAX 3
/* In a cluster, a scan reads this much further back. The age of another host's request is known
 * only to about a second, and a trace may have begun a little earlier on another host. */
#define SCANS_EARLY_NS INT64_C(2000000000)
#define LAST_WAITS_MS  5000 /* how long requests by id may delay a window */

struct scans {
    struct agent *agent;
    struct places *places;
    struct scan_index *index;
    struct timer look;
    struct feed *feed;

    struct thread_job job;
    struct scan_order order;
    struct scan_result result;
    struct feed_input input;
    bool is_busy;                  /* from the start of a scan until its records are fed */
    bool is_running;               /* the thread runs */
    struct halves halves;          /* the halves that a look has found */
    bool is_scanned;               /* the result of scan_run() */
    int64_t begun_mono_ns;         /* the start of this process */
    int64_t begun_ms;              /* the start of the last scan */
    int64_t next_ms, next_last_ms; /* no scan for a window starts before both times */
    int64_t last_allowance;        /* bytes that windows may fetch now (keep-minute-bytes) */
    int64_t last_allowed_ms;       /* the time of last_allowance */
};

/* ---- the end of a scan ----------------------------------------------------------------------- */

static void scans_set_rest(struct scans *scans)
{
    struct agent *agent = scans->agent;
    struct asker *asker = agent->scan_queue.taken->asker;
    const int64_t interval_ms =
        scans->begun_ms + config_integer(agent->config, "fetch-interval-ms");
    const int64_t crowd = 1 + payers_crowd(&agent->askers, asker ? &asker->payer : NULL);
    const int64_t rest_ms = clock_ms() + REST * crowd * scans->result.cpu_ns / 1000000;
    const int64_t next_ms = interval_ms > rest_ms ? interval_ms : rest_ms;

    if (asker != &agent->late_asker) /* windows do not wait for late spans */
        scans->next_ms = next_ms;
    if (agent->scan_queue.taken->last_ms == 0) {
        scan_queue_rest(&agent->scan_queue, asker, next_ms);
        return;
    }
    if (!request_is_list(agent->scan_queue.taken)) /* a list sends no span */
        scans->last_allowance -= (int64_t)scans->result.bytes_found;
    scans->next_last_ms = next_ms;
}

/* Adds the passed time's share of keep-minute-bytes to the allowance of windows. Returns true if
 * the allowance is more than 0. */
static bool scans_allow_window(struct scans *scans)
{
    const int64_t most = config_integer(scans->agent->config, "keep-minute-bytes");
    const int64_t passed_ms = clock_ms() - scans->last_allowed_ms;

    scans->last_allowance =
        passed_ms < 60000
            ? scans->last_allowance + (int64_t)((double)most / 60000 * (double)passed_ms)
            : most;
    if (scans->last_allowance > most)
        scans->last_allowance = most;
    scans->last_allowed_ms = clock_ms();
    return scans->last_allowance > 0;
}

/* Notes the collected traces and windows. Before, the exporter was given all found spans. If
 * records were left out, no later scan may take them for sent: it sends the others twice. */
static void scans_note_collected(struct scans *scans)
{
    struct collected *collected = scans->agent->collected;
    const uint64_t given = export_given(scans->agent->export);
    const struct collected_fetch fetch = {scans->result.reach_ns, scans->order.until_mono_ns,
                                          scans->result.from_place, scans->order.place};

    const struct scan_wanted *wanted = scans->order.wanted; /* in the order of the requests */

    for (const struct request *r = scans->agent->scan_queue.taken; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++) {
            const struct trace_id id = r->traces[i].id;

            if (!scans->result.is_limited)
                collected_note(collected, id, &fetch);
            collected_note_held(collected, id, wanted->held_from_ns);
            /* the given spans of a trace without late spans may be settled already */
            if (!r->is_late || wanted->is_found || late_spans_taken(scans->agent->late_spans, id))
                collected_note_given(collected, id, given);
            wanted++;
        }
        if (r->last_ms > 0 && !request_is_list(r) && !scans->result.is_limited) {
            const struct request_window window = request_window(r);

            collected_note_window(
                collected, (struct collected_window){window.from_ns, window.until_ns, given});
        }
    }
}

static void scans_count(struct scans *scans)
{
    struct agent_totals *totals = &scans->agent->totals;
    const struct scan_result *result = &scans->result;

    totals->fetches++;
    totals->fetched_bytes += result->bytes;
    totals->picked_bytes += result->bytes_found;
    totals->rings_damaged += result->rings_damaged;
    if (result->is_limited)
        agent_say_state(scans->agent, BK4034,
                        "the wanted records exceed wanted-max-bytes: some are left out");
}

/* Retries the requests after a failure: the rings may still have the records. Answers the requests
 * that have failed FAILURES_MAX times or, in the last scan, once. */
static void scans_try_again(struct scans *scans, const char *problem)
{
    struct request *request;

    scans->agent->totals.fetches_failed++;
    agent_say_state(scans->agent, BK4033, problem);
    late_spans_take_back(scans->agent->late_spans, scans->agent->scan_queue.taken);
    while ((request = scans->agent->scan_queue.taken) != NULL) {
        scans->agent->scan_queue.taken = request->next;
        request->next = NULL;
        if (++request->failures < FAILURES_MAX && !scans->agent->is_last_scan) {
            request->due_ms = clock_ms() + RETRY_MS;
            scans->agent->totals.traces_dropped +=
                scan_queue_add(&scans->agent->scan_queue, request);
            continue;
        }
        if (request->is_look)
            joins_looked(scans->agent->wants->joins, &scans->halves, 0, problem);
        else
            wants_answer(scans->agent->wants, request, NULL, NULL, problem);
        requests_free(request);
    }
}

/* Ends the scan. problem: why the scan failed; NULL: it did not. */
static void scans_finish(struct scans *scans, const json_t *found, const char *problem)
{
    const struct found_reach reach = {scans->result.held_from_ns, scans->result.reach_ns};

    scan_records_free(&scans->input.records);
    buffer_free(&scans->input.sdk_spans);
    scans->is_busy = false;
    if (problem) {
        scans->next_ms = clock_ms() + RETRY_MS;
        scans_try_again(scans, problem);
    } else {
        scans_note_collected(scans);
        if (scans->agent->scan_queue.taken->is_look)
            joins_looked(scans->agent->wants->joins, &scans->halves, scans->result.held_from_ns,
                         NULL);
        else
            wants_found(scans->agent->wants, scans->agent->scan_queue.taken, &reach, found);
        requests_free(scans->agent->scan_queue.taken);
        scans->agent->scan_queue.taken = NULL;
    }
    halves_free(&scans->halves);
    scan_order_free(&scans->order);
    scans->agent->wants->others_changed = true;
    agent_save_collected(scans->agent);
    agent_save(scans->agent);
    agent_step(scans->agent);
}

static void scans_fed(void *context, json_t *found)
{
    struct scans *scans = context;

    scans_finish(scans, found, found ? NULL : "out of memory for the records of the rings");
    json_decref(found);
}

/* Runs in the thread. */
static void scans_run(void *context)
{
    struct scans *scans = context;

    scans->is_scanned = scan_run(&scans->order, &scans->input.records, &scans->result);
}

static void scans_done(void *context)
{
    struct scans *scans = context;
    const struct scan_result *result = &scans->result;
    const struct request *first = scans->agent->scan_queue.taken;

    scans->is_running = false;
    if (!scans->is_scanned) {
        scans_finish(scans, NULL, result->error.text);
        return;
    }
    /* for other requests, late_spans.c has noted this time for each trace with spans of SDKs */
    if (scans->order.is_window &&
        late_spans_held_from(scans->agent->late_spans) > result->held_from_ns)
        scans->result.held_from_ns = late_spans_held_from(scans->agent->late_spans);
    scans_count(scans);
    scans_set_rest(scans);
    if (!result->records_found && !scans->input.sdk_spans.length) {
        scans_finish(scans, NULL, NULL);
        return;
    }
    scans->input.service = first->service;
    scans->input.halves = first->is_look ? &scans->halves : NULL;
    feed_start(scans->feed, &scans->input);
}

/* ---- the start of a scan --------------------------------------------------------------------- */

static void scans_start(struct scans *scans, struct request *requests)
{
    scans->agent->scan_queue.taken = requests;
    scans->begun_ms = clock_ms();
    scans->result = (struct scan_result){.records = 0};
    scans->order = (struct scan_order){
        .requests = requests,
        .collected = scans->agent->collected,
        .first_held = agent_rings_first(scans->agent->rings),
        .sampler = scans->agent->sampler,
        .max_bytes = (uint64_t)config_integer(scans->agent->config, "wanted-max-bytes"),
        .places = scans->places,
        .place = places_take(scans->places, agent_rings_first(scans->agent->rings)),
        .index = requests->last_ms > 0 ? NULL : scans->index,
        .offset_ns = ring_clock_offset(),
        .early_ns = config_text(scans->agent->config, "cluster")[0] ? SCANS_EARLY_NS : 0,
        .begun_mono_ns = scans->begun_mono_ns};
    scans->order.until_mono_ns =
        clock_ns(); /* read after the place is made, so records before the place are older */
    late_spans_take(scans->agent->late_spans, requests, scans->order.offset_ns,
                    &scans->input.sdk_spans);
    scans->is_busy = true;
    errno = ENOMEM;
    scans->is_running = true;
    if (!scans->order.place || !scan_order_make(&scans->order) ||
        !thread_job_start(scans->agent->loop, &scans->job)) {
        scans->is_running = false;
        scans_finish(scans, NULL, strerror(errno));
    }
}

/* ---- the next scan --------------------------------------------------------------------------- */

/* Makes a place every PLACES_EACH_MS, but not while the thread reads the places. */
static void scans_look(void *context)
{
    struct scans *scans = context;

    if (!scans->is_running)
        places_look(scans->places, agent_rings_first(scans->agent->rings));
    timer_set(scans->agent->loop, &scans->look, PLACES_EACH_MS);
}

static int64_t scans_later_ms(int64_t one_ms, int64_t other_ms)
{
    return one_ms > other_ms ? one_ms : other_ms;
}

/* There are no bytes left of keep-minute-bytes. Nobody reads the answer to a rule of host-filters,
 * so the log has the refusal, too. */
static void scans_refuse_windows(struct scans *scans, const struct request *requests)
{
    for (const struct request *r = requests; r; r = r->next) {
        scans->agent->totals.windows_refused++;
        say(BK4035, "the last %.1f s are not sent%s%s: keep-minute-bytes has no bytes left; for %s",
            (double)r->last_ms / 1000, r->why[0] ? ": " : "", r->why, r->host);
    }
    wants_answer(scans->agent->wants, requests, NULL, NULL,
                 "has no bytes left of keep-minute-bytes: try again in a minute");
}

/* Starts the next scan. Requests that name traces come before windows, as their records are
 * overwritten soon. Windows come first if a look waits, or if one has waited for LAST_WAITS_MS. */
static void scans_take(struct scans *scans, int64_t now_ms, int64_t named_ms, int64_t last_ms)
{
    const bool is_last =
        last_ms <= now_ms &&
        (named_ms > now_ms || scan_queue_has_look(&scans->agent->scan_queue) ||
         now_ms - scan_queue_due_ms(&scans->agent->scan_queue, true) > LAST_WAITS_MS);
    struct request *requests = scan_queue_take(&scans->agent->scan_queue, now_ms, is_last);

    if (!is_last || request_is_list(requests) || scans_allow_window(scans)) {
        scans_start(scans, requests);
        return;
    }
    scans_refuse_windows(scans, requests);
    requests_free(requests);
}

int64_t scans_step(struct scans *scans)
{
    const int64_t now_ms = clock_ms();
    int64_t due_ms, named_ms, last_ms;

    if (scans->is_busy)
        return INT64_MAX;
    named_ms = scan_queue_due_ms(&scans->agent->scan_queue, false);
    last_ms = scans_later_ms(scan_queue_due_ms(&scans->agent->scan_queue, true),
                             scans_later_ms(scans->next_ms, scans->next_last_ms));
    due_ms = named_ms < last_ms ? named_ms : last_ms;
    if (due_ms > now_ms)
        return due_ms;
    scans_take(scans, now_ms, named_ms, last_ms);
    return INT64_MAX;
}

bool scans_is_busy(const struct scans *scans)
{
    return scans->is_busy;
}

void scans_hurry(struct scans *scans)
{
    feed_hurry(scans->feed);
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct scans *scans_new(struct agent *agent)
{
    struct scans *scans = calloc(1, sizeof(*scans));

    if (!scans)
        return NULL;
    *scans = (struct scans){.agent = agent,
                            .job = {.run = scans_run, .done = scans_done, .context = scans},
                            .places = places_new(),
                            .index = scan_index_new(),
                            .look = {.due = scans_look, .context = scans},
                            .feed = feed_new(agent->loop, agent->export, agent->host,
                                             agent->wants->joins, scans_fed, scans),
                            .begun_mono_ns = clock_ns()};
    scans->input.order = &scans->order;
    if (scans->places && scans->index && scans->feed) {
        timer_set(agent->loop, &scans->look, 0);
        return scans;
    }
    scans_free(scans);
    return NULL;
}

void scans_free(struct scans *scans)
{
    if (!scans)
        return;
    timer_clear(scans->agent->loop, &scans->look);
    thread_job_end(&scans->job);
    feed_free(scans->feed); /* before the halves and traces that the feed uses */
    scan_records_free(&scans->input.records);
    buffer_free(&scans->input.sdk_spans);
    halves_free(&scans->halves);
    scan_order_free(&scans->order);
    places_free(scans->places);
    scan_index_free(scans->index);
    free(scans);
}

void scans_end(struct scans *scans)
{
    scan_queue_hurry(&scans->agent->scan_queue, clock_ms());
    scans->next_ms = 0;
}
