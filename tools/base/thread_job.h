/*
 * Work that may hang, in a thread. It uses clients of librdkafka and libcurl that the service has
 * open: a task (tools/base/child.h) is another process and cannot.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_THREAD_JOB_H
#define BLKIN_TOOLS_THREAD_JOB_H

#include "tools/base/loop.h"

#include <pthread.h>

struct thread_job {
    void (*run)(void *context);  /* in the thread; sees to its own deadline */
    void (*done)(void *context); /* in the loop, afterwards: it may start the job again */
    void *context;
    /* its own */
    struct loop *loop;
    struct watched end; /* an eventfd */
    pthread_t thread;
    bool is_running; /* until done() is called */
};

/* When the members above are set. Returns false with errno set. */
bool thread_job_start(struct loop *loop, struct thread_job *job);

/* Waits for the thread, if one runs; done() is not called then. */
void thread_job_end(struct thread_job *job);

#endif
