/*
 * The clock of spans: CLOCK_MONOTONIC, computed from the CPU's counter where the counter can be
 * trusted. That costs half of clock_gettime().
 *
 * Measured: a reading of the counter 7 ns (=lib.counter_ns), doc/performance.md. A linear function
 * (a line) converts the counter to ns. About once a second the library computes a new line. It
 * begins a little ahead of the counter, where the line before has come to. Its slope is such that
 * it meets CLOCK_MONOTONIC when the next line is due. So a counter means the same time in all
 * threads, and time never goes back: a span that begins after another one and ends before it does
 * so in the trace, to the nanosecond. In two cases the next line begins at CLOCK_MONOTONIC instead:
 * if the two clocks differ by CLOCK_STEP_NS, as after a suspend; and if nobody has read the clock
 * since the last line ended. The reason for the second case: the first rate is measured in 0.2 ms,
 * so after an idle second it would be wrong by 50 us.
 *
 * Every function here is async-signal-safe.
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

#define CLOCK_STEP_NS 1000000

/* One line. Written once, then read; atomic, as its place is used again much later. */
struct blkin_clock_line {
    uint64_t ticks; /* where it begins */
    uint64_t ns;    /* there */
    uint64_t rate;  /* ns of one tick, times 2^32 */
    uint64_t span;  /* ticks for which it has that rate; then it is due to be replaced */
    uint64_t later; /* its rate from there on */
} __attribute__((aligned(64)));

struct blkin_clock {
    const struct blkin_clock_line *line;
    bool use_counter; /* else ticks are ns of CLOCK_MONOTONIC */
};

extern __attribute__((visibility("hidden"))) struct blkin_clock blkin_clock;

/* ns of CLOCK_MONOTONIC, from the kernel. */
uint64_t blkin_monotonic_ns(void);

/* The CPU's, whether it can be trusted or not; 0 if we know of none. */
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
    return __builtin_expect(__atomic_load_n(&blkin_clock.use_counter, __ATOMIC_RELAXED), 1)
               ? blkin_counter()
               : blkin_monotonic_ns();
}

static inline uint64_t blkin_clock_scale(uint64_t ticks, uint64_t rate)
{
    return (uint64_t)(((unsigned __int128)ticks * rate) >> 32);
}

/* The ns of CLOCK_MONOTONIC at which blkin_ticks() was this. Draws a line if one is due. */
uint64_t blkin_clock_ns(uint64_t ticks);

/* The same of blkin_counter(), and calls nothing; false: there is more to do. */
static inline bool blkin_clock_try(uint64_t counter, uint64_t *ns)
{
    const struct blkin_clock_line *line = __atomic_load_n(&blkin_clock.line, __ATOMIC_ACQUIRE);
    const uint64_t since = counter - __atomic_load_n(&line->ticks, __ATOMIC_RELAXED);

    if (__builtin_expect(since >= __atomic_load_n(&line->span, __ATOMIC_RELAXED), 0))
        return false;
    *ns = __atomic_load_n(&line->ns, __ATOMIC_RELAXED) +
          blkin_clock_scale(since, __atomic_load_n(&line->rate, __ATOMIC_RELAXED));
    return true;
}

/* So many ticks make so many ns, roughly. */
static inline uint64_t blkin_ticks_of_ns(uint64_t ns)
{
    const struct blkin_clock_line *line = __atomic_load_n(&blkin_clock.line, __ATOMIC_ACQUIRE);

    return (uint64_t)(((unsigned __int128)ns << 32) /
                      __atomic_load_n(&line->later, __ATOMIC_RELAXED));
}

/* Decides for a counter and takes a first measure of its rate, in 0.2 ms. Before other threads. */
void blkin_clock_init(void);

/*
 * Once a second: where the kernel has given up the counter for its own clock, as it does when the
 * CPUs' counters drift apart, times come from clock_gettime(2) from now on. They do not go back.
 */
void blkin_clock_recheck(void);

/* In a forked child: what another thread of the parent has begun nobody will finish. */
void blkin_clock_forked(void);

#endif
