/*
 * Usage: the resources that a thread has used while it worked for a span, as tags of the span: CPU
 * time, time off the CPU, switches, faults, the wait for a CPU.
 *
 * The meters of a thread only count up. A span's usage is the difference of two readings on one
 * thread, or a sum of differences. Nothing is charged twice: the thread keeps the sum of all
 * charges, and a reading is the meter minus that sum ("free"). So a span's usage excludes the spans
 * within it.
 *
 * Usage is usually off (level 0). Then the only cost is a test in blkin_set_current(): a begin
 * learns of a level because the periodic work is then always due, and an end by the span's state.
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

/* Reads the meters for a span that has its ids. Returns the time of the reading, which is the
 * span's start. 0: the span has no usage and must not get SPAN_CHARGED. */
uint64_t blkin_usage_begin(struct blkin_span *span);

/* Ends the usage of a span with SPAN_CHARGED, on any thread. is_now: the span ends at this moment.
 * No tags: the usage is not known. */
void blkin_usage_end(struct blkin_span *span, uint64_t now_ns, bool is_now,
                     struct blkin_usage_tags *tags);

/* A root that is not sampled begins: the thread works for something unknown. */
void blkin_usage_turn_to_unknown(void);

/* Makes this span, or none, the thread's current one. Returns `before`. */
struct blkin_span *blkin_usage_switch(struct blkin_span *span, struct blkin_span *before);

/* Allocates the thread's state at its first record. */
void blkin_usage_thread_begin(void);

/* In a child of fork(2), while it has one thread. */
void blkin_usage_after_fork(void);

#endif
