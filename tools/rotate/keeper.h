/*
 * Keeps a session recording: makes or adopts it, looks at it often, and when LTTng's daemons have
 * died or its rotation hangs, makes another one beside it. All that may hang is done in a task.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ROTATE_KEEPER_H
#define BLKIN_TOOLS_ROTATE_KEEPER_H

#include "store.h"
#include "tools/base/loop.h"
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

/* For `--once`: only which places are in use. */
bool keeper_list_used(const struct store *store, struct keep_report *report);

#endif
