/*
 * Buries what a dead session has left (bury.h), in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_BURIAL_H
#define BLKIN_TOOLS_ROTATE_BURIAL_H

#include "store.h"
#include "tools/base/child.h"

extern const struct job burial_job;

struct burial {
    struct loop *loop;
    const struct store *store;
    /* problem NULL: it is buried, or somebody still writes there */
    void (*ended)(void *context, const char *problem);
    void *context;
    /* its own */
    struct task task;
    bool is_under_way;
    char place[PLACE_MAX];
    struct error waits; /* why it was not buried, if it waits */
    int64_t named_ms;   /* when the process that keeps a file open was looked for; 0: never */
    unsigned failures;  /* in a row */
    int64_t failed_ms;
};

/* Of a place in which nothing has changed for quiet_s. */
void burial_start(struct burial *burial, const char *place, int64_t quiet_s);

/* What cannot be read now is not tried again at once: twice as long after each failure, up to a
 * minute. */
bool burial_is_paused(const struct burial *burial);

#endif
