/*
 * A mutex that is locked to the end of a block, and conditions with deadlines of monotonic.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_LOCK_H
#define BLKIN_BASE_LOCK_H

#include "monotonic.h"

#include <pthread.h>

static inline pthread_mutex_t *lock_guard_begin(pthread_mutex_t *mutex)
{
    pthread_mutex_lock(mutex);
    return mutex;
}

static inline void lock_guard_end(pthread_mutex_t **mutex)
{
    pthread_mutex_unlock(*mutex);
}

/* Locks the mutex until the block ends, on every path out of the block. */
#define LOCK_GUARD(mutex)                                                          \
    pthread_mutex_t *lock_guard __attribute__((cleanup(lock_guard_end), unused)) = \
        lock_guard_begin(mutex)

/* On Linux none of these calls can fail. */
static inline void condition_init(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;

    (void)pthread_condattr_init(&attributes);
    (void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    (void)pthread_cond_init(condition, &attributes);
    (void)pthread_condattr_destroy(&attributes);
}

/* The caller holds the mutex. Returns at until_ms at the latest, or earlier without a signal
 * (spurious wake-up). */
static inline void condition_wait(pthread_cond_t *condition, pthread_mutex_t *mutex,
                                  int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

    if (until_ms == CLOCK_NEVER)
        pthread_cond_wait(condition, mutex);
    else
        (void)pthread_cond_timedwait(condition, mutex, &until);
}

#endif
