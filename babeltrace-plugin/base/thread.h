/*
 * Threads and their locks. Threads block all signals: SIGINT must interrupt the trace reader's
 * recv() in the graph's thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_THREAD_H
#define BLKIN_BASE_THREAD_H

#include "monotonic.h"

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

static inline bool thread_start(pthread_t *thread, void *(*run)(void *), void *context,
                                const char *name)
{
    sigset_t all, before;
    bool started;

    sigfillset(&all);
    if (pthread_sigmask(SIG_SETMASK, &all, &before) != 0)
        return false;
    started = pthread_create(thread, NULL, run, context) == 0;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (started)
        (void)pthread_setname_np(*thread, name);
    return started;
}

/* ---- mutexes, and conditions with deadlines of monotonic.h ----------------------------------- */

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
