/*
 * Access to the tracepoint provider, loaded at the first need.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LOADER_H
#define BLKIN_LOADER_H

#include "../tracepoints/provider.h"
#include "thread.h"

/*
 * Never NULL. Before the provider is loaded this is a table whose tracepoints claim to be enabled
 * and whose record functions load the real one; where LTTng is missing it is a table of tracepoints
 * that are always disabled. So the hot path has no question to ask but "enabled?".
 */
extern __attribute__((visibility("hidden"))) const struct blkin_provider *blkin_provider_table;

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
 * Loads the provider unless that was tried before; in a child of fork(2), registers it with LTTng
 * unless that was done before. Thread-safe; takes ms when LTTng is there.
 */
void blkin_provider_load(void);

/* In a child of fork(2), while it has one thread. */
void blkin_provider_after_fork(void);

#endif
