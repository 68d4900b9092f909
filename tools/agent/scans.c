/*
 * Runs the scans of the rings, one at a time, and gives the results to the export.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "scans.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "feed.h"
#include "tools/base/say.h"
#include "tools/base/loop.h"
#include "tools/rings/ring_event.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define REST         12 /* the pause, in CPU times of the last scan: scans use 8 % of a core */
#define RETRY_MS     1000
#define FAILURES_MAX 3
/* In a cluster, a scan reads so much further back: the age of another host's request is only known
 * to about a second, and a trace may have begun a little earlier on another host. */
#define SCANS_EARLY_NS INT64_C(2000000000)
#define LAST_WAITS_MS  5000 /* how long requests by id may delay a window */

struct scans {
    struct agent *agent;
    struct asking *asking;
    const struct holding *holding;
    struct later *later; /* NULL: no spans of SDKs */
    struct sampler *const *sampler;
    struct places *places;
    struct timer look;
    struct feed *feed;

    struct thread_job job;
    struct scan_order order;
    struct scan_result result;
    struct feed_input input;
    bool is_busy;              /* from the start of a scan until its records are fed */
    bool is_running;           /* the thread runs */
    struct halves halves;      /* the halves that a look has found */
    bool is_scanned;           /* the result of scan_run() */
    bool is_last_call;         /* see scans_last_call() */
    int64_t begun_mono_ns;     /* the start of this process */
    int64_t begun_ms, next_ms; /* the start of the last scan, the earliest start of the next */
    int64_t next_last_ms;      /* the earliest start of the next scan for a window */
    int64_t last_allowance;    /* bytes that windows may fetch now (keep-minute-bytes) */
    int64_t last_allowed_ms;   /* the time of last_allowance */
};

/* ---- the end of a scan ----------------------------------------------------------------------- */

static void scans_set_rest(struct scans *scans)
{
    const int64_t interval_ms =
        scans->begun_ms + config_integer(scans->agent->config, "fetch-interval-ms");
    const int64_t rest_ms = clock_ms() + REST * scans->result.cpu_ns / 1000000;

    scans->next_ms = interval_ms > rest_ms ? interval_ms : rest_ms;
    if (scans->agent->pending.taken->last_ms == 0)
        return;
    scans->last_allowance -= (int64_t)scans->result.bytes_found;
    scans->next_last_ms = scans->next_ms;
    /* after a look, waiting traces by id follow at once: looks must not starve them */
    scans->next_ms = scans->agent->pending.taken->is_look ? 0 : interval_ms;
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

/* Notes the fetched traces and windows. The exporter has got all found spans. */
static void scans_note_fetched(struct scans *scans)
{
    struct fetched *fetched = scans->agent->fetched;
    const uint64_t given = export_given(scans->agent->export);
    const struct fetched_span span = {scans->result.reach_ns, scans->order.until_mono_ns,
                                      scans->result.from_place, scans->order.place};

    for (const struct request *r = scans->agent->pending.taken; r; r = r->next) {
        for (size_t i = 0; i < r->count; i++) {
            const struct trace_id id = r->traces[i].id;

            fetched_note(fetched, id, &span);
            if (!scans->result.is_bounded)
                fetched_note_held(fetched, id, scans->result.held_from_ns);
            fetched_note_given(fetched, id, given);
        }
        if (r->last_ms > 0 && !request_is_list(r)) {
            const struct request_window window = request_window(r);

            fetched_note_window(fetched,
                                (struct fetched_window){window.from_ns, window.until_ns, given});
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
                        "there is no room for all that was wanted: only the newest is sent "
                        "(wanted-max-bytes)");
}

/* Retries the requests after a failure: the rings may still have the records. Answers the requests
 * that have failed FAILURES_MAX times. */
static void scans_try_again(struct scans *scans, const char *problem)
{
    struct request *request;

    scans->agent->totals.fetches_failed++;
    agent_say_state(scans->agent, BK4033, problem);
    if (scans->later)
        later_take_back(scans->later, scans->agent->pending.taken);
    while ((request = scans->agent->pending.taken) != NULL) {
        scans->agent->pending.taken = request->next;
        request->next = NULL;
        if (++request->failures < FAILURES_MAX && !scans->is_last_call) {
            request->due_ms = clock_ms() + RETRY_MS;
            scans->agent->totals.traces_dropped += pending_add(&scans->agent->pending, request);
            continue;
        }
        if (request->is_look)
            asking_looked(scans->asking, &scans->halves, 0, problem);
        else
            asking_answer(scans->asking, request, NULL, NULL, problem);
        requests_free(request);
    }
}

/* Ends the scan. problem: why it failed, or NULL. */
static void scans_finish(struct scans *scans, const json_t *found, const char *problem)
{
    const struct answer_reach reach = {
        scans->result.held_from_ns, scans->result.is_bounded ? scans->result.reach_ns : INT64_MIN};

    scan_records_free(&scans->input.records);
    buffer_free(&scans->input.sdk_spans);
    scans->is_busy = false;
    if (problem) {
        scans->next_ms = clock_ms() + RETRY_MS;
        scans_try_again(scans, problem);
    } else {
        scans_note_fetched(scans);
        if (scans->agent->pending.taken->is_look)
            asking_looked(scans->asking, &scans->halves, scans->result.held_from_ns, NULL);
        else
            asking_found(scans->asking, scans->agent->pending.taken, &reach, found);
        requests_free(scans->agent->pending.taken);
        scans->agent->pending.taken = NULL;
    }
    halves_free(&scans->halves);
    scan_order_free(&scans->order);
    asking_save(scans->asking);
    agent_save_fetched(scans->agent);
    agent_save(scans->agent);
    agent_step(scans->agent);
}

static void scans_fed(void *context, json_t *found)
{
    struct scans *scans = context;

    scans_finish(scans, found, found ? NULL : "out of memory for what the rings had");
    json_decref(found);
}

static bool scans_place(void *context, struct trace_id id, struct join_place *place)
{
    const struct scans *scans = context;

    return asking_place(scans->asking, id, place);
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
    const struct request *first = scans->agent->pending.taken;

    scans->is_running = false;
    if (!scans->is_scanned) {
        scans_finish(scans, NULL, result->error.text);
        return;
    }
    /* for other requests, later.c has noted this time for each trace with spans of SDKs */
    if (scans->order.is_window && scans->later &&
        later_held_from(scans->later) > result->held_from_ns) {
        scans->result.held_from_ns = later_held_from(scans->later);
        scans->result.is_bounded = false;
    }
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
    const struct scan_source source = {.requests = requests,
                                       .fetched = scans->agent->fetched,
                                       .first = holding_first(scans->holding),
                                       .sampler = *scans->sampler};

    scans->agent->pending.taken = requests;
    scans->begun_ms = clock_ms();
    scans->result = (struct scan_result){.records = 0};
    scans->order = (struct scan_order){
        .max_bytes = (uint64_t)config_integer(scans->agent->config, "wanted-max-bytes"),
        .places = scans->places,
        .place = places_take(scans->places, holding_first(scans->holding)),
        .offset_ns = ring_clock_offset(),
        .early_ns = config_text(scans->agent->config, "cluster")[0] ? SCANS_EARLY_NS : 0,
        .begun_mono_ns = scans->begun_mono_ns};
    scans->order.until_mono_ns =
        clock_ns(); /* read after the place is made, so records before the place are older */
    if (scans->later)
        later_take(scans->later, requests, scans->order.offset_ns, &scans->input.sdk_spans);
    scans->is_busy = true;
    errno = ENOMEM;
    scans->is_running = true;
    if (!scans->order.place || !scan_order_make(&scans->order, &source) ||
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
        places_look(scans->places, holding_first(scans->holding));
    timer_set(scans->agent->loop, &scans->look, PLACES_EACH_MS);
}

static int64_t scans_later_ms(int64_t one_ms, int64_t other_ms)
{
    return one_ms > other_ms ? one_ms : other_ms;
}

/* Starts the next scan. Requests that name traces come before windows, as their records are
 * overwritten soon. A window waits for at most LAST_WAITS_MS. */
static void scans_take(struct scans *scans, int64_t now_ms, int64_t named_ms, int64_t last_ms)
{
    const bool is_last = last_ms <= now_ms &&
                         (named_ms > now_ms || pending_has_look(&scans->agent->pending) ||
                          now_ms - pending_due_ms(&scans->agent->pending, true) > LAST_WAITS_MS);
    struct request *requests = pending_take(&scans->agent->pending, now_ms, is_last);

    if (!is_last || request_is_list(requests) || scans_allow_window(scans)) {
        scans_start(scans, requests);
        return;
    }
    asking_answer(scans->asking, requests, NULL, NULL,
                  "has no bytes left of keep-minute-bytes: try again in a minute");
    requests_free(requests);
}

int64_t scans_step(struct scans *scans)
{
    const int64_t now_ms = clock_ms();
    int64_t due_ms, named_ms, last_ms;

    if (scans->is_busy)
        return INT64_MAX;
    named_ms = scans_later_ms(pending_due_ms(&scans->agent->pending, false), scans->next_ms);
    last_ms = scans_later_ms(pending_due_ms(&scans->agent->pending, true),
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

struct scans *scans_new(struct agent *agent, struct asking *asking, const struct holding *holding,
                        struct later *later, struct sampler *const *sampler)
{
    struct scans *scans = calloc(1, sizeof(*scans));

    if (!scans)
        return NULL;
    *scans = (struct scans){
        .agent = agent,
        .asking = asking,
        .holding = holding,
        .later = later,
        .sampler = sampler,
        .job = {.run = scans_run, .done = scans_done, .context = scans},
        .places = places_new(),
        .look = {.due = scans_look, .context = scans},
        .feed = feed_new(agent->loop, agent->export, agent->host, scans_fed, scans_place, scans),
        .begun_mono_ns = clock_ns()};
    scans->input.order = &scans->order;
    if (scans->places && scans->feed) {
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
    free(scans);
}

void scans_end(struct scans *scans)
{
    pending_hurry(&scans->agent->pending, clock_ms());
    scans->next_ms = 0;
}

void scans_last_call(struct scans *scans)
{
    scans->is_last_call = true;
}
