/*
 * Keeps a session recording: makes or adopts it, looks at it often, and when LTTng's daemons have
 * died or its rotation hangs, makes another one beside it. All that may hang is done in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_KEEPER_H
#define BLKIN_TOOLS_ROTATE_KEEPER_H

#include "store.h"
#include "tools/base/child.h"
#include "tools/lttng/session.h"

enum keeping {
    KEEP_RECORDS, /* a session does */
    KEEP_NO_DAEMON,
    KEEP_NO_CONSUMER, /* the session daemon is there; its consumer daemon has died */
    KEEP_FAILED
};

/* What a look has found. */
struct keep_report {
    enum keeping state;
    char session[256];
    char place[PLACE_MAX]; /* of the session that records */
    bool is_new;
    uint64_t discarded_events, lost_packets; /* of this session, as LTTng tells */
    struct error error;                      /* of what is no KEEP_RECORDS */
    bool has_daemon;
    size_t used_count; /* the places in which LTTng still records */
    char used[SESSION_PLACES][PLACE_MAX];
};

struct keeper {
    struct loop *loop;
    struct task task;
    struct timer timer;
    struct session_spec spec; /* without output and shm_path */
    struct store *store;
    char given_up[PLACE_MAX]; /* of a session whose rotation hangs; "": none */
    struct keep_report last;
    bool has_looked;
    /* After each look; report NULL: LTTng did not answer in time. */
    void (*looked)(void *context, const struct keep_report *report);
    void *context;
};

void keeper_start(struct keeper *keeper);
void keeper_stop(struct keeper *keeper);

/* The session of this place does not rotate: let another one take its place. */
void keeper_give_up(struct keeper *keeper, const char *place);

/* Its task; and that of `--once`, which only lists the places that are in use: the order is a
 * struct store, the result a struct keep_report. */
extern const struct job keeper_job, keeper_list_job;

#endif
