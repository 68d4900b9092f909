/*
 * The end of sessions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ending.h"

#include "tools/base/say.h"
#include "tools/lttng/session.h"

#include <string.h>

#define LIMIT_MS 60000

/* Waits for what the buffers hold, as long as it is allowed to. */
static bool ending_run(const void *argument, void *result)
{
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(argument, &places, error);

    for (size_t i = 0; i < places.count && is_well; i++)
        is_well = session_destroy(places.places[i].name, true, error);
    return is_well || !places.has_daemon;
}

static bool ending_run_at_once(const void *argument, void *result)
{
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(argument, &places, error);

    for (size_t i = 0; i < places.count; i++)
        is_well &= session_destroy(places.places[i].name, false, error);
    return is_well;
}

const struct job ending_job = {
    .name = "rotate-end", .fill = ending_run, .result_size = sizeof(struct error)};
const struct job ending_at_once_job = {
    .name = "rotate-end-now", .fill = ending_run_at_once, .result_size = sizeof(struct error)};

static void ending_begin(struct ending *ending, const struct job *job,
                         void (*done)(void *context, const void *result))
{
    ending->task.done = done;
    ending->task.context = ending;
    if (!task_start(ending->loop, &ending->task, job, ending->output, strlen(ending->output) + 1,
                    LIMIT_MS))
        done(ending, NULL);
}

static void ending_ended_at_once(void *context, const void *result)
{
    struct ending *ending = context;

    ending->has_ended = true;
    if (!result) {
        say(BK3046, "the session could not be ended");
        ending->has_failed = true;
    }
}

static void ending_ended(void *context, const void *result)
{
    struct ending *ending = context;

    ending->has_ended = result != NULL;
    if (!result) {
        say(BK3047, "the session does not end: it is ended without what its buffers hold");
        ending_begin(ending, &ending_at_once_job, ending_ended_at_once);
    }
}

void ending_start(struct ending *ending)
{
    ending_begin(ending, &ending_job, ending_ended);
}
