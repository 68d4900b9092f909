/*
 * The sessions of the agent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sessions.h"

#include <stdio.h>
#include <string.h>

#define LOOK_MS    5000
#define MISSING_MS 500
#define LIMIT_MS   15000

/* ---- in the task ----------------------------------------------------------------------------- */

/* Returns whether the session records. */
static bool ensure(const struct session_spec *spec, bool is_ring, struct sessions_report *report,
                   bool *is_new)
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

static bool sessions_look_at(const void *argument, void *result)
{
    const struct sessions *sessions = argument;
    struct sessions_report *report = result;
    struct error ignored;

    report->state = RECORDS;
    for (int i = 0; i < SESSIONS; i++) {
        if (!sessions->specs[i].events[0])
            continue;
        if (sessions->is_anew[i])
            (void)session_destroy(sessions->specs[i].name, false, &ignored);
        if (!ensure(&sessions->specs[i], i == SESSION_RING, report, &report->is_new[i]))
            break;
    }
    return true;
}

const struct job sessions_job = {.name = "record-sessions",
                                 .fill = sessions_look_at,
                                 .result_size = sizeof(struct sessions_report),
                                 .stays = true};

static bool sessions_end(const void *argument, void *result)
{
    const struct sessions *sessions = argument;
    struct sessions_end *end = result;
    struct session_state state;

    for (int i = 0; i < SESSIONS; i++) {
        const char *name = sessions->specs[i].name;
        struct error error;

        if (session_look(name, &state, &error) &&
            (!state.is_there || session_destroy(name, false, &error)))
            continue;
        end->error = error;
        end->has_failed |= state.has_daemon;
    }
    return true;
}

const struct job sessions_end_job = {
    .name = "record-end", .fill = sessions_end, .result_size = sizeof(struct sessions_end)};

/* ---- in the agent ---------------------------------------------------------------------------- */

static void start(struct sessions *sessions);

static void looked(void *context, const void *result)
{
    struct sessions *sessions = context;
    const struct sessions_report *report = result;
    const bool is_wanted = sessions->is_wanted;

    sessions->is_looking = sessions->is_wanted = false;
    if (sessions->is_stopped)
        return;
    timer_set(sessions->loop, &sessions->timer,
              is_wanted                            ? 0
              : report && report->state == RECORDS ? LOOK_MS
                                                   : MISSING_MS);
    sessions->looked(sessions->context, report);
}

static void start(struct sessions *sessions)
{
    sessions->task.done = looked;
    sessions->task.context = sessions;
    sessions->is_looking = task_start(sessions->loop, &sessions->task, &sessions_job, sessions,
                                      sizeof(*sessions), LIMIT_MS);
    if (!sessions->is_looking) {
        timer_set(sessions->loop, &sessions->timer, MISSING_MS);
        return;
    }
    for (int i = 0; i < SESSIONS; i++)
        sessions->is_anew[i] = false;
}

static void due(void *context)
{
    struct sessions *sessions = context;

    if (!sessions->is_looking)
        start(sessions);
}

void sessions_start(struct sessions *sessions)
{
    sessions->timer = (struct timer){.due = due, .context = sessions};
    start(sessions);
}

void sessions_stop(struct sessions *sessions)
{
    sessions->is_stopped = true;
    timer_clear(sessions->loop, &sessions->timer);
}

void sessions_look(struct sessions *sessions)
{
    if (sessions->is_looking)
        sessions->is_wanted = true;
    else if (!sessions->is_stopped)
        timer_set(sessions->loop, &sessions->timer, 0);
}

void sessions_make_anew(struct sessions *sessions, enum session_which which)
{
    sessions->is_anew[which] = true;
    sessions_look(sessions);
}
