/*
 * Children of a service: work that may hang or crash runs in a process of its own.
 *
 * A service has threads, so it forks only to call execve(2). A child executes the same program
 * again. The name of a job is its argument; an order (bytes) is its standard input. The child has
 * no memory of its parent: the order contains everything that the job needs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CHILD_H
#define BLKIN_TOOLS_CHILD_H

#include "loop.h"

#include <stddef.h>

/* Logs the lines that a child writes to its standard output and error, with the child's name. */
struct output_lines {
    struct loop *loop;
    char source[352];     /* the child's name in the log */
    const char *ignored;  /* lines that begin with this text are not logged; NULL: none */
    struct watched input; /* fd -1: the child has ended, or was not started */
    int child_fd;         /* the child's end of the pipe */
    char line[4096];
    size_t length;
};

/* The caller passes child_fd to the child, then closes it. Returns false with errno set. */
bool output_lines_open(struct output_lines *lines, struct loop *loop);

/* Logs the unread output of the child, 256 KiB at most, and closes the pipe. */
void output_lines_close(struct output_lines *lines);

/* Fills a result that has no pointers. Returns whether the task succeeded. */
typedef bool task_fn(const void *order, void *result);

struct job {
    const char *name;
    int (*run)(const void *order, size_t size); /* returns the exit status; NULL: a task */
    bool ends_cleanly; /* SIGINT and SIGTERM are blocked until run() calls job_unblock_end() */
    task_fn *fill;
    size_t result_size;
    bool stays; /* the child waits for the next task, so that a frequent task costs no start */
};

/*
 * main() calls this function first. In a child with a job, runs the job, sets *status to the exit
 * status, and returns true. The list of jobs ends with NULL.
 */
bool job_run_in_child(int argc, char *argv[], const struct job *const jobs[], int *status);

void job_unblock_end(void);

struct child_order {
    const struct job *job;
    const void *bytes;
    size_t size;
    struct output_lines
        *lines;     /* logs the child's output. The caller sets source and ignored; NULL: no log */
    int output;     /* the child's standard output if there are no lines; 0: that of the parent */
    const int *fds; /* descriptors that the child inherits, in ascending order */
    size_t fd_count;
};

/*
 * The caller has set the child's members `ended` and `context`. The child ignores SIGPIPE, has
 * no other signal handlers, and blocks no signal unless its job ends_cleanly. The child dies with
 * its parent (PR_SET_PDEATHSIG), and inherits only the descriptors of the order. Returns false with
 * errno set and lines closed.
 */
bool child_start(struct loop *loop, struct child *child, const struct child_order *order);

struct task {
    /* result NULL: the task hung, failed or was killed */
    void (*done)(void *context, const void *result);
    void *context;
    const int *fds; /* descriptors for a child that does not stay, in ascending order */
    size_t fd_count;
    bool is_running; /* read-only for the caller */
    /* private */
    struct loop *loop;
    const struct job *job;
    struct child child; /* a child that stays exists also while no task runs */
    int order_fd;       /* the file with the child's order */
    unsigned uses;      /* tasks that the child has run */
    struct watched pipe;
    struct timer deadline;
    char *result; /* the result, then a byte that tells whether the task succeeded */
    size_t got;
};

/* No task of this struct may be running. Kills the child after limit_ms. Returns false with errno
 * set and without calling done(). */
bool task_start(struct loop *loop, struct task *task, const struct job *job, const void *order,
                size_t size, int64_t limit_ms);

#endif
