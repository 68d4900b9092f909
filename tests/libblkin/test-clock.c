// alone
/*
 * The clock of spans is right from the start, however often a process starts. The clock jumps only
 * where CLOCK_MONOTONIC and the counter have diverged, and does not stay wrong. Periodic work is
 * due in time, also after the counter has stepped back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "waits.h"
#include "libblkin/base/periodic.h"
#include "libblkin/base/clock.c"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>

#define EXACT_NS 20000 /* delay of a reading by a busy host */

struct blkin_wiped blkin_wiped;

static uint64_t difference(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

static uint64_t error_ns(void)
{
    const struct moment now = clock_moment_now();

    return difference(blkin_clock_ns(now.ticks), now.ns);
}

static void test_start(uint64_t rate)
{
    for (int i = 0; i < 2000; i++) {
        blkin_clock_init();
        CHECK(difference(blkin_clock.line->rate, rate) < rate / 2000);
        CHECK(error_ns() < EXACT_NS);
    }
}

/* Reads the clock over the short lines of the beginning, and over some later lines. */
static void test_no_jump(void)
{
    const struct blkin_clock_line *line = blkin_clock.line;
    const uint64_t begin = blkin_monotonic_ns();
    uint64_t before = 0, changes = 0, ticks, ns;

    while (changes < 6 && blkin_monotonic_ns() - begin < UINT64_C(20000000000)) {
        ticks = blkin_ticks();
        ns = blkin_clock_ns(ticks);
        CHECK(ns >= before);
        before = ns;
        if (blkin_clock.line != line) {
            /* where the new line begins, both lines have the same time, unless the thread was
             * delayed */
            CHECK((int64_t)(ticks - line->ticks - line->span) >
                      (int64_t)clock_ticks_in(UNREAD_NS, line->later) ||
                  difference(clock_ns_on_line(line, blkin_clock.line->ticks),
                             blkin_clock.line->ns) <= 1);
            line = blkin_clock.line;
            changes++;
        }
    }
    CHECK(changes == 6);
    CHECK(error_ns() < EXACT_NS);
}

/* Steps as after a suspend: CLOCK_MONOTONIC stands still, and the counter continues or restarts. */
static void test_steps(void)
{
    struct blkin_clock_line *line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;
    uint64_t ticks;

    while ((int64_t)((ticks = blkin_ticks()) - line->ticks) <= 0) /* until the line begins */
        ;
    line->ns += UINT64_C(5000000000);
    line->span = ticks - line->ticks; /* the line ends now */
    CHECK(difference(blkin_clock_ns(ticks), blkin_monotonic_ns()) < CLOCK_STEP_NS);

    line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;
    line->ticks +=
        clock_ticks_in(UINT64_C(3600000000000), line->later); /* an hour ahead of the counter */
    clock_last.ticks = line->ticks;
    ticks = blkin_ticks();
    CHECK(difference(blkin_clock_ns(ticks), blkin_monotonic_ns()) < CLOCK_STEP_NS);
    CHECK(error_ns() < EXACT_NS);

    clock_last.ticks = ticks - (UINT64_C(1) << 63); /* not a rate */
    clock_last.ns = blkin_monotonic_ns() - 1;
    clock_line_compute(ticks);
    CHECK(error_ns() < EXACT_NS);
}

/* The first rate is wrong, and nobody reads the clock for two seconds. */
static void test_idle(uint64_t rate)
{
    const uint64_t wrong[] = {rate + rate / 10000, rate - rate / 10000};

    for (int i = 0; i < 2; i++) {
        struct blkin_clock_line *line;

        blkin_clock_init();
        line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;
        line->rate = line->later = wrong[i];
        line->ticks -= clock_ticks_in(UINT64_C(2000000000), rate);
        line->ns -= UINT64_C(2000000000);
        clock_last = (struct moment){line->ticks, line->ns};
        CHECK(difference(clock_ns_on_line(line, blkin_ticks()), blkin_monotonic_ns()) > 100000);
        CHECK(error_ns() < EXACT_NS);
    }
}

/* Sets the last reading 150 ms back, by the true rate. */
static void begin_long_ago(uint64_t rate)
{
    clock_last = clock_moment_now();
    clock_last.ticks -= clock_ticks_in(150000000, rate);
    clock_last.ns -= 150000000;
}

/* A wrong rate, as on another host after a migration: refused once, accepted the second time. */
static void test_wrong_rate(uint64_t rate)
{
    struct blkin_clock_line *line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;

    line->later = rate / 2;
    begin_long_ago(rate);
    clock_line_compute(blkin_ticks());
    CHECK(blkin_clock.line->later == rate / 2);
    begin_long_ago(rate);
    clock_line_compute(blkin_ticks());
    CHECK(difference(blkin_clock.line->later, rate) < rate / 2000);
    CHECK(error_ns() < EXACT_NS);
}

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)

static void write_source(const char *path, const char *source)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(source, file) >= 0 && fclose(file) == 0);
}

/* Times do not go back, even if the counter was ahead; a missing file has no effect. */
static void test_fallback(void)
{
    const char *folder = getenv("TMPDIR");
    struct blkin_clock_line *line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;
    uint64_t stale = blkin_ticks(), before, ns, begin, least = UINT64_MAX;
    char path[512];

    CHECK(snprintf(path, sizeof(path), "%s/clocksource", folder ? folder : ".") <
          (int)sizeof(path));
    kernel_clock_path = path;
    blkin_clock_recheck();
    write_source(path, "tsc\n");
    blkin_clock_recheck();
    CHECK(blkin_clock.use_counter);
    line->ns += 500000;
    before = blkin_clock_ns(blkin_ticks());
    write_source(path, "hpet\n");
    blkin_clock_recheck();
    CHECK(!blkin_clock.use_counter && !blkin_clock_try(blkin_counter(), &ns));
    CHECK(difference(blkin_clock_ns(stale), blkin_monotonic_ns()) < CLOCK_STEP_NS);
    begin = blkin_monotonic_ns();
    while (blkin_monotonic_ns() - begin < 100000000) {
        ns = blkin_clock_ns(blkin_ticks());
        CHECK(ns >= before);
        before = ns;
    }
    for (int i = 0; i < 8; i++) {
        const uint64_t apart = difference(blkin_clock_ns(blkin_ticks()), blkin_monotonic_ns());

        least = apart < least ? apart : least;
    }
    CHECK(least < EXACT_NS);
    CHECK(blkin_ticks_of_ns(1000) == 1000);
    (void)remove(path);
}

#else

static void test_fallback(void)
{
}

#endif

static void test_periodic(void)
{
    const uint64_t second = blkin_ticks_of_ns(1000000000);
    const uint64_t due_times[] = {0, 1, second, UINT64_C(1) << 62, UINT64_C(1) << 63, -second};

    for (size_t i = 0; i < sizeof(due_times) / sizeof(due_times[0]); i++) {
        const uint64_t due = blkin_wiped.periodic_due_ticks = due_times[i];

        CHECK(!blkin_periodic_is_due(due - 1));
        CHECK(!blkin_periodic_is_due(due - second));
        CHECK(blkin_periodic_is_due(due));
        CHECK(blkin_periodic_is_due(due + 100 * second));
        /* the counter has stepped back by many seconds */
        CHECK(blkin_periodic_is_due(due - 100 * second));
        CHECK(blkin_periodic_is_due(due - 1000000 * second));
    }
}

static bool is_wrong, is_stopped;

static void *read_clock(void *unused)
{
    while (!__atomic_load_n(&is_stopped, __ATOMIC_RELAXED)) {
        const uint64_t before = blkin_monotonic_ns(), ns = blkin_clock_now();

        if (ns + CLOCK_STEP_NS < before || ns > blkin_monotonic_ns() + CLOCK_STEP_NS)
            __atomic_store_n(&is_wrong, true, __ATOMIC_RELAXED);
    }
    return unused;
}

/* A thread reads the clock while another one opens the library. */
static void test_concurrent_start(void)
{
    int status;

    for (int i = 0; i < 300; i++) {
        const pid_t child = fork();

        if (child == 0) {
            pthread_t reader;

            if (pthread_create(&reader, NULL, read_clock, NULL) != 0)
                _exit(2);
            blkin_clock_init();
            __atomic_store_n(&is_stopped, true, __ATOMIC_RELAXED);
            (void)pthread_join(reader, NULL);
            _exit(is_wrong);
        }
        CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
    }
}

int main(void)
{
    struct moment begin, end;
    uint64_t rate;

    /* before a line, and without a counter, ticks are ns */
    CHECK(blkin_clock_ns(UINT64_C(123456789012345678)) == UINT64_C(123456789012345678));
    test_periodic();
    test_concurrent_start();
    blkin_clock_init();
    if (!blkin_clock.use_counter) {
        puts("the counter is not the clock here");
        return 77;
    }
    test_periodic();
    begin = clock_moment_now();
    pause_us(500000); /* the interval of a rate */
    end = clock_moment_now();
    rate = clock_rate_between(begin, end);
    test_start(rate);
    test_no_jump();
    test_steps();
    test_idle(rate);
    test_wrong_rate(rate);
    test_fallback();
    return check_status();
}
