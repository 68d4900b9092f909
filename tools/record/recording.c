/*
 * The sessions of the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "recording.h"

#include "tools/base/notify.h"
#include "tools/base/say.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LOOK_MS       5000
#define MISSING_MS    500
#define LIMIT_MS      15000
#define END_LIMIT_MS  30000
#define ALARM_SUBBUF  16384 /* bytes */
#define ALARM_SUBBUFS 8     /* per CPU and user: an alarm outlives as many polls */
#define HOST_SUBBUFS  32    /* 17 s at 10 Hz, on one CPU; minutes at the default */
#define RING_SUBBUF   (1 << 20)
#define SUBBUFS_LEAST 64

/* An order for the tasks. */
struct recording_order {
    struct session_spec specs[SESSIONS]; /* one without events is not made */
    bool is_anew[SESSIONS];              /* to be destroyed first */
};

struct recording {
    struct agent *agent;
    struct recording_callbacks on;
    struct recording_order order;
    struct recording_report last;
    struct task task, end_task;
    struct timer timer;
    bool is_looking, is_wanted, is_stopped;
    bool has_looked;
    bool has_recorded; /* since the start, a ring was there */
    bool is_remaking;  /* the ring, by our order */
};

/* ---- the ring's size ------------------------------------------------------------------------- */

uint64_t recording_cpus(void)
{
    const long count = sysconf(_SC_NPROCESSORS_CONF);

    return count > 0 ? (uint64_t)count : 1;
}

/* The largest power of two that is not above: LTTng wants one. */
static uint64_t recording_power_of_two(uint64_t value)
{
    uint64_t power = 1;

    while (power <= value / 2)
        power *= 2;
    return power;
}

uint64_t recording_ring_size_max(const struct agent *agent)
{
    const uint64_t bytes = (uint64_t)config_integer(agent->config, "memory-bytes");
    const uint64_t count = recording_power_of_two(bytes / RING_SUBBUF / recording_cpus());

    return count > SUBBUFS_LEAST ? count : SUBBUFS_LEAST;
}

/* With seconds= it begins small, and remembers over restarts how large it has grown. */
uint64_t recording_ring_size(const struct agent *agent)
{
    const uint64_t most = recording_ring_size_max(agent), known = agent->totals.subbuf_count;

    if (config_integer(agent->config, "seconds") == 0)
        return most;
    return known < SUBBUFS_LEAST ? SUBBUFS_LEAST : known < most ? known : most;
}

/* ---- in the task ----------------------------------------------------------------------------- */

/* Returns whether the session records. */
static bool recording_ensure(const struct session_spec *spec, bool is_ring,
                             struct recording_report *report, bool *is_new)
{
    struct session_state state;
    struct session_answer answer;

    if (session_look(spec->name, &state, &report->error) && state.is_there && !state.has_consumer) {
        /* none can be made either: wait for a new session daemon */
        report->state = RECORDS_NO_CONSUMER;
        error_set(&report->error,
                  "LTTng's consumer daemon has died, and nothing is recorded until the session "
                  "daemon is started anew: restart lttng-sessiond");
        return false;
    }
    if (is_ring) {
        report->discarded_events = state.discarded_events;
        report->lost_packets = state.lost_packets;
    }
    if (state.is_there && state.is_active)
        return true;
    session_ensure(spec, &answer);
    *is_new = answer.result == SESSION_CREATED;
    if (answer.result <= SESSION_ADOPTED)
        return true;
    report->state = answer.result == SESSION_NO_DAEMON ? RECORDS_NO_DAEMON : RECORDS_FAILED;
    report->error = answer.error;
    return false;
}

static bool recording_run_look(const void *bytes, void *result)
{
    const struct recording_order *order = bytes;
    struct recording_report *report = result;
    struct error ignored;

    report->state = RECORDS;
    for (int i = 0; i < SESSIONS; i++) {
        if (!order->specs[i].events[0])
            continue;
        if (order->is_anew[i])
            (void)session_destroy(order->specs[i].name, false, &ignored);
        if (!recording_ensure(&order->specs[i], i == SESSION_RING, report, &report->is_new[i]))
            break;
    }
    return true;
}

const struct job recording_look_job = {.name = "record-sessions",
                                       .fill = recording_run_look,
                                       .result_size = sizeof(struct recording_report),
                                       .stays = true};

struct recording_end {
    bool has_failed;
    struct error error; /* "": none */
};

/* All are destroyed. Without a session daemon there are none; as one may be there that we may not
 * talk to, the error tells that, too. */
static bool recording_run_end(const void *bytes, void *result)
{
    const struct recording_order *order = bytes;
    struct recording_end *end = result;
    struct session_state state;

    for (int i = 0; i < SESSIONS; i++) {
        const char *name = order->specs[i].name;
        struct error error;

        if (session_look(name, &state, &error) &&
            (!state.is_there || session_destroy(name, false, &error)))
            continue;
        end->error = error;
        end->has_failed |= state.has_daemon;
    }
    return true;
}

const struct job recording_end_job = {
    .name = "record-end", .fill = recording_run_end, .result_size = sizeof(struct recording_end)};

/* ---- what LTTng tells ------------------------------------------------------------------------ */

static void recording_say_new(struct recording *recording, const struct recording_report *report)
{
    struct agent *agent = recording->agent;

    if (report->is_new[SESSION_RING]) {
        agent->totals.sessions++;
        if (recording->has_recorded && !recording->is_remaking) {
            agent->totals.rings_lost++;
            say(BK4010,
                "LTTng has lost the recorder's session, with what was in its memory: it is made "
                "anew");
        }
        recording->is_remaking = false;
        recording->on.ring_is_new(recording->on.context);
    }
    if (report->is_new[SESSION_ALARM])
        agent->totals.alarm_sessions++;
    if (report->is_new[SESSION_RING] || report->is_new[SESSION_ALARM])
        agent_save(agent);
}

/* NULL: LTTng hangs. */
static void recording_take(struct recording *recording, const struct recording_report *report)
{
    char text[640];

    if (!report) {
        agent_say_state(recording->agent, BK4011,
                        "LTTng's session daemon does not answer: restart it if that lasts");
        return;
    }
    recording_say_new(recording, report);
    if (report->state == RECORDS) {
        (void)snprintf(text, sizeof(text), "session %s records into memory",
                       recording->order.specs[SESSION_RING].name);
        agent_say_state(recording->agent, BK4012, text);
    } else {
        agent_say_state(recording->agent, BK4013, report->error.text);
    }
    if (!recording->has_looked) /* also when it only runs, and waits: systemd need not */
        notify("READY=1");
    recording->last = *report;
    recording->has_looked = true;
    recording->has_recorded |= report->state == RECORDS;
    agent_step(recording->agent);
}

static void recording_looked(void *context, const void *result)
{
    struct recording *recording = context;
    const struct recording_report *report = result;
    const bool is_wanted = recording->is_wanted;

    recording->is_looking = recording->is_wanted = false;
    if (recording->is_stopped)
        return;
    timer_set(recording->agent->loop, &recording->timer,
              is_wanted                            ? 0
              : report && report->state == RECORDS ? LOOK_MS
                                                   : MISSING_MS);
    recording_take(recording, report);
}

static void recording_due(void *context)
{
    struct recording *recording = context;

    if (recording->is_looking)
        return;
    recording->task.done = recording_looked;
    recording->task.context = recording;
    recording->is_looking =
        task_start(recording->agent->loop, &recording->task, &recording_look_job, &recording->order,
                   sizeof(recording->order), LIMIT_MS);
    if (recording->is_looking)
        memset(recording->order.is_anew, 0, sizeof(recording->order.is_anew));
    else
        timer_set(recording->agent->loop, &recording->timer, MISSING_MS);
}

const struct recording_report *recording_report(const struct recording *recording)
{
    return recording->has_looked ? &recording->last : NULL;
}

bool recording_is_on(const struct recording *recording)
{
    return recording->has_looked && recording->last.state == RECORDS;
}

/* ---- the sessions ---------------------------------------------------------------------------- */

void recording_configure(struct recording *recording)
{
    const struct config *config = recording->agent->config;
    struct session_spec *ring = &recording->order.specs[SESSION_RING];
    struct session_spec *alarm = &recording->order.specs[SESSION_ALARM];
    struct session_spec *host = &recording->order.specs[SESSION_HOST];
    const char *name = config_text(config, "record-session");

    *ring = (struct session_spec){.mode = SESSION_SNAPSHOT,
                                  .subbuf_bytes = RING_SUBBUF,
                                  .subbuf_count = recording_ring_size(recording->agent)};
    *alarm = (struct session_spec){
        .mode = SESSION_SNAPSHOT, .subbuf_bytes = ALARM_SUBBUF, .subbuf_count = ALARM_SUBBUFS};
    (void)snprintf(ring->name, sizeof(ring->name), "%s", name);
    session_set_events(ring, config_text(config, "events"), false);
    (void)snprintf(ring->filter, sizeof(ring->filter), "%s", config_text(config, "filter"));
    *host = (struct session_spec){
        .mode = SESSION_SNAPSHOT, .subbuf_bytes = ALARM_SUBBUF, .subbuf_count = HOST_SUBBUFS};
    (void)snprintf(alarm->name, sizeof(alarm->name), "%.240s-alarm", name);
    (void)snprintf(alarm->events, sizeof(alarm->events), "blkin:slow");
    (void)snprintf(host->name, sizeof(host->name), "%.240s-host", name);
    if (config_boolean(config, "host"))
        session_set_events(host, "", true);
}

struct recording *recording_new(struct agent *agent, const struct recording_callbacks *callbacks)
{
    struct recording *recording = calloc(1, sizeof(*recording));

    if (!recording)
        return NULL;
    recording->agent = agent;
    recording->on = *callbacks;
    recording->timer = (struct timer){.due = recording_due, .context = recording};
    recording_configure(recording);
    return recording;
}

void recording_free(struct recording *recording)
{
    free(recording);
}

void recording_start(struct recording *recording)
{
    recording_due(recording);
}

void recording_stop(struct recording *recording)
{
    recording->is_stopped = true;
    timer_clear(recording->agent->loop, &recording->timer);
}

void recording_only_end(struct recording *recording)
{
    recording->has_looked = true;
    recording_stop(recording);
}

void recording_look(struct recording *recording)
{
    if (recording->is_looking)
        recording->is_wanted = true;
    else if (!recording->is_stopped)
        timer_set(recording->agent->loop, &recording->timer, 0);
}

void recording_make_anew(struct recording *recording, enum session_which which)
{
    if (which == SESSION_RING) {
        recording->order.specs[which].subbuf_count = recording_ring_size(recording->agent);
        recording->is_remaking = true;
    }
    recording->order.is_anew[which] = true;
    recording_look(recording);
}

const struct session_spec *recording_session(const struct recording *recording,
                                             enum session_which which)
{
    return &recording->order.specs[which];
}

/* ---- the end --------------------------------------------------------------------------------- */

static void recording_ended(void *context, const void *result)
{
    struct recording *recording = context;
    const struct recording_end *end = result;
    const bool has_failed = !end || end->has_failed;

    if (has_failed)
        say(BK4014, "the sessions could not be ended: %s",
            end ? end->error.text : "LTTng's session daemon does not answer");
    else if (end->error.text[0])
        say(BK4015, "no session is ended: %s", end->error.text);
    recording->on.ended(recording->on.context, has_failed);
}

void recording_end(struct recording *recording)
{
    recording->end_task.done = recording_ended;
    recording->end_task.context = recording;
    if (!task_start(recording->agent->loop, &recording->end_task, &recording_end_job,
                    &recording->order, sizeof(recording->order), END_LIMIT_MS))
        recording_ended(recording, NULL);
}
