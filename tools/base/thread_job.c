/*
 * Runs a job in a thread of its own.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "thread_job.h"

#include "babeltrace-plugin/base/thread.h"

#include <errno.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void *job_run(void *argument)
{
    const struct thread_job *job = argument;
    const uint64_t one = 1;

    job->run(job->context);
    (void)!write(job->end.fd, &one, sizeof(one));
    return NULL;
}

void thread_job_end(struct thread_job *job)
{
    if (!job->is_running)
        return;
    (void)pthread_join(job->thread, NULL);
    loop_unwatch(job->loop, &job->end);
    close(job->end.fd);
    job->is_running = false;
}

static void job_take_end(void *context, short events)
{
    struct thread_job *job = context;
    uint64_t count;

    (void)events;
    if (read(job->end.fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return; /* a spurious call, in which the join would block */
    thread_job_end(job);
    job->done(job->context);
}

bool thread_job_start(struct loop *loop, struct thread_job *job)
{
    job->loop = loop;
    job->end =
        (struct watched){eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), POLLIN, job_take_end, job, NULL};
    if (job->end.fd < 0)
        return false;
    if (!thread_start(&job->thread, job_run, job, "blkin-job")) {
        close(job->end.fd);
        errno = EAGAIN;
        return false;
    }
    job->is_running = true;
    loop_watch(loop, &job->end);
    return true;
}
