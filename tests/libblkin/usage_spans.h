/*
 * Makes spans with a known usage. Counts how often the library calls clock_gettime() for CPU time,
 * and getrusage().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_USAGE_SPANS_H
#define TESTS_USAGE_SPANS_H

#include <blkin/blkin.h>

#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define USAGE_PAGE 4096
#define PAGES \
    200 /* page faults of one unit: so many that the few faults of recording do not matter */

/* ---- counts of calls: these functions replace the C library's, also for libblkin ---- */

static _Atomic long cpu_reads, rusage_reads;

BLKIN_PUBLIC int clock_gettime(clockid_t clock, struct timespec *time)
{
    if (clock == CLOCK_THREAD_CPUTIME_ID)
        cpu_reads++;
    return (int)syscall(SYS_clock_gettime, clock, time);
}

BLKIN_PUBLIC int getrusage(__rusage_who_t who, struct rusage *usage)
{
    rusage_reads++;
    return (int)syscall(SYS_getrusage, who, usage);
}

static inline uint64_t clock_ns(clockid_t clock)
{
    struct timespec time;

    (void)syscall(SYS_clock_gettime, clock, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

/* ---- spans ---- */

static inline void burn(uint64_t ns)
{
    const uint64_t end = clock_ns(CLOCK_THREAD_CPUTIME_ID) + ns;

    while (clock_ns(CLOCK_THREAD_CPUTIME_ID) < end)
        continue;
}

static inline void make_page_faults(int units)
{
    const size_t size = (size_t)units * PAGES * USAGE_PAGE;
    char *area;

    if (!units)
        return;
    area = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (area == MAP_FAILED || madvise(area, size, MADV_NOHUGEPAGE) != 0)
        abort();
    for (size_t i = 0; i < size; i += USAGE_PAGE)
        area[i] = 1;
    (void)munmap(area, size);
}

static inline void begin(struct blkin_span *span, const char *name, const struct blkin_span *parent)
{
    blkin_span_begin(span, name, BLKIN_INTERNAL, parent);
}

static inline void record_span_with_faults(const char *name, const struct blkin_span *parent,
                                           int units)
{
    struct blkin_span span;

    begin(&span, name, parent);
    make_page_faults(units);
    blkin_span_end(&span);
}

static inline void set_level(int level)
{
    CHECK(blkin_set_usage(level) == 0);
}

/* Runs work on another thread, and waits for its end. */
static inline void run_on_other_thread(void *(*work)(void *), void *argument)
{
    pthread_t thread;

    if (pthread_create(&thread, NULL, work, argument) != 0)
        abort();
    (void)pthread_join(thread, NULL);
}

#endif
