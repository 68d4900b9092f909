/* SPDX-License-Identifier: BSD-2-Clause */
#include "alarms.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"
#include "watcher.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SAID_AGAIN_MS   60000
#define ALARMS_BURST_NS UINT64_C(1000000000) /* a user may send the alarms of this time at once */

struct alarms {
    struct agent *agent;
    struct watcher watcher;
    struct timer poll;
    bool is_stopped;
    struct request *collected; /* the traces of one poll, a request of each asker */
    int64_t lost_said_ms;
    struct alarms_seen alarms_seen;
    bool has_read; /* an alarm was read since the last poll */
    struct {       /* counts since the last poll */
        uint64_t alarms, held_back, doubles, dropped;
    } polled;
};

/* ---- one alarm ------------------------------------------------------------------------------- */

/* Returns the begin of the alarm's span in ns since 1970. */
static int64_t alarms_begin_of(const struct alarm *alarm)
{
    const int64_t wall_ns = wall_clock_ns();
    const int64_t now_ns = clock_ns(); /* read second: an early begin only costs time */

    return alarm_begin_ns(alarm, now_ns, wall_ns - now_ns);
}

/* Returns true if the asker may ask for one more trace now. Without a cluster, an asker may ask for
 * as many traces as scans fetch. In a cluster, all users of this host share the wants that other
 * hosts allow. A quarter of the wants is left for users that have not asked lately. */
static bool alarms_are_allowed(const struct alarms *alarms, struct asker *asker)
{
    const struct config *config = alarms->agent->config;
    const uint64_t wants = (uint64_t)config_integer(config, "cluster-wants-per-s");
    const uint64_t own_ns = (uint64_t)config_integer(config, "fetch-interval-ms") * 1000000 /
                            (uint64_t)config_integer(config, "fetch-traces");

    if (!asker)
        return true;
    payers_set_rate(&alarms->agent->askers, &asker->payer,
                    config_text(config, "cluster")[0] ? UINT64_C(4000000000) / 3 / wants : 0);
    if (asker->payer.alarms.period_ns < own_ns)
        asker->payer.alarms.period_ns = own_ns;
    return payer_count_alarm(&asker->payer, ALARMS_BURST_NS);
}

/* Returns false if the trace is beyond the asker's share. */
static bool alarms_collect(struct alarms *alarms, const struct alarm *alarm, struct trace_id id)
{
    const struct agent *agent = alarms->agent;
    struct request *request = requests_of(&alarms->collected, alarm->asker, agent->host);

    return request && !alarms->is_stopped &&
           request->count < scan_queue_room(&agent->scan_queue, alarm->asker) &&
           alarms_are_allowed(alarms, alarm->asker) &&
           request_add(request, id, alarms_begin_of(alarm), alarm->why);
}

static bool alarms_are_double(const struct alarms *alarms, const struct alarm *alarm,
                              struct trace_id id)
{
    const struct request *request = alarms->collected;

    while (request && !request_has(request, id))
        request = request->next;
    return request || collected_has(alarms->agent->collected, id, alarm->monotonic_ns) ||
           scan_queue_has(&alarms->agent->scan_queue, id);
}

static void alarms_take(void *context, const struct alarm *alarm)
{
    struct alarms *alarms = context;
    const struct trace_id id = {alarm->trace_id_high, alarm->trace_id};
    struct asker nobody = {.alarms = 0}, *asker = alarm->asker ? alarm->asker : &nobody;

    alarms->has_read = true;
    asker->held_back += alarm->dropped;
    alarms->polled.held_back += alarm->dropped;
    if (!id.high && !id.low)
        return;
    asker->alarms++;
    alarms->polled.alarms++;
    (void)snprintf(asker->why, sizeof(asker->why), "%s", alarm->why);
    if (alarms_are_double(alarms, alarm, id)) {
        asker->doubles++;
        alarms->polled.doubles++;
    } else if (!alarms_collect(alarms, alarm, id)) {
        asker->dropped++;
        alarms->polled.dropped++;
    }
}

/* Adds the counts of this poll to the totals, when the list of read alarms is made. The state file
 * has the counts and the list of one moment. */
static void alarms_count_polled(struct alarms *alarms)
{
    struct agent_totals *totals = &alarms->agent->totals;

    totals->alarms += alarms->polled.alarms;
    totals->alarms_held_back += alarms->polled.held_back;
    totals->alarms_double += alarms->polled.doubles;
    totals->alarms_dropped += alarms->polled.dropped;
    memset(&alarms->polled, 0, sizeof(alarms->polled));
}

static void alarms_say_lost(struct alarms *alarms, uint64_t lost)
{
    alarms->agent->totals.alarms_lost += lost;
    if (clock_ms() - alarms->lost_said_ms < SAID_AGAIN_MS && alarms->lost_said_ms)
        return;
    alarms->lost_said_ms = clock_ms();
    say(BK4020,
        "%" PRIu64 " alarms were overwritten before they were read: too many spans are slow; "
        "raise the limits of the rules, or lower their max=",
        lost);
}

static void alarms_say_newer(struct alarms *alarms, uint64_t newer)
{
    if (alarms->agent->totals.alarms_newer == 0)
        say(BK4025,
            "a program of this host records alarms of a newer version, which are only counted: "
            "upgrade blkin here");
    alarms->agent->totals.alarms_newer += newer;
}

static void alarms_ask(struct alarms *alarms)
{
    struct request *request;

    while ((request = alarms->collected) != NULL) {
        alarms->collected = request->next;
        request->next = NULL;
        if (request->count)
            wants_send_for_alarms(alarms->agent->wants, request);
        else
            requests_free(request);
    }
}

static void alarms_look(struct alarms *alarms)
{
    const struct watcher_counts counts = watcher_look(&alarms->watcher);
    struct agent *agent = alarms->agent;

    if (counts.lost)
        alarms_say_lost(alarms, counts.lost);
    if (counts.newer)
        alarms_say_newer(alarms, counts.newer);
    alarms_ask(alarms);
    if (alarms->has_read || counts.lost) {
        alarms_count_polled(alarms);
        json_decref(agent->alarms_seen);
        agent->alarms_seen = alarms_seen_json(&alarms->alarms_seen);
    }
    if (alarms->has_read || counts.lost || counts.newer) {
        agent_save(agent);
        agent_step(agent);
    }
    alarms->has_read = false;
}

static void alarms_poll(void *context)
{
    struct alarms *alarms = context;

    alarms_look(alarms);
    timer_set(alarms->agent->loop, &alarms->poll,
              config_integer(alarms->agent->config, "alarm-poll-ms"));
}

/* ---- begin and end --------------------------------------------------------------------------- */

struct alarms *alarms_new(struct agent *agent)
{
    struct alarms *alarms = calloc(1, sizeof(*alarms));

    if (!alarms)
        return NULL;
    alarms->agent = agent;
    alarms_seen_read(&alarms->alarms_seen, agent->alarms_seen);
    alarms->watcher = (struct watcher){
        .alarms_seen = &alarms->alarms_seen, .alarm = alarms_take, .context = alarms};
    alarms->poll = (struct timer){.due = alarms_poll, .context = alarms};
    return alarms;
}

void alarms_free(struct alarms *alarms)
{
    if (!alarms)
        return;
    requests_free(alarms->collected);
    free(alarms);
}

void alarms_add_memory(struct alarms *alarms, struct held *held)
{
    char name[PAYER_NAME_MAX];

    payer_set_user(name, held->payer);
    held->is_watched = watcher_add(&alarms->watcher, &held->memory, held->user,
                                   askers_get(&alarms->agent->askers, name));
}

void alarms_watch_again(struct alarms *alarms, struct held *first)
{
    for (struct held *held = first; held; held = held->next) {
        if (!held->is_watched)
            alarms_add_memory(alarms, held);
    }
}

void alarms_drop_memory(struct alarms *alarms, struct held *held)
{
    if (!held->is_watched)
        alarms_add_memory(alarms, held);
    if (!alarms->is_stopped)
        alarms_look(alarms);
    watcher_drop(&alarms->watcher, &held->memory);
}

/* Takes the alarm with the current time: the span may have ended long ago, but an earlier fetch has
 * only the spans that had arrived by then. */
void alarms_note_otlp(struct alarms *alarms, const struct otlp_alarm *otlp)
{
    struct alarm alarm = {.trace_id_high = otlp->trace_id_high,
                          .trace_id = otlp->trace_id,
                          .duration_ns = otlp->duration_ns,
                          .monotonic_ns = (uint64_t)clock_ns(),
                          .asker = otlp->sender ? askers_get(&alarms->agent->askers, otlp->sender)
                                                : NULL,
                          .dropped = otlp->dropped};

    watcher_set_text(alarm.why, sizeof(alarm.why), otlp->why);
    alarms_take(alarms, &alarm);
    if (alarms->is_stopped) /* the agent ends and requests no more traces */
        alarms_count_polled(alarms);
}

void alarms_start(struct alarms *alarms)
{
    alarms_poll(alarms);
}

void alarms_stop(struct alarms *alarms)
{
    timer_clear(alarms->agent->loop, &alarms->poll);
    alarms_look(alarms);
    alarms->is_stopped = true;
}
