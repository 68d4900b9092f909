/*
 * From a record of a ring to the decoded event, as decode.h has it for babeltrace2's messages; and
 * to an alarm. Everything in a record is untrusted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_EVENT_H
#define BLKIN_TOOLS_RINGS_EVENT_H

#include "babeltrace-plugin/spans/event.h"
#include "ring_read.h"
#include "tracepoints/format/events.h"

/*
 * A record has the time that it describes, but not the time when it was written. It was written
 * after the records that were read before, and not after now. All times are of CLOCK_MONOTONIC.
 */
struct ring_clock {
    int64_t after_ns;
    int64_t now_ns;    /* not before the ring was copied */
    int64_t offset_ns; /* what CLOCK_REALTIME is ahead */
};

/* CLOCK_REALTIME less CLOCK_MONOTONIC, measured now. */
int64_t ring_clock_offset(void);

/*
 * Fills the members that the event's kind has, if DECODED, but of origin the pid and its namespace
 * only. Texts live as long as the record. What is not wanted is not decided here.
 */
enum decoded ring_event(const struct ring_entry *entry, const struct ring_clock *clock,
                        struct event *event);

/* Texts are any bytes, and as long as the program likes. */
struct ring_alarm {
    struct blkin_slow_event event;
    uint32_t pid_ns; /* in which its pid is */
    struct text why, name, service;
};

/* Of a record for which ring_event() says DECODED_ALARM. DECODED_UNREADABLE, DECODED_NEWER: it is
 * not one that is known here. */
enum decoded ring_alarm(const struct ring_entry *entry, struct ring_alarm *alarm);

#endif
