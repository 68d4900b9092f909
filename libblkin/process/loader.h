/*
 * Access to the tracepoint provider, loaded at the first need.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LOADER_H
#define BLKIN_LOADER_H

#include "libblkin/base/thread.h"
#include "tracepoints/format/provider_table.h"

/*
 * Never NULL. Before the provider is loaded this is a table whose tracepoints claim to be enabled
 * and whose record functions load the real one; where LTTng is missing it is a table of tracepoints
 * that are always disabled. So the hot path has no question to ask but "enabled?".
 */
extern __attribute__((visibility("hidden"))) const struct blkin_provider *blkin_provider_table;

/* What blkin_gate_ points to until it is known whether spans are wanted. */
extern __attribute__((visibility("hidden"))) const int blkin_not_known_yet;

static inline const struct blkin_provider *blkin_provider(void)
{
    return __atomic_load_n(&blkin_provider_table, __ATOMIC_ACQUIRE);
}

static inline int blkin_tracepoint_enabled(const struct blkin_tracepoint *tracepoint)
{
    return __builtin_expect(__atomic_load_n(tracepoint->enabled, __ATOMIC_RELAXED), 0);
}

static inline int blkin_event_enabled(const struct blkin_provider *provider,
                                      enum blkin_packed_event event)
{
    return __atomic_load_n(provider->events[event].enabled, __ATOMIC_RELAXED);
}

static inline void blkin_record_event(const struct blkin_provider *provider,
                                      enum blkin_packed_event event, const void *payload,
                                      size_t length)
{
    provider->record(provider->events[event].event, payload, length, &blkin_thread.provider_slot);
}

/*
 * Loads the provider unless that was tried before; in a child of fork(2), sees to it that it
 * records. Thread-safe; takes ms when LTTng is there, and up to 1 s where its daemon runs, but is
 * slow.
 */
void blkin_provider_load(void);

/* Once a second: a child registers if its parent's registration does not do for it any more. */
void blkin_provider_refresh(void);

/*
 * For libblkin-preload.so: the lowest descriptor from..to that is LTTng's own, or -1. The program
 * must not close it. -1 also where LTTng itself asks.
 */
BLKIN_PUBLIC int blkin_lttng_descriptor_(unsigned from, unsigned to);

/* In a child whose parent has made it without the handlers of fork(2). */
void blkin_provider_after_bare_fork(void);

/* In a child of fork(2), while it has one thread. */
void blkin_provider_after_fork(void);

#endif
