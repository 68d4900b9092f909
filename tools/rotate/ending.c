/*
 * The end of sessions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ending.h"

#include "tools/base/say.h"
#include "tools/lttng/session.h"

#define LIMIT_MS 60000

/* Waits for what the buffers hold, as long as it is allowed to. */
static bool run(const void *argument, void *result)
{
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(argument, &places, error);

    for (size_t i = 0; i < places.count && is_well; i++)
        is_well = session_destroy(places.places[i].name, true, error);
    return is_well || !places.has_daemon;
}

static bool run_at_once(const void *argument, void *result)
{
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(argument, &places, error);

    for (size_t i = 0; i < places.count; i++)
        is_well &= session_destroy(places.places[i].name, false, error);
    return is_well;
}

static void start(struct ending *ending, task_fn *function,
                  void (*done)(void *context, const void *result))
{
    ending->task.done = done;
    ending->task.context = ending;
    if (!task_start(ending->loop, &ending->task, function, ending->output, sizeof(struct error),
                    LIMIT_MS))
        done(ending, NULL);
}

static void ended_at_once(void *context, const void *result)
{
    struct ending *ending = context;

    ending->has_ended = true;
    if (!result) {
        say(BT_LOGGING_LEVEL_ERROR, "the session could not be ended");
        ending->has_failed = true;
    }
}

static void ended(void *context, const void *result)
{
    struct ending *ending = context;

    ending->has_ended = result != NULL;
    if (!result) {
        say(BT_LOGGING_LEVEL_WARNING,
            "the session does not end: it is ended without what its buffers hold");
        start(ending, run_at_once, ended_at_once);
    }
}

void ending_start(struct ending *ending)
{
    start(ending, run, ended);
}
