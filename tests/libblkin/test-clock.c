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

static char file_path[512];

static void write_file(const char *text)
{
    FILE *file = fopen(file_path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

static uint64_t difference(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

static uint64_t error_ns(void)
{
    const struct moment now = clock_moment_now();

    return difference(blkin_clock_ns(now.ticks), now.ns);
}

/* ---- lines of simple numbers ---- */

#define RATE_ONE  (UINT64_C(1) << 32) /* the rate of a ns in a tick */
#define RATE_HALF (RATE_ONE / 2)
#define BILLION   UINT64_C(1000000000)

/* Makes a line the current one, in the first slot. */
static void begin_with(struct blkin_clock_line line)
{
    clock_lines[0] = line;
    blkin_clock.line = clock_lines;
}

static bool is_line(const struct blkin_clock_line *line, struct blkin_clock_line expected)
{
    return memcmp(line, &expected, 5 * sizeof(uint64_t)) == 0;
}

#define IS_NEXT(...) is_line(&clock_lines[1], (struct blkin_clock_line){__VA_ARGS__})

static void test_times_on_lines(void)
{
    const struct blkin_clock_line line = {1000, 5000, RATE_HALF, 100, RATE_ONE};

    CHECK(clock_ns_on_line(&line, 990) == 4995 && clock_ns_on_line(&line, 1000) == 5000);
    CHECK(clock_ns_on_line(&line, 1098) == 5049 && clock_ns_on_line(&line, 1100) == 5050);
    CHECK(clock_ns_on_line(&line, 1110) == 5060);
    /* before the current line, the line before counts, if there is one */
    clock_lines[CLOCK_LINES - 1] = line;
    blkin_clock.line = &clock_lines[CLOCK_LINES - 1];
    clock_line_publish(&(struct blkin_clock_line){1200, 6000, RATE_ONE, 10, RATE_HALF});
    CHECK(blkin_clock.line == clock_lines &&
          is_line(clock_lines, (struct blkin_clock_line){1200, 6000, RATE_ONE, 10, RATE_HALF}));
    CHECK(clock_ns_at(1199) == 5149 && clock_ns_at(1200) == 6000 && clock_ns_at(1220) == 6015);
    clock_line_publish(&(struct blkin_clock_line){1300, 7000, RATE_ONE, 10, RATE_ONE});
    CHECK(blkin_clock.line == &clock_lines[1] && clock_ns_at(1210) == 6010);
    blkin_clock.line = clock_lines;
    clock_lines[CLOCK_LINES - 1].span = 0;
    CHECK(clock_ns_at(1199) == 5999);
}

static void test_new_lines(void)
{
    const struct blkin_clock_line identity = {0, 0, RATE_ONE, 1000, RATE_ONE};

    clock_next_line_ns = MS;
    begin_with(identity);
    clock_line_converge((struct moment){1000000, 1000400}, RATE_HALF, 400);
    CHECK(IS_NEXT(1200000, 1200000, UINT64_C(900400) * RATE_ONE / 2000000, 2000000, RATE_HALF));
    begin_with(identity); /* a steep line: 1 % at most */
    clock_line_converge((struct moment){1000000, 1020000}, RATE_HALF, 20000);
    CHECK(IS_NEXT(1200000, 1200000, UINT64_C(1920000) * RATE_ONE / 4000000, 4000000, RATE_HALF));
    begin_with(identity);
    clock_line_restart((struct moment){3 * BILLION, 2 * BILLION}, RATE_HALF, 3 * BILLION - 1000);
    CHECK(IS_NEXT(3 * BILLION - 1000, 2 * BILLION - 500, RATE_HALF, 2001000, RATE_HALF));
    for (uint64_t i = 0; i < 2; i++) { /* the reading is too old, or of the future */
        begin_with(identity);
        clock_line_restart((struct moment){3 * BILLION, 2 * BILLION}, RATE_HALF,
                           i ? BILLION : 4 * BILLION);
        CHECK(IS_NEXT(3 * BILLION, 2 * BILLION, RATE_HALF, 2000000, RATE_HALF));
    }
    begin_with(identity);
    CHECK(!clock_is_unread((struct moment){10001000, 1001}));
    CHECK(clock_is_unread((struct moment){10001001, 1001}));
    CHECK(!clock_is_unread((struct moment){10001001, 1000}));
    begin_with(
        (struct blkin_clock_line){blkin_counter() - 5, 0, RATE_ONE, UINT64_MAX / 4, RATE_ONE});
    CHECK(!clock_is_due());
    clock_lines[0].span = 5;
    CHECK(clock_is_due());
    begin_with(
        (struct blkin_clock_line){blkin_counter() + 150000, 0, RATE_ONE, UINT64_MAX / 4, RATE_ONE});
    CHECK(!clock_is_due()); /* the line begins soon */
    clock_lines[0].ticks += UINT64_C(1) << 50;
    CHECK(clock_is_due());
}

static void test_rates(void)
{
    CHECK(!clock_rates_differ(501000, 500000) && clock_rates_differ(501001, 500000));
    CHECK(!clock_rates_differ(499000, 500000) && clock_rates_differ(498999, 500000));
    clock_last = (struct moment){1000, 1000};
    CHECK(clock_measured_rate((struct moment){1000, 2000}, 7) == 7);
    CHECK(clock_measured_rate((struct moment){2000, 1000}, 7) == 7);
    CHECK(clock_measured_rate((struct moment){1001, 1001}, RATE_ONE) == RATE_ONE);
    CHECK(clock_measured_rate((struct moment){3000, 2000}, RATE_ONE) == RATE_ONE);
    CHECK(clock_outlier_rate == RATE_HALF);
    CHECK(clock_measured_rate((struct moment){2000, 4000}, RATE_ONE) == RATE_ONE);
    CHECK(clock_measured_rate((struct moment){5000, 13000}, RATE_ONE) == 3 * RATE_ONE);
    clock_outlier_rate = 0;
}

/* ---- namespaces ---- */

static void test_offsets(void)
{
    static const struct {
        const char *text;
        int64_t ns;
    } cases[] = {
        {"monotonic           2000   500000000\nboottime 1 1\n", 2000 * SECOND + SECOND / 2},
        {"monotonic -5 7\n", -5 * SECOND + 7},
        {"boottime 5 5\n", 0},
        {"", 0}};
    const uint32_t own = blkin_namespace("/proc/self/ns/time_for_children");

    CHECK(blkin_namespace("/nowhere") == 0 && clock_offset_in("/nowhere", own) == 0);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_file(cases[i].text);
        CHECK(clock_offset_in(file_path, own) == cases[i].ns);
        CHECK(clock_offset_in(file_path, own + 1) == 0);
    }
    CHECK(remove(file_path) == 0);
}

/* ---- the real clock ---- */

static void test_start(uint64_t rate)
{
    for (int i = 0; i < 2000; i++) {
        blkin_clock_init();
        CHECK(difference(blkin_clock.line->rate, rate) < rate / 2000);
        CHECK(blkin_clock.line->span == clock_ticks_in(MS, blkin_clock.line->rate));
        CHECK(error_ns() < EXACT_NS);
    }
}

/* Reads the clock over the short lines of the beginning, and over some later lines. */
static void test_no_jump(void)
{
    const struct blkin_clock_line *line = blkin_clock.line;
    const uint64_t begin = blkin_monotonic_ns();
    uint64_t before = 0, changes = 0, next_ns = clock_next_line_ns, ticks, ns;

    while (changes < 6 && blkin_monotonic_ns() - begin < 60 * BILLION) {
        ticks = blkin_ticks();
        ns = blkin_clock_ns(ticks);
        CHECK(ns >= before);
        before = ns;
        if (blkin_clock.line != line) {
            /* where the new line begins, both lines have the same time, unless the thread was
             * delayed */
            CHECK((int64_t)(clock_last.ticks - line->ticks - line->span) >
                      (int64_t)clock_ticks_in(UNREAD_NS, line->later) ||
                  difference(clock_ns_on_line(line, blkin_clock.line->ticks),
                             blkin_clock.line->ns) <= 1);
            next_ns = next_ns < SECOND / 10 ? 10 * next_ns : SECOND;
            CHECK(clock_next_line_ns == next_ns);
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
    CHECK(error_ns() < CLOCK_STEP_NS);

    line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;
    line->ticks +=
        clock_ticks_in(UINT64_C(3600000000000), line->later); /* an hour ahead of the counter */
    clock_last.ticks = line->ticks;
    ticks = blkin_ticks();
    CHECK(error_ns() < CLOCK_STEP_NS);
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

/* Times do not go back, even if the counter was ahead; a missing file has no effect. */
static void test_fallback(void)
{
    struct blkin_clock_line *line = (struct blkin_clock_line *)(uintptr_t)blkin_clock.line;
    uint64_t stale = blkin_ticks(), before, ns, begin, least = UINT64_MAX;

    kernel_clock_path = file_path;
    blkin_clock_recheck();
    write_file("tsc\n");
    blkin_clock_recheck();
    CHECK(blkin_clock.use_counter);
    line->ns += 500000;
    before = blkin_clock_ns(blkin_ticks());
    write_file("hpet\n");
    blkin_clock_recheck();
    /* slower by 1 % until it meets CLOCK_MONOTONIC */
    CHECK(clock_fallback.ns - clock_fallback.ticks < 500000 + EXACT_NS);
    CHECK(clock_fallback.rate == RATE_ONE - RATE_ONE / 100 && clock_fallback.later == RATE_ONE);
    CHECK(clock_fallback.span == 100 * (clock_fallback.ns - clock_fallback.ticks));
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
    (void)remove(file_path);
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
    const char *folder = getenv("TMPDIR");
    const struct blkin_clock_line first = clock_lines[0];
    struct moment begin, end;
    uint64_t rate;

    (void)snprintf(file_path, sizeof(file_path), "%s/file", folder ? folder : ".");
    test_times_on_lines();
    test_new_lines();
    test_rates();
    test_offsets();
    begin_with(first);
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
