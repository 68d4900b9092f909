/* SPDX-License-Identifier: BSD-2-Clause */
#include "loop.h"

#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct loop {
    struct loop_signals on;
    sigset_t mask_before;
    struct watched signals; /* a signalfd */
    struct watched *watched;
    struct timer *timers; /* sorted by time */
    struct child *children;
    struct pollfd *fds;
    size_t room;
    bool has_stopped;
};

/* ---- descriptors ----------------------------------------------------------------------------- */

void loop_watch(struct loop *loop, struct watched *watched)
{
    watched->next = loop->watched;
    loop->watched = watched;
}

void loop_unwatch(struct loop *loop, struct watched *watched)
{
    struct watched **at = &loop->watched;

    while (*at && *at != watched)
        at = &(*at)->next;
    if (*at)
        *at = watched->next;
}

/* Fills the array for poll(2). Returns the number of descriptors, or -1 with errno set. */
static int list_fds(struct loop *loop)
{
    size_t count = 0;

    for (const struct watched *w = loop->watched; w; w = w->next)
        count++;
    if (!ARRAY_FITS(loop->fds, loop->room, count))
        return -1;
    count = 0;
    for (const struct watched *w = loop->watched; w; w = w->next)
        loop->fds[count++] = (struct pollfd){w->fd, w->events, 0};
    return (int)count;
}

/* A callback may unwatch any descriptor, so the loop looks up each one again. */
static void call_ready(struct loop *loop, int count)
{
    for (int i = 0; i < count; i++) {
        struct watched *w = loop->watched;

        if (!loop->fds[i].revents)
            continue;
        while (w && w->fd != loop->fds[i].fd)
            w = w->next;
        if (w) {
            w->found = loop->fds[i].revents;
            w->ready(w->context);
        }
    }
}

/* ---- times ----------------------------------------------------------------------------------- */

void timer_clear(struct loop *loop, struct timer *timer)
{
    struct timer **at = &loop->timers;

    while (*at && *at != timer)
        at = &(*at)->next;
    if (*at)
        *at = timer->next;
}

void timer_set(struct loop *loop, struct timer *timer, int64_t in_ms)
{
    struct timer **at = &loop->timers;

    timer_clear(loop, timer);
    timer->at_ms = clock_ms() + in_ms;
    while (*at && (*at)->at_ms <= timer->at_ms)
        at = &(*at)->next;
    timer->next = *at;
    *at = timer;
}

static void call_due(struct loop *loop)
{
    const int64_t now_ms = clock_ms();

    while (loop->timers && loop->timers->at_ms <= now_ms) {
        struct timer *timer = loop->timers;

        loop->timers = timer->next;
        timer->due(timer->context);
    }
}

/* Returns the timeout for poll(2). */
static int time_left(const struct loop *loop)
{
    int64_t left_ms;

    if (!loop->timers)
        return -1;
    left_ms = loop->timers->at_ms - clock_ms();
    return left_ms < 0 ? 0 : left_ms > INT_MAX ? INT_MAX : (int)left_ms;
}

/* ---- children -------------------------------------------------------------------------------- */

static struct child **find_child(struct loop *loop, pid_t pid)
{
    struct child **at = &loop->children;

    while (*at && (*at)->pid != pid)
        at = &(*at)->next;
    return at;
}

static void reap(struct loop *loop)
{
    pid_t pid;
    int status;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
        struct child **at = find_child(loop, pid);
        struct child *child = *at;

        if (!child)
            continue; /* a child that was given to loop_forget() */
        *at = child->next;
        child->pid = 0;
        child->ended(child->context, status);
    }
}

void loop_wait_for(struct loop *loop, struct child *child)
{
    child->next = loop->children;
    loop->children = child;
}

void loop_forget(struct loop *loop, struct child *child)
{
    *find_child(loop, child->pid) = child->next;
    child->pid = 0;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void on_signals(void *context)
{
    struct loop *loop = context;
    struct signalfd_siginfo info;

    while (read(loop->signals.fd, &info, sizeof(info)) == (ssize_t)sizeof(info)) {
        if (info.ssi_signo == SIGCHLD)
            reap(loop);
        else if (info.ssi_signo == SIGHUP)
            loop->on.reload(loop->on.context);
        else
            loop->on.end(loop->on.context);
    }
}

struct loop *loop_new(const struct loop_signals *signals)
{
    struct loop *loop = calloc(1, sizeof(*loop));
    sigset_t mask;

    if (!loop)
        return NULL;
    loop->on = *signals;
    sigemptyset(&mask);
    sigaddset(&mask, SIGTERM);
    sigaddset(&mask, SIGINT);
    sigaddset(&mask, SIGHUP);
    sigaddset(&mask, SIGCHLD);
    loop->signals = (struct watched){
        signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC), POLLIN, on_signals, loop, NULL, 0};
    if (loop->signals.fd < 0 || sigprocmask(SIG_BLOCK, &mask, &loop->mask_before) != 0) {
        const int cause = errno;

        if (loop->signals.fd >= 0)
            close(loop->signals.fd);
        free(loop);
        errno = cause;
        return NULL;
    }
    loop_watch(loop, &loop->signals);
    return loop;
}

void loop_free(struct loop *loop)
{
    close(loop->signals.fd);
    (void)sigprocmask(SIG_SETMASK, &loop->mask_before, NULL);
    free(loop->fds);
    free(loop);
}

bool loop_run(struct loop *loop)
{
    loop->has_stopped = false;
    while (!loop->has_stopped) {
        const int count = list_fds(loop);

        if (count < 0)
            return false;
        if (poll(loop->fds, (nfds_t)count, time_left(loop)) < 0) {
            if (errno != EINTR)
                return false;
            continue;
        }
        call_ready(loop, count);
        call_due(loop);
    }
    return true;
}

void loop_stop(struct loop *loop)
{
    loop->has_stopped = true;
}

/* ---- threads --------------------------------------------------------------------------------- */

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

static void job_take_end(void *context)
{
    struct thread_job *job = context;
    uint64_t count;

    if (read(job->end.fd, &count, sizeof(count)) != (ssize_t)sizeof(count))
        return; /* a spurious call, in which the join would block */
    thread_job_end(job);
    job->done(job->context);
}

bool thread_job_start(struct loop *loop, struct thread_job *job)
{
    job->loop = loop;
    job->end = (struct watched){
        eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), POLLIN, job_take_end, job, NULL, 0};
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

/* ---- listeners ------------------------------------------------------------------------------- */

#define ACCEPTED_MAX 8 /* connections in one turn of the loop */

static void accepting_back_off(struct accepting *accepting)
{
    loop_unwatch(accepting->loop, &accepting->watched);
    timer_set(accepting->loop, &accepting->again, LISTENER_BACKOFF_MS);
}

static void accepting_again(void *context)
{
    struct accepting *accepting = context;

    loop_watch(accepting->loop, &accepting->watched);
}

static void accepting_ready(void *context)
{
    struct accepting *accepting = context;

    for (int i = 0; i < ACCEPTED_MAX; i++) {
        union peer_address from;
        socklen_t length;
        int fd;

        if (accepting->is_full && accepting->is_full(accepting->context)) {
            accepting_back_off(accepting);
            return;
        }
        fd = listener_accept(&accepting->listener, &from, &length);
        if (fd < 0 && accepting->listener.until_ms)
            accepting_back_off(accepting);
        if (fd < 0)
            return;
        accepting->take_connection(accepting->context, fd, &from, length);
    }
}

void accepting_begin(struct accepting *accepting, struct loop *loop, int fd)
{
    accepting->loop = loop;
    accepting->listener = (struct listener){fd, 0};
    accepting->watched = (struct watched){fd, POLLIN, accepting_ready, accepting, NULL, 0};
    accepting->again = (struct timer){.due = accepting_again, .context = accepting};
    loop_watch(loop, &accepting->watched);
}

void accepting_end(struct accepting *accepting)
{
    if (!accepting->loop)
        return;
    loop_unwatch(accepting->loop, &accepting->watched);
    timer_clear(accepting->loop, &accepting->again);
    accepting->loop = NULL;
}
