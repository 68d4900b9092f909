/*
 * Choice and calibration of the span clock.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
#include <cpuid.h>
#endif

#define FIRST_MEASURE_NS 200000
#define LEAST_MEASURE_NS 100000000 /* a shorter one would be less exact than what we have */

struct blkin_clock blkin_clock = {.rate = UINT64_C(1) << 32};

/* The counter and CLOCK_MONOTONIC at one moment. */
struct moment {
    uint64_t ticks;
    uint64_t ns;
};

static struct moment last;
static uint64_t odd_rate; /* the last one measured that was not believed */

/*
 * The best of some: an interrupt between the readings would make a first measure wrong by as much
 * as it took in 0.2 ms, and with it all durations.
 */
static struct moment moment_now(void)
{
    struct moment best = {0, 0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 8; i++) {
        const uint64_t before = blkin_ticks();
        const uint64_t ns = blkin_monotonic_ns();
        const uint64_t took = blkin_ticks() - before;

        if (took < least) {
            least = took;
            best = (struct moment){before + took / 2, ns};
        }
    }
    return best;
}

static uint64_t rate_between(struct moment from, struct moment to)
{
    return (uint64_t)(((unsigned __int128)(to.ns - from.ns) << 32) / (to.ticks - from.ticks));
}

/*
 * The kernel has watched the counters of all CPUs since boot: only while it takes time from them
 * itself are they in step. And the counter must not stop or change its speed with the CPU's.
 */
static bool counter_is_good(void)
{
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
    static const char path[] = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    unsigned a, b, c, d;
    char source[8] = "";
    int fd;
    ssize_t length;

    if (!__get_cpuid(0x80000007, &a, &b, &c, &d) || !(d & (1U << 8)))
        return false;
    fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    length = read(fd, source, sizeof(source) - 1);
    close(fd);
    return length >= 4 && memcmp(source, "tsc\n", 4) == 0;
#else
    return false;
#endif
}

static bool differ(uint64_t one, uint64_t other)
{
    return one > other + other / 500 || one < other - other / 500;
}

void blkin_clock_init(void)
{
    struct moment now;

    if (!counter_is_good())
        return;
    blkin_clock.use_counter = true;
    last = moment_now();
    do
        now = moment_now();
    while (now.ns - last.ns < FIRST_MEASURE_NS || now.ticks == last.ticks);
    blkin_clock.rate = rate_between(last, now);
}

void blkin_clock_adjust(void)
{
    const uint64_t old = blkin_clock.rate;
    struct moment now;
    uint64_t rate;

    if (!blkin_clock.use_counter)
        return;
    now = moment_now();
    if (now.ns - last.ns < LEAST_MEASURE_NS || now.ticks <= last.ticks)
        return;
    rate = rate_between(last, now);
    last = now;
    /*
     * The host was suspended or migrated in between: that says nothing of the rate. If the next
     * measure agrees, the counter is now another one, or the rate we had was wrong.
     */
    if (differ(rate, old) && differ(rate, odd_rate)) {
        odd_rate = rate;
        return;
    }
    __atomic_store_n(&blkin_clock.rate, rate, __ATOMIC_RELAXED);
}
