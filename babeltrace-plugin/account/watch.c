/*
 * Watches a live session.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "watch.h"

#include <inttypes.h>
#include <stdio.h>

void watch_begin(struct watch *watch, int64_t now_ms)
{
    *watch = (struct watch){.since_ms = now_ms};
}

static const char *watch_reason(const struct watch *watch, const struct input_counts *input,
                                bool is_stuck)
{
    if (is_stuck)
        return "the relay daemon does not answer, or the queue is full and on-full is \"block\"";
    if (input->streams_open)
        return "LTTng's session or consumer daemon hangs, or a program was killed while it "
               "recorded; events may be lost";
    if (watch->had_streams)
        return "the session has ended, or its daemons are gone; waiting for another one of its "
               "name";
    return "there is no session of this name, or no program has recorded in it yet (babeltrace2 "
           "-i lttng-live net://HOST lists the sessions)";
}

bool watch_look(struct watch *watch, const struct input_counts *input, bool is_stuck,
                int64_t now_ms, char message[WATCH_MESSAGE_MAX])
{
    const int64_t still_s = (now_ms - watch->since_ms) / 1000;

    watch->had_streams |= input->streams_open != 0;
    if (input->trace_time_ns != watch->trace_time_ns) {
        const bool was_still = watch->is_still;

        watch->trace_time_ns = input->trace_time_ns;
        watch->since_ms = now_ms;
        watch->is_still = false;
        if (was_still)
            (void)snprintf(message, WATCH_MESSAGE_MAX, "trace time goes on after %" PRId64 " s",
                           still_s);
        return was_still;
    }
    if (watch->is_still || now_ms - watch->since_ms < WATCH_STILL_MS)
        return false;
    watch->is_still = true;
    (void)snprintf(message, WATCH_MESSAGE_MAX, "trace time stands still for %" PRId64 " s: %s",
                   still_s, watch_reason(watch, input, is_stuck));
    return true;
}
