/*
 * Sources of events: a tracing session of a host, stored once, with the state that its spans share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPANS_SOURCE_H
#define BLKIN_SPANS_SOURCE_H

#include "babeltrace-plugin/base/table.h"
#include "event.h"

#include <stdbool.h>
#include <stdint.h>

/* ---- recent losses, as intervals of trace time ----------------------------------------------- */

struct loss_interval {
    int64_t begin_ns;
    int64_t end_ns;
    uint64_t process; /* origin_process(); 0: any */
    uint64_t events;
    uint64_t packets; /* of unknown content; both 0: the size of the loss is unknown */
};

/* The last LOSSES_MAX intervals are stored. Of older intervals only the time from the first to the
 * last is known: then a sum is a lower bound. */
#define LOSSES_MAX 64

struct losses {
    int64_t last_end_ns; /* of all intervals: a span that starts later lost nothing */
    struct loss_ring *ring;
    bool has_forgotten;
    int64_t forgotten_begin_ns;
    int64_t forgotten_end_ns;
};

/* The losses during a span. */
struct loss_sum {
    uint64_t events;
    uint64_t packets;
    uint64_t process; /* 0: two or more, or not known */
    bool is_more;     /* other losses of unknown size come on top */
};

/* Returns false when out of memory: then the loss is forgotten. */
bool losses_add(struct losses *losses, const struct loss_interval *interval);

/* Sums the losses that overlap a span of the process (0: not known). Returns false if there are
 * none. */
bool losses_overlap(const struct losses *losses, int64_t start_ns, int64_t end_ns, uint64_t process,
                    struct loss_sum *sum);

/* Returns false if no loss overlaps a span that starts at start_ns: a cheap test for every span. */
static inline bool losses_may_touch(const struct losses *losses, int64_t start_ns)
{
    return start_ns <= losses->last_end_ns;
}

/* ---- clocks ---------------------------------------------------------------------------------- */

/*
 * The difference between a trace's clock and the wall clock.
 *
 * LTTng stamps events with CLOCK_MONOTONIC plus an offset, measured once when the session is
 * created. A step of the wall clock (NTP, an administrator, a leap second) or a suspend makes that
 * offset wrong for the rest of the session. Then spans of two hosts do not line up.
 *
 * The event blkin:process has the wall clock, about once a second per process. The process reads
 * the clock before LTTng takes the stamp, and long before if the thread is interrupted in between.
 * That error only makes the offset look smaller. So a process's offset is the largest of its last
 * CLOCK_SAMPLES samples. The result is exact within some microseconds: at once after a step
 * forward, CLOCK_SAMPLES samples after a step back.
 *
 * An offset that a trace has from its first event on stays: babeltrace2's --clock-offset moves a
 * trace on purpose, and a late correction would move a part of the spans back. Such an offset ends
 * only when later samples agree with the trace's own offset.
 *
 * One process may be wrong (under faketime) while the host is right, so the processes of a host
 * vote. A vote counts for CLOCK_MEMORY_NS, and CLOCK_VOICES processes vote at most. The majority
 * wins; in a tie, the correction nearer to 0 wins. Between two steps the true offset is constant. A
 * change below CLOCK_NOISE_NS is noise, so a clock that nobody has set corrects nothing.
 */
#define CLOCK_SAMPLES   4
#define CLOCK_VOICES    8
#define CLOCK_NOISE_NS  INT64_C(1000000)
#define CLOCK_MEMORY_NS INT64_C(10000000000)

struct clock_sample {
    int64_t time_ns; /* trace time */
    int64_t offset_ns;
};

/* The samples of one process. A process with fewer than CLOCK_SAMPLES samples cannot make the
 * offset smaller: a single sample may be much too small, never much too large. */
struct clock_voice {
    struct clock_sample samples[CLOCK_SAMPLES];
    uint64_t process; /* origin_process() */
    int64_t last_ns;  /* trace time */
    unsigned count;   /* the number of samples, up to CLOCK_SAMPLES + 1; 0: free */
    unsigned next;
};

/* Zeros: no correction. */
struct clock {
    struct clock_voice voices[CLOCK_VOICES];
    bool is_settled;          /* base_ns is known */
    int64_t base_ns;          /* the offset from the first event on, which is not corrected */
    int64_t offset_ns;        /* for spans that start at since_ns or later */
    int64_t since_ns;         /* trace time */
    int64_t before_offset_ns; /* for earlier spans: a request during a step stays whole */
};

/* Adds a sample: the wall clock was realtime_ns at trace time time_ns. Returns whether the offset
 * has changed. Impossible times change nothing. */
bool clock_note(struct clock *clock, uint64_t process, int64_t time_ns, uint64_t realtime_ns);

/* Returns the correction of a span that starts at start_ns (trace time). */
static inline int64_t clock_offset(const struct clock *clock, int64_t start_ns)
{
    return start_ns >= clock->since_ns ? clock->offset_ns : clock->before_offset_ns;
}

/* ---- sources --------------------------------------------------------------------------------- */

struct event_source {
    struct table_link in_table;
    struct text host;
    int64_t clock;
    uint64_t host_hash;
    bool is_overflow;
    struct losses losses; /* reported by LTTng */
    struct losses gaps;   /* gaps in sequence numbers */
    struct clock correction;
};

struct source_table;

/* Returns NULL when out of memory. */
struct source_table *source_table_new(void);
void source_table_free(struct source_table *table);

/* Returns the table's source of this origin. Sources beyond SOURCES_MAX, or without memory, share
 * one source, the overflow, which notes nothing. */
#define SOURCES_MAX 4096

struct event_source *source_get(struct source_table *table, const struct origin *origin);

#endif
