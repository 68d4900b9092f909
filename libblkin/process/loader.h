/*
 * The table that events are recorded through: LTTng's, that of the rings, or none.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LOADER_H
#define BLKIN_LOADER_H

#include "blkin_base.h"
#include "libblkin/base/provider.h"
#include "zipkin_c.h"

/*
 * The tracepoints of the original API, by blkin_annotation_type. Never NULL: before the first need
 * they claim to be enabled, and the first record looks for the agent's rings.
 */
extern __attribute__((visibility("hidden")))
const struct blkin_tracepoint *blkin_original_tracepoints;

static inline const struct blkin_tracepoint *
blkin_original_tracepoint(const struct blkin_annotation *annotation)
{
    return &__atomic_load_n(&blkin_original_tracepoints, __ATOMIC_ACQUIRE)[annotation->type];
}

/* Also BLKIN_GATE_LOOKS. */
static inline int blkin_tracepoint_enabled(const struct blkin_tracepoint *tracepoint)
{
    return __builtin_expect(__atomic_load_n(tracepoint->enabled, __ATOMIC_RELAXED), 0);
}

/*
 * At the first need: starts clocks and policies, and asks the agent for rings, which it waits for
 * 5 ms at most, or 0.3 s at the program's start. Does nothing later. Thread-safe.
 */
void blkin_provider_load(bool is_at_start);

/* Once a second: looks for the agent's rings, or leaves them. True: an answer is awaited, call
 * again soon. */
bool blkin_provider_refresh(void);

/* From now on the agent's rings alone are used. False: there are none, and nothing has changed. */
bool blkin_provider_be_quiet(void);

/* Before chroot(2): see ring_find.h. */
void blkin_provider_before_chroot(void);

/* In a child of fork(2), while it has one thread. */
void blkin_provider_after_fork(void);

#endif
