/*
 * The watcher: a child that polls the alarm, as long as the agent lives. One process for all polls,
 * as to fork for each costs more than the poll; a child, as LTTng may hang.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WATCHER_H
#define BLKIN_TOOLS_WATCHER_H

#include "heard.h"
#include "tools/base/child.h"

extern const struct job watcher_job;

struct watcher_poll {
    bool is_well;    /* else: problem */
    bool is_stalled; /* a stream of the alarm's session has stood still */
    uint64_t lost;   /* alarms, since the last poll */
    uint64_t newer;  /* the same: of a version that is not known here */
    struct error problem;
};

struct watcher {
    struct loop *loop;
    const char *session;
    char folder[4096]; /* of its snapshots, on a tmpfs: it is made and removed */
    int64_t poll_ms;
    const struct heard *heard;     /* what earlier children have told */
    void (*begins)(void *context); /* a new child: what the last one has told may come again */
    void (*alarm)(void *context, const struct alarm *alarm);
    void (*polled)(void *context, const struct watcher_poll *poll);
    void (*over)(void *context); /* after watcher_stop(): the child has ended */
    void *context;
    /* its own */
    struct child child;
    struct watched pipe; /* fd -1: none */
    struct timer timer;  /* it is late, or is to be started again */
    bool is_stopping;
};

void watcher_start(struct watcher *watcher);
/* Its child ends after the poll that is under way, or is killed. */
void watcher_stop(struct watcher *watcher);

#endif
