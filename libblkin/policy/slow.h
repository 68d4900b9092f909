/*
 * Alarms: blkin:slow for spans that match a rule or that the program wants to keep, within a cap.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SLOW_H
#define BLKIN_SLOW_H

#include "policy.h"
#include "tracepoints/format/events.h"

#include <stdbool.h>
#include <stdint.h>

extern __attribute__((visibility("hidden"))) uint64_t blkin_slow_least_ns;

/* Returns false if the span matches no rule of duration. A fast span costs only this test. */
static inline bool blkin_may_be_slow(uint64_t duration_ns)
{
    return duration_ns >= __atomic_load_n(&blkin_slow_least_ns, __ATOMIC_RELAXED);
}

/* Returns true if a session or the agent records alarms. */
bool blkin_slow_is_on(void);

/* Checks a span that was just recorded. The event has its ids, duration and end. Returns true if a
 * rule matches: the function records the alarm, or the cap suppresses the alarm and the function
 * counts it. */
bool blkin_slow_check(struct blkin_slow_event *event, const char *name, const char *service,
                      bool has_failed);

/* Records or counts the alarm of a span that the program wants to keep. */
void blkin_slow_keep(struct blkin_slow_event *event, const char *why, const char *name,
                     const char *service);

/* Reads BLKIN_SLOW and the rules' file. Called once, before the first span. */
void blkin_slow_init(void);

/* Called once a second. Reads the file if it has changed, and reports suppressed alarms. */
void blkin_slow_refresh(void);

/* The sources of the rules: see policy.h. */
extern __attribute__((visibility("hidden"))) struct blkin_policy_source blkin_slow_source;

/* Called in a child of fork(2), while it has one thread. */
void blkin_slow_after_fork(void);

#endif
