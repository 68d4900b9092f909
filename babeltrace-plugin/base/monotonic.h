/*
 * The monotonic clock, for time-outs: no step of the wall clock changes it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_MONOTONIC_H
#define BLKIN_MONOTONIC_H

#include <stdint.h>
#include <time.h>

#define CLOCK_NEVER INT64_MAX

static inline int64_t clock_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static inline int64_t clock_ms(void)
{
    return clock_ns() / 1000000;
}

static inline int64_t clock_earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

#endif
