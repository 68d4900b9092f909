/*
 * LTTng's sessions, by liblttng-ctl. Every function may hang if the session daemon hangs, so a
 * service calls the functions in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SESSION_H
#define BLKIN_TOOLS_SESSION_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* The texts are in the struct, because a service passes the struct to a child. */
struct session_spec {
    char name[256];
    char events[1056]; /* names with *, separated by commas */
    char filter[1024]; /* LTTng's filter expression, for all events but blkin:metric; "": none */
    uint64_t subbuf_bytes; /* of the channel, per CPU and user */
    uint64_t subbuf_count; /* of the channel, per CPU and user */
    uint64_t live_timer_us;
    char relay_url[512];       /* net://127.0.0.1:5342:5343 */
    uint64_t trace_file_bytes; /* the size of a file of the relay daemon */
    uint64_t trace_file_count; /* the most files for each CPU and user; 0: no limit */
};

enum session_result {
    SESSION_CREATED,
    SESSION_ADOPTED, /* existed with the right settings, and is started */
    SESSION_OTHER,   /* existed with other settings: error has the difference */
    SESSION_NO_DAEMON,
    SESSION_FAILED
};

struct session_answer {
    enum session_result result;
    struct error error; /* "" for SESSION_CREATED and SESSION_ADOPTED */
};

/* Sets spec->events. with_host: adds blkin:metric, the samples of the host. */
void session_set_events(struct session_spec *spec, const char *events, bool with_host);

/*
 * Creates the session with a channel "blkin", contexts (vpid, vtid, procname, pid_ns) and events,
 * or adopts an existing session. Starts the session. Chooses CTF 1.8 if LTTng has other formats,
 * too.
 */
void session_ensure(const struct session_spec *spec, struct session_answer *answer);

/* The state of a session and its losses, as in `lttng list`. */
struct session_state {
    bool is_there, is_active;
    bool has_consumer; /* false: LTTng's consumer daemon has died, and LTTng records nothing until
                          the session daemon restarts */
    uint64_t discarded_events, lost_packets;
};

/* Returns false with error set if the daemon does not list its sessions. */
bool session_look(const char *name, struct session_state *state, struct error *error);

/* Stops the session, and does not wait until the data in the buffers is written. */
bool session_stop(const char *name, struct error *error);

/* Asks the daemon to destroy the session, and does not wait until the session is gone. */
bool session_destroy(const char *name, struct error *error);

#endif
