/*
 * Usage: what a span's thread has used while it worked for it, as tags of the span: CPU time, time
 * off the CPU, switches, faults, the wait for a CPU.
 *
 * A thread's meters only ever go up. What a span has used is the difference between two readings of
 * them on one thread, or the sum of several; and no part of it is charged twice: the thread keeps
 * the sum of what it has charged, and a reading is the meter without that ("free"). So a span's own
 * usage is without that of the spans within it, and nothing has to be known of those at its end.
 *
 * The level is 0 as a rule. Then there is nothing to do but one test in blkin_set_current(): a
 * span's begin finds out by way of the chores, which are always due while there is a level, and its
 * end by the span's state.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_USAGE_H
#define BLKIN_USAGE_H

#include "libblkin/base/chores.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct blkin_span;

/* The tags, as records of a log. */
struct blkin_usage_tags {
    size_t length;
    char text[240];
};

/* The size of the first one, of the least of a tag. */
size_t blkin_usage_tag_size(const char *tag);

/*
 * A span that has its ids begins: reads the meters, and returns the time to which they belong, its
 * start; or 0: it has no usage, and must not get SPAN_CHARGED.
 */
uint64_t blkin_usage_begin(struct blkin_span *span);

/*
 * A span with SPAN_CHARGED ends now (or did so at another time: is_now is false), on whichever
 * thread. No tags: it is not known what it has used.
 */
void blkin_usage_end(struct blkin_span *span, uint64_t now_ns, bool is_now,
                     struct blkin_usage_tags *tags);

/* A root that is not sampled begins: the thread turns to something that is not seen. */
void blkin_usage_turn_away(void);

/* This span, or none, is the thread's current one from now on. Returns `before`, for the caller. */
struct blkin_span *blkin_usage_switch(struct blkin_span *span, struct blkin_span *before);

/* Makes room for what is kept of a thread, as its first record does. */
void blkin_usage_thread_begin(void);

/* In a child of fork(2), while it has one thread. */
void blkin_usage_after_fork(void);

#endif
