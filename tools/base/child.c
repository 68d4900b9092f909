/* SPDX-License-Identifier: BSD-2-Clause */
#include "child.h"

#include "babeltrace-plugin/base/file.h"
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
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PROGRAM    "/proc/self/exe" /* the same version, also after an upgrade on disk */
#define JOB_OPTION "--job"
#define NO_EXEC    126 /* the exit status if execve(2) fails */

/* _Fork(3) does not run the handlers of pthread_atfork(3): LTTng's start threads in the child.
 * ThreadSanitizer needs its handlers. */
#ifdef __SANITIZE_THREAD__
#define FORK fork
#else
#define FORK _Fork
#endif

/* ---- in the child ---------------------------------------------------------------------------- */

/* Returns the whole order; NULL: none. */
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

/*
 * Runs one task, or one task after the other if the child stays. The standard output is a socket. A
 * byte from there starts a task, and the result goes there. So the output of libraries moves to the
 * standard error.
 */
static int job_run_tasks(const struct job *job)
{
    const int socket = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    char *result = malloc(job->result_size + 1);
    char *order, begin;
    size_t size;

    (void)dup2(STDERR_FILENO, STDOUT_FILENO);
    while (result && read(socket, &begin, 1) == 1 && (order = job_read_order(&size)) != NULL) {
        memset(result, 0, job->result_size);
        result[job->result_size] = job->fill(order, result);
        free(order);
        if (!write_all(socket, result, job->result_size + 1) || !job->stays)
            break;
    }
    free(result);
    return 0;
}

bool job_run_in_child(int argc, char *argv[], const struct job *const jobs[], int *status)
{
    static char service[64]; /* the job "live-reader" logs as "blkin live" */
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
        free(order);
        return true;
    }
    (void)snprintf(service, sizeof(service), "blkin %.*s", (int)strcspn(name, "-"), name);
    say_open(service, "warning");
    (void)prctl(PR_SET_NAME, "blkin"); /* not "exe" */
    (void)signal(SIGPIPE, SIG_IGN);    /* the service, which reads the output, may be killed */
    *status = (*jobs)->run ? (*jobs)->run(order, size) : job_run_tasks(*jobs);
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

/* ---- starting a child ------------------------------------------------------------------------ */

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

/* Closes all descriptors except 0 to 2 and the given ones, which are in ascending order. */
static void child_close_others(const int *fds, size_t count)
{
    unsigned next = STDERR_FILENO + 1;

    for (size_t i = 0; i < count; i++) {
        if ((unsigned)fds[i] > next)
            (void)syscall(SYS_close_range, next, (unsigned)fds[i] - 1, 0);
        (void)fcntl(fds[i], F_SETFD, 0);
        next = (unsigned)fds[i] + 1;
    }
    (void)syscall(SYS_close_range, next, ~0U, 0);
}

/*
 * Runs between fork(2) and execve(2), so no function here may take a lock. The child has a process
 * group of its own: Ctrl-C goes to the service only, which then ends its children cleanly.
 */
static void child_become(const struct child_order *order, pid_t parent, int input, int output,
                         int errors)
{
    const struct job *job = order->job;
    char *arguments[] = {"blkin", JOB_OPTION, (char *)(uintptr_t)job->name, NULL};

    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent)
        _exit(128 + SIGKILL);
    (void)setpgid(0, 0);
    child_default_signals(job->ends_cleanly);
    if (dup2(input, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 &&
        dup2(errors, STDERR_FILENO) >= 0) {
        child_close_others(order->fds, order->fd_count);
        (void)execv(PROGRAM, arguments);
    }
    _exit(NO_EXEC);
}

/* fd: a memfd. Returns false with errno set. */
static bool child_write_order(int fd, const void *bytes, size_t size)
{
    return ftruncate(fd, 0) == 0 && lseek(fd, 0, SEEK_SET) == 0 && write_all(fd, bytes, size);
}

/* Returns the child's pid, or -1 with errno set. *kept: the memfd with the order; NULL: the
 * function closes it. */
static pid_t child_fork(const struct child_order *order, int output, int errors, int *kept)
{
    const pid_t parent = getpid();
    const int input = memfd_create("blkin-order", MFD_CLOEXEC);
    pid_t pid = -1;

    if (input >= 0 && child_write_order(input, order->bytes, order->size)) {
        pid = FORK();
        if (pid == 0)
            child_become(order, parent, input, output, errors);
    }
    if (kept && pid > 0)
        *kept = input;
    else if (input >= 0)
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
    pid = lines ? child_fork(order, lines->child_fd, lines->child_fd, NULL)
                : child_fork(order, output, STDERR_FILENO, NULL);
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

/* ---- tasks ----------------------------------------------------------------------------------- */

#define TASK_USES 1000 /* tasks of one child; then a new child starts, as a library may leak */

/* Closes the child's socket: a waiting child then ends by itself. */
static void task_leave_child(struct task *task)
{
    if (!task->child.pid)
        return;
    loop_forget(task->loop, &task->child);
    loop_unwatch(task->loop, &task->pipe);
    close(task->pipe.fd);
    close(task->order_fd);
}

/* Calls done(), which may start the task again. */
static void task_end(struct task *task)
{
    const size_t size = task->job->result_size;
    char *result = task->result;
    const bool has_worked = task->got == size + 1 && result[size];

    timer_clear(task->loop, &task->deadline);
    task->result = NULL;
    task->is_running = false;
    task->done(task->context, has_worked ? result : NULL);
    free(result);
}

/* Returns the result of the last read(2). */
static ssize_t task_receive(struct task *task)
{
    const size_t size = task->job->result_size + 1;
    ssize_t n = 0;

    while (task->is_running && task->got < size &&
           ((n = read(task->pipe.fd, task->result + task->got, size - task->got)) > 0 ||
            (n < 0 && errno == EINTR)))
        task->got += n > 0 ? (size_t)n : 0;
    return n;
}

static void task_read(void *context)
{
    struct task *task = context;
    const ssize_t n = task_receive(task);

    if (task->is_running && task->got == task->job->result_size + 1) {
        if (!task->job->stays)
            task_leave_child(task);
        task_end(task);
    } else if (n == 0) { /* the child has closed its end */
        loop_unwatch(task->loop, &task->pipe);
    }
}

static void task_child_ended(void *context, int status)
{
    struct task *task = context;

    (void)status;
    (void)task_receive(task); /* the result may still be in the socket */
    loop_unwatch(task->loop, &task->pipe);
    close(task->pipe.fd);
    close(task->order_fd);
    if (task->is_running)
        task_end(task);
}

static void task_hangs(void *context)
{
    struct task *task = context;

    (void)kill(task->child.pid, SIGKILL);
    task_leave_child(task);
    task_end(task);
}

/* Returns false with errno set. */
static bool task_start_child(struct task *task, const void *order, size_t size)
{
    const struct child_order call = {.job = task->job,
                                     .bytes = order,
                                     .size = size,
                                     .fds = task->fds,
                                     .fd_count = task->fd_count};
    int ends[2], cause;
    pid_t pid;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return false;
    pid = fcntl(ends[0], F_SETFL, O_NONBLOCK) == 0
              ? child_fork(&call, ends[1], STDERR_FILENO, &task->order_fd)
              : -1;
    cause = errno;
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        errno = cause;
        return false;
    }
    task->uses = 0;
    task->child = (struct child){.ended = task_child_ended, .context = task, .pid = pid};
    task->pipe = (struct watched){ends[0], POLLIN, task_read, task, NULL, 0};
    loop_wait_for(task->loop, &task->child);
    loop_watch(task->loop, &task->pipe);
    return true;
}

static bool task_begin(struct task *task)
{
    return send(task->pipe.fd, "", 1, MSG_NOSIGNAL) == 1;
}

bool task_start(struct loop *loop, struct task *task, const struct job *job, const void *order,
                size_t size, int64_t limit_ms)
{
    char *result = malloc(job->result_size + 1);
    bool has_begun = task->child.pid && task->job == job && ++task->uses < TASK_USES &&
                     child_write_order(task->order_fd, order, size) && task_begin(task);

    task->loop = loop;
    task->job = job;
    if (!has_begun && result) {
        task_leave_child(task);
        has_begun = task_start_child(task, order, size) && task_begin(task);
    }
    if (!has_begun || !result) {
        free(result);
        return false;
    }
    task->is_running = true;
    task->result = result;
    task->got = 0;
    task->deadline = (struct timer){.due = task_hangs, .context = task};
    timer_set(loop, &task->deadline, limit_ms);
    return true;
}

/* ---- output of a child ----------------------------------------------------------------------- */

static void lines_log(struct output_lines *lines)
{
    const char *line = lines->line;

    lines->line[lines->length] = '\0';
    if (*line && !(lines->ignored && strncmp(line, lines->ignored, strlen(lines->ignored)) == 0))
        say_line(lines->source, line);
    lines->length = 0;
}

/* Returns whether the pipe may have more output. */
static bool lines_read_some(struct output_lines *lines)
{
    char text[4096];
    const ssize_t n = read(lines->input.fd, text, sizeof(text));

    for (ssize_t i = 0; i < n; i++) {
        if (text[i] == '\n')
            lines_log(lines);
        else if (lines->length < sizeof(lines->line) - 1)
            lines->line[lines->length++] = text[i];
    }
    return n > 0 || (n < 0 && errno == EINTR);
}

static void lines_ready(void *context)
{
    struct output_lines *lines = context;

    if (!lines_read_some(lines) && lines->input.found & (POLLHUP | POLLERR))
        output_lines_close(lines);
}

bool output_lines_open(struct output_lines *lines, struct loop *loop)
{
    int ends[2];

    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    lines->loop = loop;
    lines->length = 0;
    lines->child_fd = ends[1];
    lines->input = (struct watched){ends[0], POLLIN, lines_ready, lines, NULL, 0};
    (void)fcntl(ends[0], F_SETFL, O_NONBLOCK);
    loop_watch(loop, &lines->input);
    return true;
}

void output_lines_close(struct output_lines *lines)
{
    if (lines->input.fd < 0)
        return;
    for (int i = 0; i < 64 && lines_read_some(lines); i++) /* a grandchild may write without end */
        ;
    if (lines->length)
        lines_log(lines);
    loop_unwatch(lines->loop, &lines->input);
    close(lines->input.fd);
    lines->input.fd = -1;
}
