/*
 * An alarm: a program reports that a span was slow, has failed, or is to be kept.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ALARM_H
#define BLKIN_TOOLS_ALARM_H

#include <stdint.h>

struct alarm {
    uint64_t trace_id_high, trace_id; /* both 0: the alarm reports only `dropped` */
    uint64_t duration_ns;
    uint64_t monotonic_ns; /* the span's end */
    uint32_t user;         /* the owner of the memory with the alarm */
    struct asker *asker;   /* the payer of the alarm; NULL: none */
    uint32_t pid, pid_namespace, sequence, dropped;
    char why[128]; /* cut, valid UTF-8, and without control characters */
};

/* Returns the begin of the span by a clock that is offset_ns ahead of CLOCK_MONOTONIC. now_ns:
 * CLOCK_MONOTONIC. A program may have written any numbers, so the result is limited to the time
 * between the host's start and now. */
static inline int64_t alarm_begin_ns(const struct alarm *alarm, int64_t now_ns, int64_t offset_ns)
{
    const uint64_t now = (uint64_t)now_ns;
    const uint64_t end = alarm->monotonic_ns < now ? alarm->monotonic_ns : now;
    const uint64_t begin = alarm->duration_ns < end ? end - alarm->duration_ns : 0;

    return (int64_t)begin + offset_ns;
}

#endif
