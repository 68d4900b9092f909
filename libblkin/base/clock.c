/*
 * Chooses the span clock, and computes the lines that follow CLOCK_MONOTONIC. Reads the time
 * namespace.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "clock.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)
#include <cpuid.h>
#endif

#define FIRST_MEASURE_NS 200000
#define LONGEST_LINE_NS  UINT64_C(1000000000)
#define AHEAD_NS         100000 /* a new line begins this long after the current time */
#define CLOCK_LINES      16 /* slots; a slot is reused 16 lines later, when no thread reads it */
#define UNREAD_NS        10000000 /* a line that ended longer ago is in use by no thread */

/* The first line is the identity, for ticks that are ns of CLOCK_MONOTONIC. */
static struct blkin_clock_line clock_lines[CLOCK_LINES] = {
    {.rate = UINT64_C(1) << 32, .later = UINT64_C(1) << 32},
};

struct blkin_clock blkin_clock = {.line = clock_lines};

uint64_t blkin_clock_read(clockid_t clock)
{
    struct timespec now = {0};

    (void)clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* The counter and CLOCK_MONOTONIC at one moment. */
struct moment {
    uint64_t ticks;
    uint64_t ns;
};

/* A lock: only the thread that has set it computes the next line, and uses the variables below. */
static bool clock_is_computing;
static struct moment clock_last;    /* the last measurement */
static uint64_t clock_outlier_rate; /* the last measured rate that was rejected as an outlier */
static uint64_t clock_next_line_ns;

/* Reads both clocks eight times, and returns the reading that took the shortest time. An interrupt
 * between the two clocks would make the first rate wrong, and so all durations. */
static struct moment clock_moment_now(void)
{
    struct moment best = {0, 0};
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 8; i++) {
        const uint64_t before = blkin_counter();
        const uint64_t ns = blkin_monotonic_ns();
        const uint64_t took = blkin_counter() - before;

        if (took < least) {
            least = took;
            best = (struct moment){before + took / 2, ns};
        }
    }
    return best;
}

static uint64_t clock_rate_between(struct moment from, struct moment to)
{
    return (uint64_t)(((unsigned __int128)(to.ns - from.ns) << 32) / (to.ticks - from.ticks));
}

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)

static const char *kernel_clock_path =
    "/sys/devices/system/clocksource/clocksource0/current_clocksource";

enum kernel_clock { KERNEL_NOT_KNOWN, KERNEL_USES_COUNTER, KERNEL_USES_ANOTHER };

static enum kernel_clock kernel_clock(void)
{
    char source[8] = "";
    const int fd = open(kernel_clock_path, O_RDONLY | O_CLOEXEC);
    ssize_t length;

    if (fd < 0)
        return KERNEL_NOT_KNOWN;
    length = read(fd, source, sizeof(source) - 1);
    close(fd);
    if (length <= 0)
        return KERNEL_NOT_KNOWN;
    return length >= 4 && memcmp(source, "tsc\n", 4) == 0 ? KERNEL_USES_COUNTER
                                                          : KERNEL_USES_ANOTHER;
}

/* The counters of all CPUs agree only if the kernel, which checks them, uses them itself. Also, the
 * counter's speed must not change with the CPU's. */
static bool clock_counter_is_reliable(void)
{
    unsigned a, b, c, d;

    return __get_cpuid(0x80000007, &a, &b, &c, &d) && d & (1U << 8) &&
           kernel_clock() == KERNEL_USES_COUNTER;
}

#else

static bool clock_counter_is_reliable(void)
{
    return false;
}

#endif

/* ---- lines ---- */

static struct blkin_clock_line clock_line_load(const struct blkin_clock_line *line)
{
    return (struct blkin_clock_line){
        .ticks = __atomic_load_n(&line->ticks, __ATOMIC_RELAXED),
        .ns = __atomic_load_n(&line->ns, __ATOMIC_RELAXED),
        .rate = __atomic_load_n(&line->rate, __ATOMIC_RELAXED),
        .span = __atomic_load_n(&line->span, __ATOMIC_RELAXED),
        .later = __atomic_load_n(&line->later, __ATOMIC_RELAXED),
    };
}

static uint64_t clock_ns_on_line(const struct blkin_clock_line *line, uint64_t ticks)
{
    const uint64_t since = ticks - line->ticks;

    if ((int64_t)since < 0)
        return line->ns - blkin_clock_scale(-since, line->rate);
    if (since < line->span)
        return line->ns + blkin_clock_scale(since, line->rate);
    return line->ns + blkin_clock_scale(line->span, line->rate) +
           blkin_clock_scale(since - line->span, line->later);
}

/* Returns the time on the last line. For ticks before that line, returns the time on the line
 * before. */
static uint64_t clock_ns_at(uint64_t ticks)
{
    const struct blkin_clock_line *at = __atomic_load_n(&blkin_clock.line, __ATOMIC_ACQUIRE);
    const struct blkin_clock_line line = clock_line_load(at);
    struct blkin_clock_line before;

    if ((int64_t)(ticks - line.ticks) >= 0)
        return clock_ns_on_line(&line, ticks);
    before = clock_line_load(at == clock_lines ? &clock_lines[CLOCK_LINES - 1] : at - 1);
    return clock_ns_on_line(before.span ? &before : &line, ticks);
}

static void clock_line_publish(const struct blkin_clock_line *line)
{
    /* only the computing thread changes blkin_clock.line */
    struct blkin_clock_line *at =
        &clock_lines[((size_t)(blkin_clock.line - clock_lines) + 1) % CLOCK_LINES];

    __atomic_store_n(&at->ticks, line->ticks, __ATOMIC_RELAXED);
    __atomic_store_n(&at->ns, line->ns, __ATOMIC_RELAXED);
    __atomic_store_n(&at->rate, line->rate, __ATOMIC_RELAXED);
    __atomic_store_n(&at->span, line->span, __ATOMIC_RELAXED);
    __atomic_store_n(&at->later, line->later, __ATOMIC_RELAXED);
    __atomic_store_n(&blkin_clock.line, at, __ATOMIC_RELEASE);
}

static uint64_t clock_ticks_in(uint64_t ns, uint64_t rate)
{
    return (uint64_t)(((unsigned __int128)ns << 32) / rate);
}

/* Adds a line that begins on the old line, AHEAD_NS from now, and meets CLOCK_MONOTONIC. */
static void clock_line_converge(struct moment now, uint64_t rate, uint64_t apart_ns)
{
    const uint64_t ahead = clock_ticks_in(AHEAD_NS, rate);
    const uint64_t steep = 100 * apart_ns; /* the slope differs from the rate by 1 % at most */
    const uint64_t ns = clock_next_line_ns > steep ? clock_next_line_ns : steep;
    const uint64_t from_ns = clock_ns_at(now.ticks + ahead);
    const uint64_t to_ns = now.ns + AHEAD_NS + ns;
    const uint64_t span = clock_ticks_in(ns, rate);

    clock_line_publish(&(struct blkin_clock_line){
        .ticks = now.ticks + ahead,
        .ns = from_ns,
        .rate = (uint64_t)(((unsigned __int128)(to_ns - from_ns) << 32) / span),
        .span = span,
        .later = rate,
    });
}

/* Adds a line that begins at CLOCK_MONOTONIC. The new line includes `ticks`, a reading of the
 * counter after the end of the old line. */
static void clock_line_restart(struct moment now, uint64_t rate, uint64_t ticks)
{
    const uint64_t ago = now.ticks - ticks;
    const uint64_t most = clock_ticks_in(LONGEST_LINE_NS, rate);
    const uint64_t back = ago < most ? ago : 0;

    clock_line_publish(&(struct blkin_clock_line){
        .ticks = now.ticks - back,
        .ns = now.ns - blkin_clock_scale(back, rate),
        .rate = rate,
        .span = clock_ticks_in(clock_next_line_ns, rate) + back,
        .later = rate,
    });
}

static bool clock_rates_differ(uint64_t one, uint64_t other)
{
    return one > other + other / 500 || one < other - other / 500;
}

/* Returns the rate since the last measurement. A single outlier is ignored: the host was suspended
 * or migrated. If the next measurement agrees with the outlier, the rate has really changed. */
static uint64_t clock_measured_rate(struct moment now, uint64_t old)
{
    uint64_t rate;

    if (now.ticks <= clock_last.ticks || now.ns <= clock_last.ns)
        return old;
    rate = clock_rate_between(clock_last, now);
    if (rate == 0 ||
        (clock_rates_differ(rate, old) && clock_rates_differ(rate, clock_outlier_rate))) {
        clock_outlier_rate = rate;
        return old;
    }
    return rate;
}

/* Returns true if no thread has read the clock since the last line ended, as in an idle process. A
 * step to CLOCK_MONOTONIC then changes no difference of two readings. */
static bool clock_is_unread(struct moment now)
{
    const struct blkin_clock_line line = clock_line_load(blkin_clock.line);
    const uint64_t end = line.ticks + line.span;

    return (int64_t)(now.ticks - end) > (int64_t)clock_ticks_in(UNREAD_NS, line.later) &&
           now.ns > clock_ns_on_line(&line, end);
}

static void clock_line_compute(uint64_t ticks)
{
    const struct moment now = clock_moment_now();
    const uint64_t rate = clock_measured_rate(now, blkin_clock.line->later);
    const uint64_t ns = clock_ns_at(now.ticks);
    const uint64_t apart_ns = ns < now.ns ? now.ns - ns : ns - now.ns;
    const bool has_begun = (int64_t)(now.ticks - blkin_clock.line->ticks) >= 0;

    clock_last = now;
    clock_next_line_ns =
        clock_next_line_ns * 10 < LONGEST_LINE_NS ? clock_next_line_ns * 10 : LONGEST_LINE_NS;
    if (apart_ns < CLOCK_STEP_NS && has_begun && !clock_is_unread(now))
        clock_line_converge(now, rate, apart_ns);
    else
        clock_line_restart(now, rate, ticks);
}

/* Acquire: if true, the line that blkin_clock_init() published is visible. */
static bool clock_uses_counter(void)
{
    return __atomic_load_n(&blkin_clock.use_counter, __ATOMIC_ACQUIRE);
}

/* Returns true if the last line has ended, or the counter has stepped back to before the line. */
static bool clock_is_due(void)
{
    const struct blkin_clock_line line =
        clock_line_load(__atomic_load_n(&blkin_clock.line, __ATOMIC_ACQUIRE));
    const uint64_t since = blkin_counter() - line.ticks;

    if ((int64_t)since < 0)
        return -since > 2 * clock_ticks_in(AHEAD_NS, line.later);
    return since >= line.span;
}

/* ---- fallback: the kernel has stopped using the counter ---- */

/* The ticks of the fallback line are ns of CLOCK_MONOTONIC. If the span clock was ahead, the line
 * is slower until it meets CLOCK_MONOTONIC. */
static struct blkin_clock_line clock_fallback;
static bool clock_has_fallen_back;

/* Returns the time after the fallback. If a thread read the counter just before the fallback, its
 * ticks are of the counter, and the function returns the current time. */
static uint64_t clock_fallback_ns(uint64_t ticks)
{
    const uint64_t now = blkin_monotonic_ns();

    return clock_ns_on_line(&clock_fallback, now - ticks < LONGEST_LINE_NS ? ticks : now);
}

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)

static void clock_fall_back(void)
{
    static const struct blkin_clock_line never = {.later = UINT64_C(1) << 32};
    const struct moment now = clock_moment_now();
    const uint64_t ns = clock_ns_at(now.ticks);
    const uint64_t ahead_ns = ns > now.ns ? ns - now.ns : 0;
    const uint64_t rate = UINT64_C(1) << 32;

    clock_fallback = (struct blkin_clock_line){
        .ticks = now.ns,
        .ns = now.ns + ahead_ns,
        .rate = rate - rate / 100,
        .span = 100 * ahead_ns,
        .later = rate,
    };
    __atomic_store_n(&clock_has_fallen_back, true, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_clock.line, &never, __ATOMIC_RELEASE);
    __atomic_store_n(&blkin_clock.use_counter, false, __ATOMIC_RELEASE);
}

void blkin_clock_recheck(void)
{
    if (!clock_uses_counter() || kernel_clock() != KERNEL_USES_ANOTHER ||
        __atomic_exchange_n(&clock_is_computing, true, __ATOMIC_ACQUIRE))
        return;
    clock_fall_back();
    __atomic_store_n(&clock_is_computing, false, __ATOMIC_RELEASE);
}

#else

void blkin_clock_recheck(void)
{
}

#endif

uint64_t blkin_clock_ns(uint64_t ticks)
{
    uint64_t ns;

    if (blkin_clock_try(ticks, &ns))
        return ns;
    if (__atomic_load_n(&clock_has_fallen_back, __ATOMIC_ACQUIRE))
        return clock_fallback_ns(ticks);
    if (clock_uses_counter() && clock_is_due() &&
        !__atomic_exchange_n(&clock_is_computing, true, __ATOMIC_ACQUIRE)) {
        if (clock_uses_counter() && clock_is_due())
            clock_line_compute(ticks);
        __atomic_store_n(&clock_is_computing, false, __ATOMIC_RELEASE);
    }
    return clock_ns_at(ticks);
}

uint64_t blkin_clock_now(void)
{
    uint64_t ns;

    if (clock_uses_counter())
        return blkin_clock_ns(blkin_counter());
    ns = blkin_monotonic_ns();
    return __atomic_load_n(&clock_has_fallen_back, __ATOMIC_ACQUIRE) ? clock_fallback_ns(ns) : ns;
}

void blkin_clock_after_fork(void)
{
    clock_is_computing = false;
}

/* The first lines are short, because the first rates are not exact: 1 ms, 10 ms, 100 ms, 1 s. */
void blkin_clock_init(void)
{
    struct moment now;

    if (!clock_counter_is_reliable())
        return;
    clock_last = clock_moment_now();
    do
        now = clock_moment_now();
    while (now.ns - clock_last.ns < FIRST_MEASURE_NS || now.ticks == clock_last.ticks);
    clock_next_line_ns = 1000000;
    clock_line_restart(now, clock_rate_between(clock_last, now), now.ticks);
    __atomic_store_n(&blkin_clock.use_counter, true, __ATOMIC_RELEASE);
}

/* ---- namespaces ---- */

uint32_t blkin_namespace(const char *path)
{
    struct stat status;

    return stat(path, &status) == 0 ? (uint32_t)status.st_ino : 0;
}

/* Returns the offset in the file's line "monotonic SECONDS NS". The file describes the time
 * namespace of this process's children: returns 0 if their namespace is not `namespace`. Reads by
 * syscall(2), so that libblkin-preload.so does not take the calls for the program's. */
static int64_t clock_offset_in(const char *path, uint32_t namespace)
{
    static const char name[] = "monotonic";
    const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
    char text[128] = "", *at = text + sizeof(name) - 1;
    long long seconds;

    if (fd < 0)
        return 0;
    if (syscall(SYS_read, fd, text, sizeof(text) - 1) < 0 ||
        strncmp(text, name, sizeof(name) - 1) != 0)
        at = text + strlen(text);
    (void)syscall(SYS_close, fd);
    if (blkin_namespace("/proc/self/ns/time_for_children") != namespace)
        return 0;
    seconds = strtoll(at, &at, 10);
    return (int64_t)seconds * 1000000000 + strtoll(at, NULL, 10);
}

int64_t blkin_clock_ahead_ns(void)
{
    static uint32_t known; /* the namespace for which ahead_ns was read */
    static int64_t ahead_ns;
    const uint32_t namespace = blkin_namespace("/proc/self/ns/time");

    if (namespace && namespace != known) { /* 0: no such namespaces, or no /proc any more */
        ahead_ns = clock_offset_in("/proc/self/timens_offsets", namespace);
        known = namespace;
    }
    return ahead_ns;
}
