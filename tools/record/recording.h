/*
 * The agent's sessions of LTTng: the recorder's ring, the alarm's, and a ring of the host's
 * metrics, which spans then cannot overwrite. The agent makes or adopts them, looks at them often,
 * and makes them anew when they are gone or a ring stands still. Whatever may hang runs in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RECORDING_H
#define BLKIN_TOOLS_RECORDING_H

#include "agent.h"
#include "tools/base/child.h"
#include "tools/lttng/session.h"

enum recording_state {
    RECORDS,
    RECORDS_NO_DAEMON,
    RECORDS_NO_CONSUMER, /* the session daemon is there; its consumer daemon has died */
    RECORDS_FAILED
};

enum session_which { SESSION_RING, SESSION_ALARM, SESSION_HOST, SESSIONS };

struct recording_report { /* a plain type: a task's result */
    enum recording_state state;
    struct error error; /* of what is not RECORDS */
    bool is_new[SESSIONS];
    uint64_t discarded_events, lost_packets; /* of the ring, as LTTng tells */
};

struct recording_callbacks {
    void (*ring_is_new)(void *context);
    void (*ended)(void *context, bool has_failed); /* after recording_end() */
    void *context;
};

struct recording;

/* Makes no session yet. Returns NULL when out of memory. */
struct recording *recording_new(struct agent *agent, const struct recording_callbacks *callbacks);
void recording_free(struct recording *recording); /* NULL is allowed */

/* The configuration is another one. */
void recording_configure(struct recording *recording);

/* Sessions are made, and looked at, until recording_stop(). */
void recording_start(struct recording *recording);
void recording_stop(struct recording *recording);
/* Instead of both, for --end: nobody looks at the sessions, which are taken for there. */
void recording_only_end(struct recording *recording);
/* Destroys the sessions. */
void recording_end(struct recording *recording);

/* Now, as something is wrong. */
void recording_look(struct recording *recording);
/* The session is destroyed, with what it holds, and made again. */
void recording_make_anew(struct recording *recording, enum session_which which);

/* What LTTng told last; NULL: it was not asked yet. */
const struct recording_report *recording_report(const struct recording *recording);
/* LTTng records into the ring, as far as was seen. */
bool recording_is_on(const struct recording *recording);

/* A session without events is not made. */
const struct session_spec *recording_session(const struct recording *recording,
                                             enum session_which which);

/* How many sub-buffers of 1 MiB the ring should have, for each CPU and user. And at most. */
uint64_t recording_ring_size(const struct agent *agent);
uint64_t recording_ring_size_max(const struct agent *agent);
uint64_t recording_cpus(void);

/* The tasks: one makes the sessions and looks at them, one destroys them. */
extern const struct job recording_look_job;
extern const struct job recording_end_job;

#endif
