/*
 * Decodes a record of a ring, as decode.h decodes babeltrace2's messages. Records are untrusted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_EVENT_H
#define BLKIN_TOOLS_RINGS_EVENT_H

#include "babeltrace-plugin/spans/event.h"
#include "ring_read.h"
#include "tracepoints/format/events.h"

/* The times, by CLOCK_MONOTONIC, between which a record was written. The record only has the time
 * that it describes. */
struct ring_clock {
    int64_t after_ns;
    int64_t now_ns;    /* not earlier than the copy of the ring */
    int64_t offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
};

/* Measures CLOCK_REALTIME less CLOCK_MONOTONIC. */
int64_t ring_clock_offset(void);

/* Decodes a record. If the result is DECODED, the members of the event's kind are set; of the
 * origin only the pid and its namespace. Texts point into the record. */
enum decoded ring_event(const struct ring_entry *entry, const struct ring_clock *clock,
                        struct event *event);

/* Texts may have any bytes and any length. */
struct ring_alarm {
    struct blkin_slow_event event;
    uint32_t pid_namespace; /* namespace of the pid */
    struct text why, name, service;
};

/* Decodes a record for which ring_event() returned DECODED_ALARM. Returns DECODED_ALARM, or
 * DECODED_UNREADABLE (damaged) or DECODED_NEWER (of a newer format). */
enum decoded ring_alarm(const struct ring_entry *entry, struct ring_alarm *alarm);

#endif
