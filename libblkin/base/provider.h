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

/*
 * In the word of blkin_gate_, or of an event of the original API: whoever finds it does the chores
 * if they are due, and then looks again. Else a program that records nothing, or only events of the
 * original API, would not find the recorder's rings. Without bit 0, nothing is wanted; with both
 * bits, that is not known yet.
 */
#define BLKIN_GATE_LOOKS 2

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
