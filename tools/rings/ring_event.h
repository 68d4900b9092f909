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

/*
 * A record has the time that it describes, but not the time when it was written: that is between
 * after_ns and now_ns. All times are of CLOCK_MONOTONIC.
 */
struct ring_clock {
    int64_t after_ns;
    int64_t now_ns;    /* not earlier than the copy of the ring */
    int64_t offset_ns; /* CLOCK_REALTIME less CLOCK_MONOTONIC */
};

/* CLOCK_REALTIME less CLOCK_MONOTONIC, measured now. */
int64_t ring_clock_offset(void);

/*
 * If it returns DECODED, the members of the event's kind are set; of the origin, only the pid and
 * its namespace. Texts point into the record.
 */
enum decoded ring_event(const struct ring_entry *entry, const struct ring_clock *clock,
                        struct event *event);

/* Texts may have any bytes and any length. */
struct ring_alarm {
    struct blkin_slow_event event;
    uint32_t pid_ns; /* namespace of the pid */
    struct text why, name, service;
};

/* Decodes a record for which ring_event() returned DECODED_ALARM. DECODED_UNREADABLE,
 * DECODED_NEWER: damaged, or of a newer format. */
enum decoded ring_alarm(const struct ring_entry *entry, struct ring_alarm *alarm);

#endif
