/*
 * The pointer to the provider's table, through which every event is recorded.
 *
 * Here is only what the rooms that record need: data that process/ sets when it has loaded the
 * provider. So none of them has to know process/.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROVIDER_H
#define BLKIN_PROVIDER_H

#include "thread.h"
#include "tracepoints/format/provider_table.h"

/*
 * Never NULL: before the provider is loaded, and where LTTng is missing, it is a table whose events
 * are always disabled. So the hot path has no question to ask but "enabled?".
 */
extern __attribute__((visibility("hidden"))) const struct blkin_provider *blkin_provider_table;

/* That table. */
extern __attribute__((visibility("hidden"))) const struct blkin_provider blkin_no_provider;

/* What blkin_gate_ points to until it is known whether spans are wanted. */
extern __attribute__((visibility("hidden"))) const int blkin_not_known_yet;

static inline const struct blkin_provider *blkin_provider(void)
{
    return __atomic_load_n(&blkin_provider_table, __ATOMIC_ACQUIRE);
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

#endif
