/*
 * The alarm: blkin:slow for spans that a rule fits, and for those that the program wants to be
 * kept, within a cap.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SLOW_H
#define BLKIN_SLOW_H

#include "tracepoints/format/events.h"

#include <stdbool.h>
#include <stdint.h>

extern __attribute__((visibility("hidden"))) uint64_t blkin_slow_least_ns;

/* False: no rule of duration fits that. All that a span costs that is not slow. */
static inline bool blkin_may_be_slow(uint64_t duration_ns)
{
    return duration_ns >= __atomic_load_n(&blkin_slow_least_ns, __ATOMIC_RELAXED);
}

/* Does anybody want to know? */
bool blkin_slow_is_on(void);

/*
 * Of a span that has been recorded just now: the event has its ids, duration and monotonic. Returns
 * true if a rule fits; then it is recorded, or held back by the cap and counted.
 */
bool blkin_slow_check(struct blkin_slow_event *event, const char *name, const char *service,
                      bool has_failed);

/* The same of one that the program wants to be kept. */
void blkin_slow_keep(struct blkin_slow_event *event, const char *why, const char *name,
                     const char *service);

/* Reads BLKIN_SLOW and finds the rules' file. Once, before the first span. */
void blkin_slow_init(void);

/* Each second: takes the file over if it has changed, and tells what is held back. */
void blkin_slow_refresh(void);

/* Takes over the host's rules, unless the program has rules of its own. Called with all chores. */
void blkin_slow_offer(const char *text);

/* In a child of fork(2), while it has one thread. */
void blkin_slow_after_fork(void);

#endif
