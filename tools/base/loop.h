/*
 * The event loop of a service: one thread, which waits for descriptors, times, children and the
 * signals that end or reload it. Nothing that can hang is called in it: see child.h.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LOOP_H
#define BLKIN_TOOLS_LOOP_H

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

/* Until loop_stop(). Returns false with errno set if it cannot wait any more. */
bool loop_run(struct loop *loop);
void loop_stop(struct loop *loop);

/* ---- descriptors: `ready` is called while poll(2) says so, or once too often: they do not block
 */

struct watched {
    int fd;
    short events;
    void (*ready)(void *context, short events);
    void *context;
    struct watched *next; /* the loop's */
};

void loop_watch(struct loop *loop, struct watched *watched);
void loop_unwatch(struct loop *loop, struct watched *watched);

/* ---- times */

struct timer {
    void (*due)(void *context);
    void *context;
    int64_t at_ms; /* the loop's, as is next */
    struct timer *next;
};

/* Once, in that many ms; a timer that is set already is set anew. */
void timer_set(struct loop *loop, struct timer *timer, int64_t in_ms);
void timer_clear(struct loop *loop, struct timer *timer);

/* ---- children: child.h starts them */

struct child {
    void (*ended)(void *context, int status); /* as of waitpid(2) */
    void *context;
    pid_t pid; /* 0: none runs */
    struct child *next;
};

/* Its pid is set: ended() is called when it has ended. */
void loop_wait_for(struct loop *loop, struct child *child);

/* Whenever it ends, nobody is told. */
void loop_forget(struct loop *loop, struct child *child);

#endif
