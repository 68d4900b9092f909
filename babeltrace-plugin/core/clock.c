/*
 * Filtering of what the process events tell of the wall clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"

static const struct clock_sample *largest(const struct clock *clock)
{
    const struct clock_sample *most = &clock->samples[0];

    for (unsigned i = 1; i < CLOCK_SAMPLES; i++) {
        if (clock->samples[i].offset_ns > most->offset_ns)
            most = &clock->samples[i];
    }
    return most;
}

/* When the last CLOCK_SAMPLES began: a step back is as old as these. */
static int64_t oldest_ns(const struct clock *clock)
{
    return clock->samples[clock->next].time_ns;
}

static bool is_step(int64_t from_ns, int64_t to_ns)
{
    int64_t difference;

    return __builtin_sub_overflow(to_ns, from_ns, &difference) || difference >= CLOCK_STEP_NS ||
           difference <= -CLOCK_STEP_NS;
}

bool clock_note(struct clock *clock, int64_t time_ns, uint64_t realtime_ns)
{
    const struct clock_sample *most;

    if (time_ns < 0 || realtime_ns == 0 || realtime_ns > INT64_MAX)
        return false;
    clock->samples[clock->next] =
        (struct clock_sample){.time_ns = time_ns, .offset_ns = (int64_t)realtime_ns - time_ns};
    clock->next = (clock->next + 1) % CLOCK_SAMPLES;
    if (clock->count <= CLOCK_SAMPLES)
        clock->count++;

    most = largest(clock);
    if (!is_step(clock->offset_ns, most->offset_ns))
        return false;
    clock->since_ns = most->offset_ns > clock->offset_ns ? most->time_ns : oldest_ns(clock);
    clock->before_offset_ns = clock->count <= CLOCK_SAMPLES ? most->offset_ns : clock->offset_ns;
    clock->offset_ns = most->offset_ns;
    return true;
}
