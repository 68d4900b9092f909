/*
 * The readers: a child for each session on the relay daemon that is followed. It runs babeltrace2's
 * graph with the sink, and is started again when it dies.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_READERS_H
#define BLKIN_LIVE_READERS_H

#include "babeltrace-plugin/account/watch.h"
#include "relay.h"
#include "tools/base/child.h"
#include "tools/base/reader_account.h"

#include <babeltrace2/babeltrace.h>
#include <jansson.h>

#define READERS_MAX 64

extern const struct job readers_job; /* what each of the children does */

struct readers_options {
    char live_url[320]; /* net://HOST:PORT of the relay daemon */
    bool is_own_relay;  /* started by us: it has no sessions of earlier runs */
    char folder[128];   /* the runtime folder */
    char follow[1024];  /* globs of HOST/SESSION, separated by commas */
    json_t *params;     /* the sink's; ours from now on */
    long retry_us;
    int64_t flush_timeout_ms;
    bt_logging_level level;
};

/* Returns false with error set. */
bool readers_read_options(const struct config *config, const struct relay_options *relay,
                          struct readers_options *options, struct error *error);

enum reader_state {
    READER_WAITING, /* to be started: at once, after a back-off, or when the relay daemon is back */
    READER_RUNNING,
    READER_ENDING,
    READER_ENDED /* for good */
};

struct readers;

struct live_reader {
    struct readers *readers;
    char host[256], session[256];
    char file_name[48]; /* of its files in the runtime folder */
    bool is_used, is_own, is_listed, is_attached;
    bool is_retired;  /* its session stood still: not started again */
    bool is_renewed;  /* to be restarted with other parameters */
    unsigned again;   /* what has died in a row without getting on: see AGAIN_MAX */
    int64_t read_ns;  /* trace time, of all children: the latest */
    int64_t began_ns; /* when one has begun that reads nothing of before; 0: all is read */
    struct trace_position from; /* where the next one goes on; 0: from the begin */
    enum reader_state state;
    struct child child;
    pid_t pid; /* of the last child, also when it has ended */
    struct output_lines lines;
    struct timer timer; /* to start it, or to kill it */
    unsigned starts, failures;
    int64_t since_ns;
    int64_t unread_since_ns;   /* 0: somebody reads */
    struct reader_account now; /* of the child, as last seen */
    struct counts before;      /* of the children before it */
    struct watch watch;
};

struct readers_callbacks {
    void (*stalled)(void *context, const struct live_reader *reader);
    void (*all_ended)(void *context);
    void *context;
};

struct readers {
    struct loop *loop;
    struct readers_options options;
    struct readers_callbacks on;
    struct live_reader readers[READERS_MAX];
    struct counts gone;          /* of readers whose session is gone */
    uint64_t killed, lost_spans; /* readers that died, and what waited in them */
    unsigned starts;             /* with these options */
    bool relay_is_up, is_ending, was_full;
    struct timer look;
};

void readers_begin(struct readers *readers, struct loop *loop,
                   const struct readers_options *options,
                   const struct readers_callbacks *callbacks);

/* Others than before: those that run are restarted, one after the other, if anything but `follow`
 * is another. */
void readers_reload(struct readers *readers, const struct readers_options *options);

/* Our own session: its reader is there before it. */
void readers_add_own(struct readers *readers, const char *host, const char *session);

void readers_relay_up(struct readers *readers);
void readers_relay_down(struct readers *readers);
void readers_listed(struct readers *readers, const struct listing *listing);

/* Not started again, and ended after a moment. */
void readers_retire(struct readers *readers, const char *session);

/* Have those of our own session read up to that time of its clock? Those that had nothing to read
 * have, a moment after that time of the wall clock. */
bool readers_have_read(struct readers *readers, int64_t trace_ns, int64_t wall_ns);

/* SIGINT to all; SIGKILL to those that do not end in time. Then all_ended(). */
void readers_end(struct readers *readers);

struct counts readers_counts(struct readers *readers);
bool readers_has_attached_own(const struct readers *readers);
unsigned readers_running(const struct readers *readers);
json_t *readers_json(struct readers *readers);
json_t *readers_statistics(struct readers *readers); /* an array, for `blkin stat` */

#endif
