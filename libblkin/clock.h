/*
 * The clock of spans: the CPU's counter where it can be trusted, as it costs half of clock_gettime.
 *
 * Measured: rdtsc 8 ns, clock_gettime(CLOCK_MONOTONIC) 19 ns (doc/performance.md). Only differences
 * are used, and they are converted with a rate that is measured against CLOCK_MONOTONIC over the
 * last second or so: durations follow the slewing of NTP as LTTng's own time stamps do.
 *
 * -DBLKIN_PORTABLE builds, here and elsewhere, what runs on other processors than x86-64: for
 * tests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CLOCK_H
#define BLKIN_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
#include <x86intrin.h>
#endif

struct blkin_clock {
    uint64_t rate;    /* ns of one tick, times 2^32 */
    bool use_counter; /* else ticks are ns of CLOCK_MONOTONIC */
};

extern __attribute__((visibility("hidden"))) struct blkin_clock blkin_clock;

/* ns of CLOCK_MONOTONIC. */
static inline uint64_t blkin_monotonic_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* Is the counter the clock? Then blkin_counter() is a blkin_ticks() that calls nothing. */
static inline bool blkin_use_counter(void)
{
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
    return __builtin_expect(blkin_clock.use_counter, 1);
#else
    return false;
#endif
}

static inline uint64_t blkin_counter(void)
{
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
    return __rdtsc();
#else
    return 0;
#endif
}

static inline uint64_t blkin_ticks(void)
{
    return blkin_use_counter() ? blkin_counter() : blkin_monotonic_ns();
}

/* The ns between two readings; 0 if they are in the wrong order, as two CPUs may see them. */
static inline uint64_t blkin_elapsed_ns(uint64_t from_ticks, uint64_t to_ticks)
{
    const uint64_t rate = __atomic_load_n(&blkin_clock.rate, __ATOMIC_RELAXED);

    if ((int64_t)(to_ticks - from_ticks) < 0)
        return 0;
    return (uint64_t)(((unsigned __int128)(to_ticks - from_ticks) * rate) >> 32);
}

/* The same, but negative if they are in the wrong order. */
static inline int64_t blkin_offset_ns(uint64_t from_ticks, uint64_t to_ticks)
{
    const uint64_t rate = __atomic_load_n(&blkin_clock.rate, __ATOMIC_RELAXED);

    return (int64_t)(((__int128)(int64_t)(to_ticks - from_ticks) * (int64_t)rate) >> 32);
}

static inline uint64_t blkin_ticks_of_ns(uint64_t ns)
{
    return (uint64_t)(((unsigned __int128)ns << 32) /
                      __atomic_load_n(&blkin_clock.rate, __ATOMIC_RELAXED));
}

/* Decides for a counter and takes a first measure of its rate, in 0.2 ms. Before other threads. */
void blkin_clock_init(void);

/* Measures the rate anew, over the time since the last call. One thread at a time. */
void blkin_clock_adjust(void);

#endif
