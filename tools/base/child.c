/*
 * Children of a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "child.h"

#include "babeltrace-plugin/base/write_all.h"
#include "say.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM    "/proc/self/exe" /* of this version, also when another one is installed */
#define JOB_OPTION "--job"
#define NO_EXEC    126

/* ---- in the child ---------------------------------------------------------------------------- */

/* All of the order; NULL: there is none. */
static char *job_read_order(size_t *size)
{
    struct stat status;
    char *order = NULL;

    if (fstat(STDIN_FILENO, &status) == 0 && S_ISREG(status.st_mode))
        order = malloc((size_t)status.st_size + 1);
    *size = order ? (size_t)status.st_size : 0;
    if (order && pread(STDIN_FILENO, order, *size, 0) == (ssize_t)*size)
        return order;
    free(order);
    return NULL;
}

/* Who reads the standard output gets the result, and nothing that a library prints there. */
static int job_run_task(const struct job *job, const void *order)
{
    const int output = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    char *result = calloc(1, job->result_size + 1);
    bool is_done;

    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    is_done = result && job->fill(order, result) && write_all(output, result, job->result_size);
    free(result);
    return is_done ? 0 : 1;
}

bool job_is_done(int argc, char *argv[], const struct job *const jobs[], int *status)
{
    static char service[64]; /* live-reader: what it says begins with "blkin live" */
    const char *name = argc == 3 && strcmp(argv[1], JOB_OPTION) == 0 ? argv[2] : NULL;
    char *order;
    size_t size;

    if (!name)
        return false;
    while (*jobs && strcmp((*jobs)->name, name) != 0)
        jobs++;
    order = job_read_order(&size);
    *status = 2;
    if (!*jobs || !order) {
        fprintf(stderr, "%s: " JOB_OPTION " is only for services of BlkKin\n", argv[0]);
        return true;
    }
    (void)snprintf(service, sizeof(service), "blkin %.*s", (int)strcspn(name, "-"), name);
    say_open(service, "warning");
    (void)prctl(PR_SET_NAME, "blkin"); /* not "exe" */
    (void)signal(SIGPIPE, SIG_IGN);    /* who reads what it writes may be killed */
    if ((*jobs)->run)
        *status = (*jobs)->run(order, size);
    else
        *status = job_run_task(*jobs, order);
    free(order);
    return true;
}

void job_unblock_end(void)
{
    sigset_t ends;

    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    (void)sigprocmask(SIG_UNBLOCK, &ends, NULL);
}

/* ---- starting one ---------------------------------------------------------------------------- */

static void child_default_signals(bool blocks_end)
{
    const struct sigaction action = {.sa_handler = SIG_DFL};
    sigset_t blocked;

    for (int number = 1; number <= SIGRTMAX; number++)
        (void)sigaction(number, &action, NULL);
    sigemptyset(&blocked);
    if (blocks_end) {
        sigaddset(&blocked, SIGINT);
        sigaddset(&blocked, SIGTERM);
    }
    (void)sigprocmask(SIG_SETMASK, &blocked, NULL);
}

/*
 * Between fork(2) and execve(2), where nothing may take a lock. In a process group of its own:
 * Ctrl-C is for the service, which ends its children in order.
 */
static void child_become(const struct job *job, pid_t parent, int input, int output, int errors)
{
    char *arguments[] = {"blkin", JOB_OPTION, (char *)(uintptr_t)job->name, NULL};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL);
    (void)setpgid(0, 0);
    child_default_signals(job->ends_in_order);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(errors, STDERR_FILENO) >= 0) {
        (void)syscall(SYS_close_range, STDERR_FILENO + 1, ~0U, 0);
        (void)execv(PROGRAM, arguments);
    }
    _exit(NO_EXEC);
}

/* The order as a file in memory. Returns -1 with errno set. */
static int child_order_file(const struct child_order *order)
{
    const int fd = memfd_create("blkin-order", MFD_CLOEXEC);

    if (fd < 0 || write_all(fd, order->bytes, order->size))
        return fd;
    close(fd);
    return -1;
}

/* Returns its process, or -1 with errno set. */
static pid_t child_fork(const struct child_order *order, int output, int errors)
{
    const pid_t parent = getpid();
    const int input = child_order_file(order);
    pid_t pid = -1;

    if (input < 0)
        return -1;
    pid = fork();
    if (pid == 0)
        child_become(order->job, parent, input, output, errors);
    close(input);
    return pid;
}

bool child_start(struct loop *loop, struct child *child, const struct child_order *order)
{
    struct output_lines *lines = order->lines;
    int output = order->output ? order->output : STDOUT_FILENO, cause;
    pid_t pid;

    if (lines && !output_lines_open(lines, loop))
        return false;
    pid = lines ? child_fork(order, lines->child_fd, lines->child_fd)
                : child_fork(order, output, STDERR_FILENO);
    cause = errno;
    if (lines)
        close(lines->child_fd);
    if (lines && pid < 0)
        output_lines_close(lines);
    errno = cause;
    if (pid < 0)
        return false;
    child->pid = pid;
    loop_wait_for(loop, child);
    return true;
}

bool child_run(const struct job *job, const void *bytes, size_t size, int *status)
{
    const struct child_order order = {.job = job, .bytes = bytes, .size = size};
    const pid_t pid = child_fork(&order, STDOUT_FILENO, STDERR_FILENO);

    while (pid > 0 && waitpid(pid, status, 0) < 0 && errno == EINTR)
        continue;
    return pid > 0;
}

/* ---- tasks ----------------------------------------------------------------------------------- */

static void task_read(void *context, short events)
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

/* done() may start the task again. */
static void task_end(struct task *task, bool has_worked)
{
    char *result = task->result;

    timer_clear(task->loop, &task->deadline);
    loop_unwatch(task->loop, &task->pipe);
    close(task->pipe.fd);
    task->result = NULL;
    task->done(task->context, has_worked ? result : NULL);
    free(result);
}

static void task_ended(void *context, int status)
{
    struct task *task = context;

    task_read(task, 0);
    task_end(task, status == 0 && task->got == task->size);
}

static void task_hangs(void *context)
{
    struct task *task = context;

    (void)kill(task->child.pid, SIGKILL);
    loop_forget(task->loop, &task->child);
    task_end(task, false);
}

bool task_start(struct loop *loop, struct task *task, const struct job *job, const void *order,
                size_t size, int64_t limit_ms)
{
    struct child_order call = {.job = job, .bytes = order, .size = size};
    char *result = calloc(1, job->result_size + 1);
    int ends[2] = {-1, -1}, cause;
    bool has_started = false;

    if (result && pipe2(ends, O_CLOEXEC) == 0 && fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0) {
        call.output = ends[1];
        task->child = (struct child){.ended = task_ended, .context = task};
        has_started = child_start(loop, &task->child, &call);
    }
    cause = errno;
    if (ends[1] >= 0)
        close(ends[1]);
    if (!has_started) {
        if (ends[0] >= 0)
            close(ends[0]);
        free(result);
        errno = cause;
        return false;
    }
    task->loop = loop;
    task->result = result;
    task->size = job->result_size;
    task->got = 0;
    task->pipe = (struct watched){ends[0], POLLIN, task_read, task, NULL};
    task->deadline = (struct timer){.due = task_hangs, .context = task};
    loop_watch(loop, &task->pipe);
    timer_set(loop, &task->deadline, limit_ms);
    return true;
}
