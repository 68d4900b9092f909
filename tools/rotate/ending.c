/*
 * The end of sessions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ending.h"

#include "tools/base/say.h"
#include "tools/lttng/session.h"

#include <stdio.h>

#define LIMIT_MS 60000

struct order {
    char output[4096];
    bool waits; /* for what the buffers hold, as long as it is allowed to */
};

static bool ending_run(const void *argument, void *result)
{
    const struct order *order = argument;
    struct session_places places;
    struct error *error = result;
    bool is_well = session_below(order->output, &places, error);

    for (size_t i = 0; i < places.count && (is_well || !order->waits); i++)
        is_well = session_destroy(places.places[i].name, order->waits, error) && is_well;
    return is_well || (order->waits && !places.has_daemon);
}

const struct job ending_job = {
    .name = "rotate-end", .fill = ending_run, .result_size = sizeof(struct error)};

static void ending_begin(struct ending *ending, bool waits);

static void ending_ended(void *context, const void *result)
{
    struct ending *ending = context;

    if (!result && ending->waits) {
        say(BK3047, "the session does not end: it is ended without the events in its buffers");
        ending_begin(ending, false);
        return;
    }
    ending->has_ended = true;
    if (!result) {
        say(BK3046, "the session could not be ended");
        ending->has_failed = true;
    }
}

static void ending_begin(struct ending *ending, bool waits)
{
    struct order order = {.waits = waits};

    (void)snprintf(order.output, sizeof(order.output), "%s", ending->output);
    ending->waits = waits;
    ending->task.done = ending_ended;
    ending->task.context = ending;
    if (!task_start(ending->loop, &ending->task, &ending_job, &order, sizeof(order), LIMIT_MS))
        ending_ended(ending, NULL);
}

void ending_start(struct ending *ending)
{
    ending_begin(ending, true);
}
