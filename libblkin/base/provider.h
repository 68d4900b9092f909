/*
 * The table of the functions that record events.
 *
 * The code that records needs only the pointer to this table. As process/ sets the pointer, that
 * code does not depend on process/.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROVIDER_H
#define BLKIN_PROVIDER_H

#include "thread.h"
#include "tracepoints/format/provider_table.h"

/* Never NULL. Without LTTng and rings, this is blkin_no_provider: so the fast path only tests
 * whether an event is enabled. */
extern __attribute__((visibility("hidden"))) const struct blkin_provider *blkin_provider_table;

/* The table whose events are never enabled. */
extern __attribute__((visibility("hidden"))) const struct blkin_provider blkin_no_provider;

/*
 * A bit in the word of blkin_gate_ and of an event of the original API. If the bit is set, the
 * caller does the periodic work if it is due, and then checks whether the event is enabled. So a
 * program that records nothing finds the agent's rings, too.
 *
 * Without bit 0, only LTTng may want the event. With bit 0, the event is on, or that is not known.
 */
#define BLKIN_LOOKS_FOR_RINGS 2

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
