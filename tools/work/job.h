/*
 * Jobs: what may hang, in a thread, of a service that has threads already (librdkafka's). Such a
 * service must not fork without exec, which is what tasks do (loop.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JOB_H
#define BLKIN_TOOLS_JOB_H

#include "tools/base/loop.h"

#include <pthread.h>

struct job {
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
bool job_start(struct loop *loop, struct job *job);

/* Waits for the thread, if one runs; done() is not called then. */
void job_end(struct job *job);

#endif
