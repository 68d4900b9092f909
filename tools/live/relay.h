/*
 * The relay daemon, started by this service or already running, and the list of its sessions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_RELAY_H
#define BLKIN_LIVE_RELAY_H

#include "babeltrace-plugin/base/error.h"
#include "tools/reader/graph.h"
#include "tools/base/loop.h"
#include "tools/base/child.h"
#include "tools/config/config.h"

#include <jansson.h>

extern const struct job relay_job;

struct relay_options {
    bool is_own;
    char host[256]; /* the own daemon's listening address, or a foreign daemon's host */
    int control_port, data_port, live_port;
    char output[4096]; /* the own daemon's folder */
};

/* Returns false with error set. */
bool relay_read_options(const struct config *config, struct relay_options *options,
                        struct error *error);

/* Returns options with an address to connect to: 127.0.0.1 in place of 0.0.0.0. */
struct relay_options relay_reached(const struct relay_options *options);

/* The relay daemon came up, went down, or listed its sessions. */
struct relay_callbacks {
    void (*up)(void *context);
    void (*down)(void *context);
    void (*listed)(void *context, const struct listing *listing);
    /* the own daemon cannot be started at all */
    void (*failed)(void *context, const struct error *error);
    void *context;
};

enum relay_state { RELAY_DOWN, RELAY_STARTING, RELAY_UP };

struct relay {
    struct loop *loop;
    struct relay_options options;
    struct relay_callbacks on;
    enum relay_state state;
    unsigned starts, failures; /* failures: in a row */
    int64_t since_ns, started_ms;
    struct child child;
    struct output_lines lines;
    struct timer timer; /* the next start, check or listing */
    struct task task;
    bool is_listing, has_listed, is_ending;
    bool is_urgent;         /* a caller waits for the list */
    struct listing listing; /* the last one */
    void (*ended)(void *context);
};

void relay_begin(struct relay *relay, struct loop *loop, const struct relay_options *options,
                 const struct relay_callbacks *callbacks);

/* Ends the own daemon and calls ended() afterwards; at once for a foreign daemon. */
void relay_end(struct relay *relay, void (*ended)(void *context));

/* The URLs for sessions and for viewers. */
void relay_url(const struct relay_options *options, char *url, size_t size);
void relay_live_url(const struct relay_options *options, char *url, size_t size);

/*
 * The relay daemon keeps the files of ended sessions in FOLDER/HOST/SESSION-DATE-TIME. The service
 * deletes a folder without changes for an hour unless its session is live. The service deletes all
 * folders before its own daemon starts, and after its own daemon has ended.
 */
#define SWEEP_AGE_S 3600

/* Zeros at first. */
struct sweep {
    struct thread_job job; /* a slow disk must not delay the service */
    const char *folder;
    struct listing live;
};

/* Deletes all sessions and the empty folders of hosts. No relay daemon may run. */
void relay_sweep_all(const char *folder);

/* Starts a thread that deletes old folders of sessions that are not in the listing. Does nothing
 * while an earlier thread runs. The sweep and the folder's text must outlive the thread. */
void relay_sweep(struct sweep *sweep, struct loop *loop, const char *folder,
                 const struct listing *live);

json_t *relay_json(const struct relay *relay);

#endif
