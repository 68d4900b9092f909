/*
 * Children of a service: what may hang or die is done in a process of its own.
 *
 * A service has threads, so it forks only to execute. A child that is no other program is this
 * program again: it is told the name of a job, and gets an order, some bytes, on its standard
 * input. What it needs to know has to be in the order: it has no memory of its parent.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_CHILD_H
#define BLKIN_TOOLS_CHILD_H

#include "loop.h"

#include <jansson.h>
#include <stddef.h>

/* What a child writes on its standard output and error: line by line, told with its name. */

struct output_lines {
    struct loop *loop;
    char source[352];     /* who it is */
    const char *dull;     /* how lines begin that are not told; NULL: none */
    struct watched input; /* fd -1: it has ended, or has not begun */
    int child_fd;         /* the other end */
    char line[4096];
    size_t length;
};

/* child_fd is for the child, and then to be closed. Returns false with errno set. */
bool output_lines_open(struct output_lines *lines, struct loop *loop);

/* Says what is left. */
void output_lines_close(struct output_lines *lines);

/* A task fills a result of a plain type (no pointers in it), and returns whether it has worked. */
typedef bool task_fn(const void *order, void *result);

struct job {
    const char *name;
    int (*run)(const void *order, size_t size); /* returns the exit status; NULL: it is a task */
    bool ends_in_order; /* SIGINT and SIGTERM wait until run() calls job_unblock_end() */
    task_fn *fill;
    size_t result_size;
    bool stays; /* its child waits for the next task: what is asked each second costs no start */
};

/*
 * The first thing that main() does: is this process a child that has a job of these (the list ends
 * with NULL)? Then it is done, and *status is what to exit with.
 */
bool job_is_done(int argc, char *argv[], const struct job *const jobs[], int *status);

void job_unblock_end(void);

struct child_order {
    const struct job *job;
    const void *bytes;
    size_t size;
    struct output_lines *lines; /* take what it writes; all is set but the loop; NULL: none */
    int output;                 /* with no lines: becomes its standard output; 0: it has ours */
    const int *fds;             /* descriptors that it has, too: the least first */
    size_t fd_count;
};

/*
 * The child has default signals, none blocked, dies with us (PR_SET_PDEATHSIG), and has none of our
 * descriptors but those of the order. Returns false with errno set, and lines closed.
 */
bool child_start(struct loop *loop, struct child *child, const struct child_order *order);

/* The same with an order in JSON, which is taken; NULL: out of memory. */
bool child_start_json(struct loop *loop, struct child *child, const struct job *job, json_t *order,
                      struct output_lines *lines);

struct task {
    void (*done)(void *context, const void *result); /* NULL: it hung, was killed or has failed */
    void *context;
    const int
        *fds; /* descriptors that its child has, too: the least first. Not for one that stays */
    size_t fd_count;
    bool is_running; /* to be read only */
    /* its own */
    struct loop *loop;
    const struct job *job;
    struct child child; /* may wait while no task runs */
    int order_fd;       /* of the child */
    unsigned uses;
    struct watched pipe;
    struct timer deadline;
    char *result; /* and a byte behind it: has it worked? */
    size_t got;
};

/* None runs. Returns false with errno set; then done() is not called. */
bool task_start(struct loop *loop, struct task *task, const struct job *job, const void *order,
                size_t size, int64_t limit_ms);

/* Kills the one that runs: done(NULL) is called soon. */
void task_kill(struct task *task);

#endif
