/*
 * LTTng's sessions, by liblttng-ctl. All functions may hang with the session daemon, so a service
 * calls them in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SESSION_H
#define BLKIN_TOOLS_SESSION_H

#include "babeltrace-plugin/base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Contains its texts, as a service passes it to a child. */
struct session_spec {
    char name[256];
    char events[1056]; /* names with *, separated by commas */
    char filter[1024]; /* LTTng's filter expression, for all events but blkin:metric; "": none */
    uint64_t subbuf_bytes;
    uint64_t subbuf_count; /* both: of a channel, per CPU and user */
    uint64_t live_timer_us;
    char relay_url[512];       /* net://127.0.0.1:5342:5343 */
    uint64_t trace_file_bytes; /* of a file of the relay daemon */
    uint64_t trace_file_count; /* files for each CPU and user; 0: no limit */
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
    struct error error; /* unset for the first two results */
};

/* with_host: adds the samples of the host, which the filter does not apply to. */
void session_set_events(struct session_spec *spec, const char *events, bool with_host);

/*
 * Creates the session, its channel "blkin", its contexts (vpid, vtid, procname, pid_ns) and events,
 * and starts it; or adopts it. CTF 1.8 where LTTng has a choice.
 */
void session_ensure(const struct session_spec *spec, struct session_answer *answer);

/* The state of a session and its losses, as in `lttng list`. */
struct session_state {
    bool is_there, is_active;
    bool has_consumer; /* false: LTTng's consumer daemon has died, and nothing is recorded until the
                          session daemon restarts */
    uint64_t discarded_events, lost_packets;
};

/* Returns false with error set if there is no daemon. */
bool session_look(const char *name, struct session_state *state, struct error *error);

/* Does not wait for the data in the buffers. */
bool session_stop(const char *name, struct error *error);

/* Does not wait either, so that it cannot hang. */
bool session_destroy(const char *name, struct error *error);

#endif
