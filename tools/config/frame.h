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

/* What the service itself does. */
struct frame_calls {
    const char *name;  /* of the control socket: "agent" */
    const char *title; /* begins each line of the log: "blkin agent" */
    /* For `blkin status`: what is its own. NULL: out of memory. */
    json_t *(*status)(void *context);
    /* Takes over another configuration. It may free that and put one of its own in the place. The
     * frame frees the configuration before. Returns false with error set: that one still holds.
     * NULL: nothing has to be done. */
    bool (*take)(void *context, struct config **config, struct error *error);
    /* Any other request on the control socket; NULL if there is none. */
    json_t *(*ask)(void *context, const char *request);
    char *(*page)(void *context); /* of metrics; NULL: the service has none, or one of its own */
    /* SIGTERM and SIGINT; NULL: loop_stop() is all */
    void (*end)(void *context);
};

struct frame {
    const struct frame_calls *calls;
    void *context;
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct timer watchdog;
    struct timer hour;
    json_t *counted, *counted_before; /* half an hour ago at most, and an hour: what status told */
    int64_t counted_ns, counted_before_ns;
};

/* Reads the configuration; no operand is allowed. Returns false after it has said why, or has
 * printed the usage, with *status as the exit status. */
bool frame_read(struct frame *frame, const struct frame_calls *calls, void *context,
                const struct config_request *request, int argc, char *argv[], int *status);

/* The same with a configuration that the service has read; the frame frees it. */
void frame_begin(struct frame *frame, const struct frame_calls *calls, void *context,
                 struct config *config);

/* The loop, and the control socket: who has it is the only service of this name. Returns false with
 * error set. */
bool frame_open(struct frame *frame, struct error *error);

/* The two parts of frame_open(). A service that waits until another one of its name has ended tries
 * the second part again and again. */
bool frame_open_loop(struct frame *frame, struct error *error);
bool frame_open_control(struct frame *frame, struct error *error);

/* The page of metrics, if the key prometheus-listen names a place for it. */
bool frame_open_page(struct frame *frame, struct error *error);

/* The thread that writes state: see saver.h. The service ends it with saver_end(). */
bool frame_open_saver(struct frame *frame, struct error *error);

/* Until loop_stop(). Returns false after it has said why. */
bool frame_run(struct frame *frame);

void frame_close(struct frame *frame);

#endif
