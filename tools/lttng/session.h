/*
 * LTTng's sessions, by liblttng-ctl. All functions may hang as long as the session daemon does: a
 * service calls them in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SESSION_H
#define BLKIN_TOOLS_SESSION_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stdint.h>

enum session_mode {
    SESSION_LIVE,   /* per-UID buffers, streamed to a relay daemon */
    SESSION_ROTATED /* per-PID buffers, chunks in a folder */
};

/* Texts are copied into it, as it is handed to a child. */
struct session_spec {
    enum session_mode mode;
    char name[256];
    char events[1056]; /* names with *, separated by commas */
    char filter[1024]; /* LTTng's filter expression; "": none. Not for blkin:metric by its name */
    bool only_adopt;   /* it is not made if it is not there */
    uint64_t subbuf_bytes;
    uint64_t subbuf_count; /* both of a channel, per CPU (and user or process) */
    /* live */
    uint64_t live_timer_us;
    char relay_url[512];       /* net://127.0.0.1:5342:5343 */
    uint64_t trace_file_bytes; /* the relay daemon keeps as many of these files for each CPU and */
    uint64_t trace_file_count; /* user; 0: all */
    /* rotated */
    char output[4096];
    char shm_path[4096]; /* "": none */
    uint64_t rotate_period_us;
    uint64_t rotate_bytes; /* 0: by time only */
};

enum session_result {
    SESSION_CREATED,
    SESSION_ADOPTED, /* it was there, and is as it should be, or was started again */
    SESSION_OTHER,   /* one of this name is there with another mode or output: error says how */
    SESSION_NO_DAEMON,
    SESSION_FAILED
};

struct session_answer {
    enum session_result result;
    struct error error; /* of all but the first two */
};

/* with_host: what the host does meanwhile, too, which no filter of spans is for. */
void session_set_events(struct session_spec *spec, const char *events, bool with_host);

/*
 * Creates the session, its channel "blkin", its contexts (vpid, vtid, procname, pid_ns) and events, and
 * starts it; or adopts it. CTF 1.8 where LTTng has a choice.
 */
void session_ensure(const struct session_spec *spec, struct session_answer *answer);

/* What was lost by LTTng so far, as `lttng list` tells; is it there, and active? */
struct session_state {
    bool has_daemon, is_there, is_active;
    bool has_consumer; /* else LTTng's consumer daemon has died: the session records no more, and
                        * none can be made until the session daemon is started anew */
    uint64_t discarded_events, lost_packets;
};

/* Returns false with error set: no daemon. */
bool session_look(const char *name, struct session_state *state, struct error *error);

/* The sessions that record into a folder or below it. A plain type: a task's result. */
#define SESSION_PLACES 12
struct session_places {
    bool has_daemon;
    size_t count;
    struct session_place {
        char name[256];
        char path[4096];
        bool is_active;
    } places[SESSION_PLACES];
};

/* Returns false with error set: no daemon, or too many. */
bool session_below(const char *folder, struct session_places *places, struct error *error);

/* Does not wait for what the buffers hold. */
bool session_stop(const char *name, struct error *error);

/* wait: until all is written, for ever if a buffer is stuck. Without, nothing makes it hang. */
bool session_destroy(const char *name, bool wait, struct error *error);

#endif
