/*
 * Starts threads that block all signals: SIGINT must interrupt the trace reader's recv() in the
 * graph's thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_THREAD_H
#define BLKIN_BASE_THREAD_H

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

#endif
