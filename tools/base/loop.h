/*
 * The event loop of a service. One thread waits for descriptors, timers, children, and the signals
 * that end or reload the service. A callback must not block: blocking work runs in a child
 * (child.h) or in a thread (struct thread_job).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LOOP_H
#define BLKIN_TOOLS_LOOP_H

#include "babeltrace-plugin/base/listen.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct loop;

struct loop_signals {
    void (*end)(void *context);    /* SIGTERM, SIGINT */
    void (*reload)(void *context); /* SIGHUP */
    void *context;
};

/* Blocks these signals and SIGCHLD. Returns NULL with errno set. */
struct loop *loop_new(const struct loop_signals *signals);
void loop_free(struct loop *loop);

/* Runs until loop_stop(). Returns false with errno set if poll(2) fails. */
bool loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* ---- descriptors: the loop may call `ready` once too often, so a descriptor must not block */

struct watched {
    int fd;
    short events;
    void (*ready)(void *context);
    void *context;
    struct watched *next; /* private to the loop */
    short found;          /* the events of the last poll(2): the loop sets them before ready() */
};

void loop_watch(struct loop *loop, struct watched *watched);
void loop_unwatch(struct loop *loop, struct watched *watched);

/* ---- times */

struct timer {
    void (*due)(void *context);
    void *context;
    int64_t at_ms; /* private to the loop, like next */
    struct timer *next;
};

/* Calls due() once, in in_ms. Replaces the time of a timer that is set. */
void timer_set(struct loop *loop, struct timer *timer, int64_t in_ms);
void timer_clear(struct loop *loop, struct timer *timer);

/* ---- children: child.h starts them */

struct child {
    void (*ended)(void *context, int status); /* the status of waitpid(2) */
    void *context;
    pid_t pid; /* 0: no child runs */
    struct child *next;
};

/* The caller has set the child's members. The loop calls ended() after the child's end. */
void loop_wait_for(struct loop *loop, struct child *child);

/* The loop reaps the child without calling ended(). */
void loop_forget(struct loop *loop, struct child *child);

/* ---- threads: unlike a task (child.h), which is another process, a thread can use the open
 * librdkafka and libcurl clients of the service */

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

/* The caller has set the members up to context. Returns false with errno set. */
bool thread_job_start(struct loop *loop, struct thread_job *job);

/* Waits for a running thread, without calling done(). */
void thread_job_end(struct thread_job *job);

/* ---- listeners ------------------------------------------------------------------------------- */

/* Accepts the connections of a listening socket (babeltrace-plugin/base/listen.h) in the loop. The
 * owner sets the members up to context. */
struct accepting {
    /* Takes an accepted connection. Its descriptor does not block. */
    void (*take_connection)(void *context, int fd, const union peer_address *from,
                            socklen_t length);
    /* Returns whether the service is full: connections then wait in the socket's queue, and the
     * next accept comes after the back-off. NULL: never full. */
    bool (*is_full)(void *context);
    void *context;
    /* private */
    struct loop *loop; /* NULL: not begun */
    struct listener listener;
    struct watched watched;
    struct timer again; /* after a back-off */
};

/* fd is a listening socket. The owner closes it after accepting_end(). */
void accepting_begin(struct accepting *accepting, struct loop *loop, int fd);

/* Does nothing if accepting_begin() was not called. */
void accepting_end(struct accepting *accepting);

#endif
