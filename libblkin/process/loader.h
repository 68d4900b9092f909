/*
 * Access to the tracepoint provider, loaded at the first need.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LOADER_H
#define BLKIN_LOADER_H

#include "blkin_base.h"
#include "libblkin/base/provider.h"
#include "zipkin_c.h"

/*
 * The tracepoints of the original API, by blkin_annotation_type. Never NULL: before the provider is
 * loaded they claim to be enabled, and the first record loads it.
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
 * Loads the provider unless that was tried before; in a child of fork(2), sees to it that it
 * records. Thread-safe; takes ms when LTTng is there, and up to 1 s where its daemon runs, but is
 * slow.
 */
void blkin_provider_load(void);

/* The same where no request waits: the recorder's rings are waited for as long as its agent may
 * take. */
void blkin_provider_load_at_start(void);

/*
 * Once a second: registers a child if its parent's registration is no longer enough; looks for the
 * recorder's rings, or leaves them. True: an answer is awaited, call again soon.
 */
bool blkin_provider_refresh(void);

/*
 * For libblkin-preload.so: the lowest descriptor from..to that is LTTng's own, or -1. The program
 * must not close it. -1 also where LTTng itself asks.
 */
BLKIN_PUBLIC int blkin_lttng_descriptor_(unsigned from, unsigned to);

/* Before it is loaded: the recorder's rings alone are used. */
void blkin_provider_leave_lttng(void);

/* Loads it without LTTng if it is not loaded, and from now on uses the recorder's rings alone.
 * False: there are none. */
bool blkin_provider_be_quiet(void);

/* In a child whose parent has made it without the handlers of fork(2). */
void blkin_provider_after_bare_fork(void);

/* In a child of fork(2), while it has one thread. */
void blkin_provider_after_fork(void);

#endif
