/*
 * Runs blocking work in a thread. Unlike a task (tools/base/child.h), which is another process, the
 * thread can use the open librdkafka and libcurl clients of the service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_THREAD_JOB_H
#define BLKIN_TOOLS_THREAD_JOB_H

#include "tools/base/loop.h"

#include <pthread.h>

struct thread_job {
    void (*run)(void *context);  /* runs in the thread, and limits its own time */
    void (*done)(void *context); /* runs in the loop afterwards, and may start the job again */
    void *context;
    /* private */
    struct loop *loop;
    struct watched end; /* an eventfd */
    pthread_t thread;
    bool is_running; /* until done() is called */
};

/* The caller has set the members above. Returns false with errno set. */
bool thread_job_start(struct loop *loop, struct thread_job *job);

/* Waits for a running thread, without calling done(). */
void thread_job_end(struct thread_job *job);

#endif
