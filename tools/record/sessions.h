/*
 * The sessions of the agent: the recorder's ring, the alarm's, and a ring of what the host did, so
 * that it is not overwritten by spans, and is at hand without looking for it among them. Made or
 * adopted, looked at often, made anew when they are gone or a ring stands still. All that may hang
 * is done in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SESSIONS_H
#define BLKIN_TOOLS_SESSIONS_H

#include "tools/base/child.h"
#include "tools/lttng/session.h"

enum recording {
    RECORDS,
    RECORDS_NO_DAEMON,
    RECORDS_NO_CONSUMER, /* the session daemon is there; its consumer daemon has died */
    RECORDS_FAILED
};

enum session_which { SESSION_RING, SESSION_ALARM, SESSION_HOST, SESSIONS };

struct sessions_report { /* a plain type: a task's result */
    enum recording state;
    struct error error; /* of what is not RECORDS */
    bool is_new[SESSIONS];
    uint64_t discarded_events, lost_packets; /* of the ring, as LTTng tells */
};

struct sessions {
    struct loop *loop;
    struct session_spec specs[SESSIONS]; /* one without events is not made */
    void (*looked)(void *context, const struct sessions_report *report); /* NULL: LTTng hangs */
    void *context;
    /* its own */
    struct task task;
    struct timer timer;
    bool is_anew[SESSIONS]; /* to be destroyed first */
    bool is_looking, is_wanted, is_stopped;
};

void sessions_start(struct sessions *sessions);
void sessions_stop(struct sessions *sessions);

/* Now, as something is wrong. */
void sessions_look(struct sessions *sessions);

/* The session is destroyed, with what it holds, and made again. */
void sessions_make_anew(struct sessions *sessions, enum session_which which);

/* A task: all are destroyed. The order is struct sessions. Without a session daemon there are
 * none; as one may be there that we may not talk to, the error tells that, too. */
struct sessions_end {
    bool has_failed;
    struct error error; /* "": none */
};
extern const struct job sessions_end_job;

/* The task that makes them, and looks at them. */
extern const struct job sessions_job;

#endif
