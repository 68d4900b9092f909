/*
 * For tests of delivery with one thread: a clock that only waits move, and counters as a text.
 * mk/tests.mk and mk/fuzz.mk link these functions of the clock in place of the system's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PLUGIN_ONE_THREAD_H
#define TESTS_PLUGIN_ONE_THREAD_H

#include "babeltrace-plugin/account/counters.h"
#include "check.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <time.h>

static struct {
    int64_t now_ms, asleep_ms, wall_ms; /* asleep_ms: CLOCK_BOOTTIME minus CLOCK_MONOTONIC */
    void (*other)(void); /* the next wait calls this function, as another thread would; then NULL */
    unsigned in_vain;    /* waits that ended at once */
    unsigned woken;      /* conditions */
} still;

int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    const int64_t ms = id == CLOCK_REALTIME   ? still.wall_ms
                       : id == CLOCK_BOOTTIME ? still.now_ms + still.asleep_ms
                                              : still.now_ms;

    *now = (struct timespec){ms / 1000, ms % 1000 * 1000000};
    return 0;
}

/* Another thread acts, or the clock moves. */
static inline int still_wait(pthread_mutex_t *lock, int64_t until_ms)
{
    void (*other)(void) = still.other;

    still.other = NULL;
    still.in_vain = other || until_ms > still.now_ms ? 0 : still.in_vain + 1;
    if ((until_ms == INT64_MAX && !other) || still.in_vain > 1000) {
        fprintf(stderr, "waits for ever, at %" PRId64 " ms\n", still.now_ms);
        abort();
    }
    if (other) {
        pthread_mutex_unlock(lock);
        other();
        pthread_mutex_lock(lock);
    } else if (until_ms > still.now_ms) {
        still.now_ms = until_ms;
    }
    return ETIMEDOUT;
}

int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int __wrap_pthread_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    (void)condition;
    return still_wait(lock, INT64_MAX);
}

int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until);
int __wrap_pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                                  const struct timespec *until)
{
    (void)condition;
    return still_wait(lock, until->tv_sec * 1000 + until->tv_nsec / 1000000);
}

int __wrap_pthread_cond_signal(pthread_cond_t *condition);
int __wrap_pthread_cond_signal(pthread_cond_t *condition)
{
    still.woken += condition != NULL;
    return 0;
}

int __wrap_pthread_cond_broadcast(pthread_cond_t *condition);
int __wrap_pthread_cond_broadcast(pthread_cond_t *condition)
{
    return __wrap_pthread_cond_signal(condition);
}

/* Returns the counters that are not 0, without sums, which are checked. The text is valid until the
 * next call. */
static inline const char *counts_text(const struct exporter_counts *output)
{
    static char text[1000];
    const struct counts counts = {.output = *output};
    size_t length = 0;

    CHECK(counts_add_up(&counts));
    text[0] = '\0';
    for (size_t i = 0; i < counters_count; i++) {
        const uint64_t value = counter_value(&counters[i], &counts);
        const bool is_sum = counters[i].label && !counters[i].label[0];
        const char *part = strchr(counters[i].name, '_');

        if (value && !is_sum)
            length += (size_t)snprintf(text + length, sizeof(text) - length, "%" PRIu64 " %s, ",
                                       value, part ? part + 1 : counters[i].name);
    }
    return text;
}

/* ---- what can be seen, and steps ---- */

static char seen[2000];

__attribute__((format(printf, 1, 2))) static inline void see(const char *format, ...)
{
    const size_t length = strlen(seen);
    va_list values;

    va_start(values, format);
    (void)vsnprintf(seen + length, sizeof(seen) - length, format, values);
    va_end(values);
}

static void (*take_step)(const char *text);
static const char *others_step;

static inline void take_others_step(void)
{
    take_step(others_step);
}

/* Takes the steps, and compares what can be seen. "@": another thread takes this step while this
 * one waits. */
static inline void run(const char *steps, const char *expected)
{
    char copy[500], *rest = copy;
    const char *next;

    seen[0] = '\0';
    (void)snprintf(copy, sizeof(copy), "%s", steps);
    while ((next = strsep(&rest, ","))) {
        next += strspn(next, " ");
        if (*next == '@') {
            others_step = next + 1;
            still.other = take_others_step;
        } else {
            take_step(next);
        }
    }
    CHECK(!still.other);
    CHECK_TEXT(seen, expected);
}

#endif
