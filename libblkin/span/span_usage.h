/*
 * What a span keeps of its usage: usage/ fills it in, a span has the room for it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SPAN_USAGE_H
#define BLKIN_SPAN_USAGE_H

#include <stdbool.h>
#include <stdint.h>

/* Readings, or differences of them. */
enum blkin_usage_time { USAGE_WALL, USAGE_CPU, USAGE_RUN_DELAY, USAGE_TIMES };
enum blkin_usage_count {
    USAGE_SWITCHES,
    USAGE_PREEMPTIONS,
    USAGE_FAULTS,
    USAGE_MAJOR_FAULTS,
    USAGE_DIRTIED, /* in units of 512 bytes */
    USAGE_COUNTS
};

struct blkin_usage {
    uint64_t ns[USAGE_TIMES];
    uint32_t counts[USAGE_COUNTS];
};

/* What a span with SPAN_CHARGED has at its very end, where the log does not come. */
struct blkin_span_usage {
    struct blkin_usage amount; /* free at its begin; once it was current: charged so far */
    uintptr_t holder;    /* the thread that charges it as its current span; 0: none; 1: lost */
    uint32_t generation; /* blkin_usage_state at its begin */
    uint8_t level;       /* that all its readings had */
    bool was_current;
};

#endif
