/*
 * Usage: the resources that a thread has used while it worked for a span, as tags of the span: CPU
 * time, time off the CPU, switches, faults, the wait for a CPU.
 *
 * The meters of a thread only count up. A span's usage is the difference of two readings on one
 * thread, or the sum of several differences. Each amount is charged to one span only: the thread
 * stores the sum of all charges, and a "free" reading is the meter minus this sum. So a span's
 * usage excludes the spans within it.
 *
 * Usage is usually off (level 0). Then the only cost is a test in blkin_set_current(), and one for
 * a root that is not sampled. If usage is on, the periodic work is always due, so each begin takes
 * the slow path and starts the usage.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_USAGE_H
#define BLKIN_USAGE_H

#include "libblkin/base/periodic.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blkin_span;

/* The tags, as records of a log. */
struct blkin_usage_tags {
    size_t length;
    char text[240];
};

/* Returns the size of the first tag. */
size_t blkin_usage_tag_size(const char *tag);

/* Reads the meters at the begin of a span that has its ids. Returns the time of the reading, which
 * is the span's start. 0: the span has no usage and must not get SPAN_CHARGED. */
uint64_t blkin_usage_begin(struct blkin_span *span);

/* Ends the usage of a span with SPAN_CHARGED, on any thread. is_now: the span ends at this moment.
 * Sets tags; none if the usage is not known. */
void blkin_usage_end(struct blkin_span *span, uint64_t now_ns, bool is_now,
                     struct blkin_usage_tags *tags);

/* Called when a root that is not sampled begins: the thread works for something without a span. */
void blkin_usage_turn_to_unknown(void);

/* Called when the current span changes from `before` to `span`; NULL: none. Returns `before`. */
struct blkin_span *blkin_usage_switch(struct blkin_span *span, struct blkin_span *before);

/* Allocates the thread's state at its first record. */
void blkin_usage_thread_begin(void);

/* Called in a child of fork(2), while it has one thread. */
void blkin_usage_after_fork(void);

#endif
