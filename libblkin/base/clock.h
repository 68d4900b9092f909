/*
 * The span clock: CLOCK_MONOTONIC, computed from the CPU's counter if that is reliable. A reading
 * of the counter takes 7 ns (=lib.counter_ns), half of clock_gettime(): see doc/performance.md.
 *
 * A linear function (a line) converts the counter to ns. About once a second the library computes a
 * new line. The new line begins on the old line, a little ahead of the counter, and meets
 * CLOCK_MONOTONIC when the next line is due. So a counter value means the same time in all threads,
 * and time never goes back.
 *
 * In three cases the new line begins at CLOCK_MONOTONIC: the two clocks differ by CLOCK_STEP_NS, as
 * after a suspend; the counter has stepped back; no thread has read the clock since the old line
 * ended. (The first rate is measured in 0.2 ms: after an idle second, it is wrong by 50 us.)
 *
 * All functions are async-signal-safe. -DBLKIN_PORTABLE, for tests, builds the code for processors
 * other than x86-64, in other files too.
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

/* A line. All accesses are atomic, because its slot is reused after a while. */
struct blkin_clock_line {
    uint64_t ticks; /* the counter at the line's first point */
    uint64_t ns;    /* the time at that point */
    uint64_t rate;  /* ns of one tick, times 2^32 */
    uint64_t span;  /* the number of ticks with this rate; then the next line is due */
    uint64_t later; /* the rate after these ticks */
} __attribute__((aligned(64)));

struct blkin_clock {
    const struct blkin_clock_line *line;
    bool use_counter; /* false: ticks are ns of CLOCK_MONOTONIC */
};

extern __attribute__((visibility("hidden"))) struct blkin_clock blkin_clock;

/* Returns the time of clock_gettime(2) in ns. */
uint64_t blkin_clock_read(clockid_t clock);

static inline uint64_t blkin_monotonic_ns(void)
{
    return blkin_clock_read(CLOCK_MONOTONIC);
}

/* Returns the CPU's counter, even if it is not reliable; 0 on processors other than x86-64. */
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

/* Returns the time of a reading of blkin_ticks(). Computes a new line if one is due. */
uint64_t blkin_clock_ns(uint64_t ticks);

/* Returns the current time. Other threads may call blkin_clock_init() at the same time. */
uint64_t blkin_clock_now(void);

/* The fast path of blkin_clock_ns(), for a reading of blkin_counter(). Returns false if the slow
 * path is needed. */
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

/* Converts ns to ticks, approximately. */
static inline uint64_t blkin_ticks_of_ns(uint64_t ns)
{
    const struct blkin_clock_line *line = __atomic_load_n(&blkin_clock.line, __ATOMIC_ACQUIRE);

    return (uint64_t)(((unsigned __int128)ns << 32) /
                      __atomic_load_n(&line->later, __ATOMIC_RELAXED));
}

/* Chooses the clock and measures the counter's rate, which takes 0.2 ms. Called once. Other threads
 * may call blkin_clock_now() meanwhile. */
void blkin_clock_init(void);

/* Called once a second. Changes to clock_gettime(2) if the kernel no longer uses the counter, for
 * example because the counters of the CPUs differ. Time does not go back. */
void blkin_clock_recheck(void);

/* Called in a forked child: another thread of the parent may have been computing a line. */
void blkin_clock_after_fork(void);

/* ---- namespaces of this process, which need /proc. Async-signal-safe. ---- */

/* Returns the inode of the path /proc/self/ns/NAME, like LTTng's context pid_ns; 0: not known. */
uint32_t blkin_namespace(const char *path);

/* Returns this process's CLOCK_MONOTONIC minus the host's, in ns; 0 also if it is not known. */
int64_t blkin_clock_ahead_ns(void);

#endif
