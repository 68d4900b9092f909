/*
 * The service's own recording session. The service creates it when both daemons run, watches it,
 * creates it again when it is dead, and ends it at its own end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_TRACING_H
#define BLKIN_LIVE_TRACING_H

#include "tools/base/child.h"
#include "tools/config/config.h"
#include "tools/lttng/session.h"

#include <jansson.h>
#include <time.h>

extern const struct job tracing_make_job, tracing_look_job, tracing_destroy_job, tracing_stop_job;

enum tracing_state {
    TRACING_NOT_YET,   /* no relay daemon, or not tried */
    TRACING_NO_DAEMON, /* no session daemon */
    TRACING_FAILED,    /* a retry follows */
    TRACING_ACTIVE,
    TRACING_STOPPED /* by `lttng stop` */
};

struct tracing_callbacks {
    void (*made)(void *context); /* the session was created or adopted */
    void *context;
};

struct tracing {
    struct loop *loop;
    struct session_spec spec; /* a stall changes the name */
    char first_name[256];
    char note[4096]; /* the file with the name of the created session */
    struct tracing_callbacks on;
    enum tracing_state state;
    int64_t since_ns;
    bool relay_is_up, is_dead, was_created;
    bool was_tried; /* the first attempt to create the session is over; read-only for the caller */
    unsigned makings, names, failures;
    int64_t unlisted_since_ms; /* 0: the relay daemon lists the session */
    uint64_t discarded_events, lost_packets;
    struct error error; /* of TRACING_FAILED and TRACING_NO_DAEMON */
    uint64_t daemon;    /* a fingerprint; changes when a session daemon starts or exits */
    struct timer look, retry;
    int64_t next_look_ms;
    int64_t clock_offset_ns; /* session time minus CLOCK_MONOTONIC */
    int64_t renamed_ms;
    struct task task, destroying, ending;
    bool is_busy, is_destroying, is_daemon_new;
    bool is_wanted; /* create the session after the running task */
    char destroy_name[256];
    const struct job *end;
    void (*ended)(void *context);
};

/* Returns false with error set. */
bool tracing_read_spec(const struct config *config, const char *relay_url,
                       struct session_spec *spec, struct error *error);

/*
 * note: a file in the runtime folder. is_own_relay: the service starts the relay daemon, so an
 * existing session is dead.
 */
void tracing_begin(struct tracing *tracing, struct loop *loop, const struct session_spec *spec,
                   const char *note, bool is_own_relay, const struct tracing_callbacks *callbacks);

void tracing_relay_up(struct tracing *tracing);
void tracing_relay_down(struct tracing *tracing);

/* Takes the relay daemon's answer. A session that stays unlisted is dead. */
void tracing_note_listed(struct tracing *tracing, bool is_listed);

/* Handles a stall of the session's stream: records in a new session of another name, at most once
 * in 30 s. Returns whether it has begun a new session now. */
bool tracing_replace_stalled(struct tracing *tracing);

/* Returns the time of the session's clock, which ignores changes of the wall clock. */
int64_t tracing_now_ns(const struct tracing *tracing);

/* Stop or destroy the session if this service created it. Both call ended(). */
void tracing_stop(struct tracing *tracing, void (*ended)(void *context));
void tracing_destroy(struct tracing *tracing, void (*ended)(void *context));

json_t *tracing_json(const struct tracing *tracing);

#endif
