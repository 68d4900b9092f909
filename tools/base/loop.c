/*
 * The event loop of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "loop.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

struct loop {
    struct loop_signals on;
    sigset_t mask_before;
    struct watched signals; /* a signalfd */
    struct watched *watched;
    struct timer *timers; /* the next one first */
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

static bool grow(struct loop *loop, size_t count)
{
    struct pollfd *fds;

    if (count <= loop->room)
        return true;
    fds = reallocarray(loop->fds, count * 2, sizeof(*fds));
    if (!fds)
        return false;
    loop->fds = fds;
    loop->room = count * 2;
    return true;
}

/* Returns how many there are, or -1 with errno set. */
static int list_fds(struct loop *loop)
{
    size_t count = 0;

    for (const struct watched *w = loop->watched; w; w = w->next)
        count++;
    if (!grow(loop, count))
        return -1;
    count = 0;
    for (const struct watched *w = loop->watched; w; w = w->next)
        loop->fds[count++] = (struct pollfd){w->fd, w->events, 0};
    return (int)count;
}

/* One that is called may unwatch any: each is looked for anew, by its descriptor. */
static void call_ready(struct loop *loop, int count)
{
    for (int i = 0; i < count; i++) {
        struct watched *w = loop->watched;

        if (!loop->fds[i].revents)
            continue;
        while (w && w->fd != loop->fds[i].fd)
            w = w->next;
        if (w)
            w->ready(w->context, loop->fds[i].revents);
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

/* For poll(2). */
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
            continue; /* a task that has hung */
        *at = child->next;
        child->pid = 0;
        child->ended(child->context, status);
    }
}

static void default_signals(void)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number <= SIGRTMAX; number++)
        (void)sigaction(number, &action, NULL);
    sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* In a process group of its own: Ctrl-C is for the service, which ends its children in order. */
static void become_child(struct loop *loop, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL);
    (void)setpgid(0, 0);
    default_signals();
    for (const struct watched *w = loop->watched; w; w = w->next) {
        if (w->fd >= 0)
            close(w->fd);
    }
}

bool child_start(struct loop *loop, struct child *child, int (*run)(void *argument), void *argument)
{
    const pid_t parent = getpid();
    pid_t pid;

    (void)fflush(NULL);
    pid = fork();
    if (pid < 0)
        return false;
    if (pid == 0) {
        int status;

        become_child(loop, parent);
        status = run(argument);
        (void)fflush(NULL);
        _exit(status);
    }
    child->pid = pid;
    child->next = loop->children;
    loop->children = child;
    return true;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

struct task_call {
    task_fn *run;
    const void *argument;
    char *result;
    size_t size;
    int fd;
};

static int run_task(void *argument)
{
    const struct task_call *call = argument;
    size_t written = 0;

    if (!call->run(call->argument, call->result))
        return 1;
    while (written < call->size) {
        const ssize_t n = write(call->fd, call->result + written, call->size - written);

        if (n < 0)
            return 1;
        written += (size_t)n;
    }
    return 0;
}

static void read_result(void *context, short events)
{
    struct task *task = context;
    ssize_t n;

    (void)events;
    do
        n = read(task->pipe.fd, task->result + task->got, task->size - task->got);
    while ((n > 0 && (task->got += (size_t)n) < task->size) || (n < 0 && errno == EINTR));
    if (n >= 0) /* whole, or at its end */
        loop_unwatch(task->loop, &task->pipe);
}

/* done() may start the task anew. */
static void end_task(struct loop *loop, struct task *task, bool has_worked)
{
    char *result = task->result;

    timer_clear(loop, &task->deadline);
    loop_unwatch(loop, &task->pipe);
    close(task->pipe.fd);
    task->result = NULL;
    task->done(task->context, has_worked ? result : NULL);
    free(result);
}

static void task_ended(void *context, int status)
{
    struct task *task = context;

    read_result(task, 0);
    end_task(task->loop, task, status == 0 && task->got == task->size);
}

static void task_hangs(void *context)
{
    struct task *task = context;
    struct child **at = find_child(task->loop, task->child.pid);

    (void)kill(task->child.pid, SIGKILL);
    *at = task->child.next; /* whenever it ends, nobody is told */
    task->child.pid = 0;
    end_task(task->loop, task, false);
}

bool task_start(struct loop *loop, struct task *task, task_fn *run, const void *argument,
                size_t result_size, int64_t limit_ms)
{
    struct task_call call = {run, argument, calloc(1, result_size ? result_size : 1), result_size,
                             -1};
    int ends[2] = {-1, -1};
    bool has_started = false;

    if (call.result && pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
        call.fd = ends[1];
        task->child = (struct child){.ended = task_ended, .context = task};
        has_started = child_start(loop, &task->child, run_task, &call);
    }
    if (ends[1] >= 0)
        close(ends[1]);
    if (!has_started) {
        const int cause = errno;

        if (ends[0] >= 0)
            close(ends[0]);
        free(call.result);
        errno = cause;
        return false;
    }
    task->loop = loop;
    task->result = call.result;
    task->size = result_size;
    task->got = 0;
    task->pipe = (struct watched){ends[0], POLLIN, read_result, task, NULL};
    task->deadline = (struct timer){.due = task_hangs, .context = task};
    loop_watch(loop, &task->pipe);
    timer_set(loop, &task->deadline, limit_ms);
    return true;
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void on_signals(void *context, short events)
{
    struct loop *loop = context;
    struct signalfd_siginfo info;

    (void)events;
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
    loop->signals = (struct watched){signalfd(-1, &mask, SFD_NONBLOCK | SFD_CLOEXEC), POLLIN,
                                     on_signals, loop, NULL};
    if (loop->signals.fd < 0 || sigprocmask(SIG_BLOCK, &mask, &loop->mask_before) != 0) {
        free(loop);
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
