/*
 * The events of provider "blkin", as packed.h wants them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define LTTNG_UST_COMPAT_API_VERSION 1
#include "blkin_events.h"

_Static_assert(LTTNG_UST_TRACEPOINT_LOGLEVEL_EMERG == 0 &&
                   LTTNG_UST_TRACEPOINT_LOGLEVEL_INFO == 6 &&
                   LTTNG_UST_TRACEPOINT_LOGLEVEL_DEBUG == BLKIN_LOGLEVEL_DEBUG,
               "LTTng counts log levels in another way");

#define EVENT(event, event_name, level, event_fields) \
    [event] = {.name = (event_name),                  \
               .loglevel = (level),                   \
               .fields = (event_fields),              \
               .field_count = sizeof(event_fields) / sizeof((event_fields)[0])},

struct packed_event blkin_events[BLKIN_EVENTS] = {BLKIN_EACH_EVENT(EVENT)};
