/*
 * An alarm: what a program tells of a span that was slow, has failed, or is to be kept.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ALARM_H
#define BLKIN_TOOLS_ALARM_H

#include <stdint.h>

struct alarm {
    uint64_t trace_id_high, trace_id; /* both 0: it only tells of `dropped` */
    uint64_t duration_ns;
    uint64_t monotonic_ns; /* the span's end */
    uint32_t user;         /* whose memory it was in */
    uint32_t pid, sequence, dropped;
    char why[128]; /* cut, valid UTF-8, and without control characters */
};

#endif
