/*
 * The frame of a service: its configuration, loop, control socket, page of metrics and watchdog,
 * and what happens at SIGHUP, SIGTERM, `blkin status` and `blkin reload`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FRAME_H
#define BLKIN_TOOLS_FRAME_H

#include "config.h"
#include "tools/base/control.h"
#include "tools/base/loop.h"
#include "tools/base/metrics.h"
#include "tools/base/watchdog.h"

/* What the service itself does. */
struct frame_calls {
    const char *name; /* "rotate" */
    /* For `blkin status`: what is its own. NULL: out of memory. */
    json_t *(*status)(void *context);
    /* Takes over another configuration: the frame frees the one before. Returns false with error
     * set: the old one holds. NULL: nothing has to be done. */
    bool (*take)(void *context, const struct config *config, struct error *error);
    /* Any other request on the control socket; NULL if there is none. */
    json_t *(*ask)(void *context, const char *request);
    char *(*page)(void *context); /* of metrics; NULL: the service has none, or one of its own */
    void (*end)(void *context);   /* SIGTERM and SIGINT */
};

struct frame {
    const struct frame_calls *calls;
    void *context;
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct watchdog watchdog;
    char title[32]; /* "blkin rotate": what it says begins with that */
};

/* Reads the configuration; no operand is allowed. Returns false after it has said why, or has
 * printed the usage, with *status as the exit status. */
bool frame_read(struct frame *frame, const struct frame_calls *calls, void *context,
                const struct config_request *request, int argc, char *argv[], int *status);

/* The loop, and the control socket: who has it is the only service of this name. Returns false with
 * error set. */
bool frame_open(struct frame *frame, struct error *error);

/* The page of metrics, if the key prometheus-listen names a place for it. */
bool frame_open_page(struct frame *frame, struct error *error);

/* Until loop_stop(). Returns false after it has said why. */
bool frame_run(struct frame *frame);

void frame_close(struct frame *frame);

#endif
