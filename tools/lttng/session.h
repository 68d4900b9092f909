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

/* Texts are copied into it, as it is handed to a child. */
struct session_spec {
    char name[256];
    char events[1056]; /* names with *, separated by commas */
    char filter[1024]; /* LTTng's filter expression; "": none. Not for blkin:metric by its name */
    bool only_adopt;   /* it is not made if it is not there */
    uint64_t subbuf_bytes;
    uint64_t subbuf_count; /* both of a channel, per CPU and user */
    uint64_t live_timer_us;
    char relay_url[512];       /* net://127.0.0.1:5342:5343 */
    uint64_t trace_file_bytes; /* the relay daemon keeps as many of these files for each CPU and */
    uint64_t trace_file_count; /* user; 0: all */
};

enum session_result {
    SESSION_CREATED,
    SESSION_ADOPTED, /* it was there, and is as it should be, or was started again */
    SESSION_OTHER,   /* one of this name is there and is not live, or is different: error
                      * says how */
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
 * Creates the session, its channel "blkin", its contexts (vpid, vtid, procname, pid_ns) and events,
 * and starts it; or adopts it. CTF 1.8 where LTTng has a choice.
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

/* Does not wait for what the buffers hold. */
bool session_stop(const char *name, struct error *error);

/* Does not wait either, for nothing may make it hang. */
bool session_destroy(const char *name, struct error *error);

#endif
