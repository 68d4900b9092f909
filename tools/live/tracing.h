/*
 * The session that we record: made when both daemons are there, looked after, made anew when it is
 * dead, ended with us.
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
    TRACING_FAILED,    /* said why, tried again later */
    TRACING_ACTIVE,
    TRACING_STOPPED /* by somebody with `lttng stop` */
};

struct tracing_callbacks {
    void (*made)(void *context); /* created or adopted, after it was not there */
    void *context;
};

struct tracing {
    struct loop *loop;
    struct session_spec spec; /* its name may be another one than the configuration's */
    char first_name[256];
    char note[4096]; /* the file that says what we have created */
    struct tracing_callbacks on;
    enum tracing_state state;
    int64_t since_ns;
    bool relay_is_up, is_dead, was_created;
    bool was_tried; /* so that the service is as ready as it can be; to be read only */
    unsigned makings, names, failures;
    int64_t unlisted_since_ms; /* 0: the relay daemon has it */
    uint64_t discarded_events, lost_packets;
    struct error error;   /* of TRACING_FAILED and TRACING_NO_DAEMON */
    uint64_t daemon_mark; /* changes when a session daemon starts or ends in order */
    struct timer look, retry;
    int64_t next_look_ms;
    int64_t clock_offset_ns; /* of the session: its time is that of CLOCK_MONOTONIC, and this */
    int64_t renamed_ms;
    struct task task, destroying, ending;
    bool is_busy, is_destroying, is_daemon_new;
    bool is_wanted; /* making it, when what is under way has ended */
    char destroy_name[256];
    const struct job *end;
    void (*ended)(void *context);
};

/* Returns false with error set. */
bool tracing_read_spec(const struct config *config, const char *relay_url,
                       struct session_spec *spec, struct error *error);

/*
 * note: a file of ours in the runtime folder. is_own_relay: the relay daemon starts with us, so a
 * session that streams already is dead.
 */
void tracing_begin(struct tracing *tracing, struct loop *loop, const struct session_spec *spec,
                   const char *note, bool is_own_relay, const struct tracing_callbacks *callbacks);

void tracing_relay_up(struct tracing *tracing);
void tracing_relay_down(struct tracing *tracing);

/* The relay daemon has told whether it has the session: one that it has not, is dead. */
void tracing_is_listed(struct tracing *tracing, bool is_listed);

/* Its stream stands still: goes on in a new session of another name, at most each 30 s. Returns
 * whether it does so now. */
bool tracing_is_stalled(struct tracing *tracing);

/* The time of the session's clock, which goes on evenly also when the wall clock is set. */
int64_t tracing_now_ns(const struct tracing *tracing);

/* Both call ended(): one stops what was created here, the other one destroys it. */
void tracing_stop(struct tracing *tracing, void (*ended)(void *context));
void tracing_destroy(struct tracing *tracing, void (*ended)(void *context));

json_t *tracing_json(const struct tracing *tracing);

#endif
