/*
 * The readers: a child for each followed session on the relay daemon. A child runs babeltrace2's
 * graph with the sink. The service restarts a child that dies.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_READERS_H
#define BLKIN_LIVE_READERS_H

#include "babeltrace-plugin/account/account.h"
#include "relay.h"
#include "tools/base/child.h"
#include "tools/base/totals.h"

#include <babeltrace2/babeltrace.h>
#include <jansson.h>

#define READERS_MAX 64

extern const struct job readers_job; /* the job of each child */

struct readers_options {
    char live_url[320]; /* net://HOST:PORT of the relay daemon */
    bool is_own_relay;  /* the service starts the daemon, which has no sessions of earlier runs */
    char folder[128];   /* the runtime folder */
    char follow[1024];  /* globs of HOST/SESSION, separated by commas */
    json_t *params;     /* the sink's parameters, owned by the struct */
    long retry_us;
    int64_t flush_timeout_ms;
    bt_logging_level level;
};

/* Returns false with error set. */
bool readers_read_options(const struct config *config, const struct relay_options *relay,
                          struct readers_options *options, struct error *error);

enum reader_state {
    READER_WAITING, /* starts at once, after a back-off, or when the relay daemon is back */
    READER_RUNNING,
    READER_ENDING,
    READER_ENDED /* will not start again */
};

struct readers;

struct live_reader {
    struct readers *readers;
    char host[256], session[256];
    char file_name[48]; /* of its spool, and the prefix of its files in the runtime folder */
    bool is_used, is_own, is_attached;
    bool is_listed, was_listed; /* in the last listing, and in the one before */
    bool has_streams;           /* the last listing has streams of the session */
    bool is_retired;            /* the session stalled: no restart */
    bool is_renewed;            /* restarts with new parameters */
    bool is_gone;               /* the session is gone: the child sends what the spool has */
    unsigned death_points;      /* for deaths in a row without progress: see DEATH_POINTS_MAX */
    int64_t read_ns;            /* the latest trace time of all children */
    int64_t began_ns;           /* the start of a child that skips older events; 0: none skips */
    struct trace_position from; /* the next child's start; 0: the session's begin */
    enum reader_state state;
    struct child child;
    pid_t pid; /* of the last child, also after its end */
    struct output_lines lines;
    struct timer timer; /* to start or kill the child */
    unsigned starts, failures;
    int64_t since_ns;          /* the last change of state */
    int64_t unread_since_ns;   /* 0: a child reads */
    struct reader_account now; /* the child's last account */
    struct counts before;      /* of earlier children */
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
    struct counts gone;        /* sums of readers whose session is gone */
    uint64_t died, lost_spans; /* readers that died, and undelivered spans in them */
    unsigned starts;           /* starts with the current endpoint */
    bool relay_is_up, is_ending, was_full, has_looked_for_spools;
    struct timer look;
};

void readers_begin(struct readers *readers, struct loop *loop,
                   const struct readers_options *options,
                   const struct readers_callbacks *callbacks);

/* Takes new options. If params, retry_us or level have changed, restarts the readers one after the
 * other. */
void readers_reload(struct readers *readers, const struct readers_options *options);

/* Adds the reader of the service's own session, before the session exists. */
void readers_add_own(struct readers *readers, const char *host, const char *session);

void readers_relay_up(struct readers *readers);
void readers_relay_down(struct readers *readers);
void readers_listed(struct readers *readers, const struct listing *listing);

/* Ends the session's reader after a delay, without a restart. */
void readers_retire(struct readers *readers, const char *session);

/* Returns whether the readers of the service's own session have read up to trace_ns of the
 * session's clock. A reader of a session without streams counts as done shortly after wall_ns. */
bool readers_have_read(struct readers *readers, int64_t trace_ns, int64_t wall_ns);

/* Sends SIGINT to all readers, and later SIGKILL to readers that still run. Then calls all_ended().
 */
void readers_end(struct readers *readers);

struct counts readers_counts(struct readers *readers);
bool readers_has_attached_own(struct readers *readers);
unsigned readers_running(struct readers *readers);
json_t *readers_json(struct readers *readers);
json_t *readers_statistics(struct readers *readers); /* an array, for `blkin stat` */

/* ---- shared by readers.c, readers_child.c and readers_account.c ---- */

#define READERS_PATH_SIZE 192

/* Returns the next reader in use. reader NULL: the first; returns NULL: no more. */
static inline struct live_reader *readers_next(struct readers *readers, struct live_reader *reader)
{
    reader = reader ? reader + 1 : readers->readers;
    while (reader < readers->readers + READERS_MAX && !reader->is_used)
        reader++;
    return reader < readers->readers + READERS_MAX ? reader : NULL;
}

/* FOLDER/live-HOST-SESSION-HASH.END */
const char *readers_path_of(const struct live_reader *reader, const char *end,
                            char path[READERS_PATH_SIZE]);

/* Returns the order of the next child. NULL: out of memory. reads_old_events: from the session's
 * first packet, or only new events. */
json_t *readers_order(const struct live_reader *reader, bool reads_old_events);

void readers_read_account(struct live_reader *reader);

/* The service calls the next three functions for a child that has ended, in this order. */
void readers_read_last_account(struct live_reader *reader);
/* Sets the next child's start. Returns how many spans may be sent twice. */
uint64_t readers_note_settled(struct live_reader *reader);
/* Returns the number of spans that are lost with the child. */
uint64_t readers_close_account(struct live_reader *reader, bool is_read_again);

/* Reads and logs the account of the session's reader in an earlier run of the service. */
void readers_find_earlier_run(struct live_reader *reader);

#endif
