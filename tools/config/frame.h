/*
 * The frame of a service: its configuration, loop, control socket, metrics page and watchdog. The
 * frame handles SIGHUP, SIGTERM, `blkin status` and `blkin reload`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FRAME_H
#define BLKIN_TOOLS_FRAME_H

#include "config.h"
#include "tools/base/control.h"
#include "tools/base/loop.h"
#include "tools/base/metrics.h"

/* The functions and names that the service gives to the frame. */
struct frame_calls {
    const char *name;  /* of the control socket: "agent" */
    const char *title; /* begins each line of the log: "blkin agent" */
    /* Returns the service's part of `blkin status`. NULL: out of memory. */
    json_t *(*status)(void *context);
    /* Applies a new configuration. May set *config to another one. Returns false with error set to
     * keep the old configuration. The frame frees the configuration that is not in force. NULL:
     * the service has nothing to do. */
    bool (*take)(void *context, struct config **config, struct error *error);
    /* Answers other requests on the control socket. Returns NULL for an unknown request. */
    json_t *(*ask)(void *context, const char *request);
    char *(*page)(void *context); /* the metrics page; NULL: none, or served by the service */
    /* at SIGTERM and SIGINT; NULL: loop_stop() */
    void (*end)(void *context);
};

/* The configuration for all hosts, from CONFIG_TOPIC. */
struct frame_topic {
    char *text; /* in force; NULL or "": none */
    int64_t since_ns;
    struct error error; /* why the last text is refused; "": in force */
};

struct frame {
    const struct frame_calls *calls;
    void *context;
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct timer watchdog;
    struct timer counting;
    struct frame_topic topic;
    /* the status at the last call of `counting`, at most half an hour ago, and at the call before
     */
    json_t *counted, *counted_before;
    int64_t counted_ns, counted_before_ns;
};

/* Reads the configuration; allows no operand. Returns false after printing errors or the usage,
 * with *status set to the exit status. */
bool frame_read(struct frame *frame, const struct frame_calls *calls, void *context,
                const struct config_request *request, int argc, char *argv[], int *status);

/* Opens the loop, the saver (saver.h) and the control socket, which only one service of this name
 * can have. The service calls saver_end() at its end. Returns false with error set. */
bool frame_open(struct frame *frame, struct error *error);

/* Opens the metrics page if the key prometheus-listen is set. */
bool frame_open_page(struct frame *frame, struct error *error);

/* Applies the text of CONFIG_TOPIC like a reload, and logs the result. "": the topic is empty. If
 * the text is wrong, the former text stays in force. */
void frame_take_topic(struct frame *frame, const char *text);

/* Runs the loop until loop_stop(). Returns false after logging the reason. */
bool frame_run(struct frame *frame);

void frame_close(struct frame *frame);

#endif
