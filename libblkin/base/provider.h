/*
 * The table through which every event is recorded.
 *
 * The rooms that record need only this pointer, which process/ sets. So they do not depend on
 * process/.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PROVIDER_H
#define BLKIN_PROVIDER_H

#include "thread.h"
#include "tracepoints/format/provider_table.h"

/* Never NULL. Without LTTng and without rings, the table's events are always disabled: so the hot
 * path only asks "enabled?". */
extern __attribute__((visibility("hidden"))) const struct blkin_provider *blkin_provider_table;

/* The table without any event. */
extern __attribute__((visibility("hidden"))) const struct blkin_provider blkin_no_provider;

/*
 * A bit in the word of blkin_gate_ and of an event of the original API: run the periodic work if it
 * is due, then look again. Without the bit, a program that records nothing would not find the
 * agent's rings.
 *
 * Bit 0 is clear: no span is wanted. Both bits are set: that is not known yet.
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
