/*
 * How far a trace's clock is from the wall clock.
 *
 * LTTng stamps events with CLOCK_MONOTONIC plus an offset that it measures once, when the session
 * is created. The two clocks are slewed alike, but what sets the wall clock (a step of NTP's, an
 * administrator, a leap second) or stops the monotonic one (suspend) leaves the stamps behind for
 * as long as the session lives: by then the spans of two hosts no longer fit together.
 *
 * blkin:process tells the wall clock about once a second and process. It is read a little before
 * LTTng takes the stamp, and much before if the thread is interrupted in between: an error that
 * only ever makes the offset look smaller. So what a process says is the largest of its last
 * CLOCK_SAMPLES: exact within some microseconds, at once after a step forward, CLOCK_SAMPLES later
 * after a step back.
 *
 * An offset that is there from the first event on is no step: babeltrace2's --clock-offset moves a
 * trace on purpose, and a correction that begins when enough samples are there would move a part of
 * the spans back. It is left alone, unless the trace's own offset proves right later.
 *
 * One process may be wrong (under faketime) where the host is not, so the processes of a host vote:
 * those heard of in the last CLOCK_MEMORY_NS, CLOCK_VOICES at most. The most say what is believed;
 * where as many say one thing as another, what moves the spans less. Between two steps the true
 * offset does not change, and is a few microseconds at first; what moves by less than
 * CLOCK_NOISE_NS is taken for noise, so that a clock that nobody has set corrects nothing, and two
 * spans of one request are not moved against each other.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_CLOCK_H
#define BLKIN_CORE_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

#define CLOCK_SAMPLES   4
#define CLOCK_VOICES    8
#define CLOCK_NOISE_NS  INT64_C(1000000)
#define CLOCK_MEMORY_NS INT64_C(10000000000)

struct clock_sample {
    int64_t time_ns; /* trace time */
    int64_t offset_ns;
};

/*
 * What one process says. With fewer samples than there is room for, it cannot make the offset
 * smaller: one alone may be much too small, never much too large.
 */
struct clock_voice {
    struct clock_sample samples[CLOCK_SAMPLES];
    uint64_t process; /* origin_process() */
    int64_t last_ns;  /* trace time */
    unsigned count;   /* of samples, up to one more than there is room for. 0: nobody's */
    unsigned next;
};

/* All zero: no correction. */
struct clock {
    struct clock_voice voices[CLOCK_VOICES];
    bool is_settled;          /* base_ns has been found */
    int64_t base_ns;          /* that was there from the first event on: no correction */
    int64_t offset_ns;        /* of what starts at since_ns and later */
    int64_t since_ns;         /* trace time */
    int64_t before_offset_ns; /* of what started earlier: requests under way at a step stay whole */
};

/*
 * The process says that the wall clock showed realtime_ns at trace time time_ns. Returns whether
 * the offset has changed; nonsense changes nothing.
 */
bool clock_note(struct clock *clock, uint64_t process, int64_t time_ns, uint64_t realtime_ns);

/* What to add to the times of a span that starts at start_ns, trace time. */
static inline int64_t clock_offset(const struct clock *clock, int64_t start_ns)
{
    return start_ns >= clock->since_ns ? clock->offset_ns : clock->before_offset_ns;
}

#endif
