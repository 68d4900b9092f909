/*
 * The agent: what its parts share. alarms.c, asking.c, fetching.c and record.c are its parts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_H
#define BLKIN_TOOLS_AGENT_H

#include "fetch.h"
#include "fetched.h"
#include "heard.h"
#include "incomplete.h"
#include "kept.h"
#include "ledger.h"
#include "pending.h"
#include "sessions.h"
#include "tools/base/say.h"
#include "tools/base/watchdog.h"
#include "tools/exchange/exchange.h"
#include "tools/reader/host_child.h"
#include "totals.h"
#include "watcher.h"

#define RULES_MAX 64

/* What came of a rule, since the start. */
struct rule {
    char why[128];
    uint64_t alarms, held_back, dropped;
};

/* Why the ring is to be made anew. */
enum anew { ANEW_NOT, ANEW_STALLED, ANEW_LARGER };

struct agent {
    struct config *config;
    struct loop *loop;
    struct control *control;
    struct metrics *metrics;
    struct exchange *exchange; /* NULL: alone */
    struct record_totals totals;
    struct fetched *fetched;
    struct ledger *ledger;
    struct pending pending;
    struct kept kept;
    struct watcher watcher;
    struct sessions sessions;
    struct host_child host_child;
    struct incomplete incomplete;
    char host[254];
    char folder[4096], totals_file[4096], fetched_file[4096], others_file[4096];
    unsigned long requests; /* posted by this process */

    /* asking.c */
    bool has_saved_others; /* the file is not empty */

    /* alarms.c */
    struct request *collected; /* of a poll */
    bool asks_again;           /* for what was open when the agent ended */
    struct rule rules[RULES_MAX];
    size_t rule_count;
    int64_t lost_said_ms;
    struct heard heard;
    json_t *
        heard_list; /* of it, for the disk: as of the last poll, what was asked for is there then */
    bool has_heard; /* something since the last poll: */
    struct {
        uint64_t alarms, held_back, doubles, dropped;
    } heard_now;

    /* fetching.c */
    struct task fetch_task;
    struct request *fetching; /* for these */
    bool is_fetching;
    uint64_t fetch_number;
    int64_t fetch_begun_ms, next_fetch_ms, next_look_ms;
    int64_t next_last_ms; /* not before all of a time is fetched again: traces by name may be */
    int64_t last_allowance, last_allowed_ms; /* bytes of these, keep-minute-bytes */
    enum anew anew;
    struct stall stall;
    bool has_hurried;        /* what waited is fetched before that */
    int64_t ring_mono_ns;    /* it was made then; 0: it was there */
    struct ring_look look;   /* the last one */
    int64_t held_ns;         /* so far back the last whole snapshot reached; 0: none yet */
    uint64_t snapshot_bytes; /* of it */

    struct timer step, deadline;
    struct watchdog watchdog;
    struct sessions_report last;
    struct task end_task;
    bool has_recorded; /* since the start, a ring was there */
    bool is_remaking;  /* the ring, by our order */
    bool has_looked, has_polled, is_ready, is_stopping, is_last_call, ends_sessions, has_failed;
    char said[1024]; /* what LTTng's state was, last */
    int64_t said_ms;
};

/* ---- record.c */

/* Something has changed: what is next? Not at once. */
void agent_step(struct agent *agent);
void agent_save(struct agent *agent);
void agent_save_fetched(struct agent *agent);

/* A state that lasts is not said each time. */
void agent_say_state(struct agent *agent, enum message_id id, const char *text);

/* ---- alarms.c */

void alarms_begin(void *agent);
void alarms_take(void *agent, const struct alarm *alarm);
void alarms_polled(void *agent, const struct watcher_poll *poll);

/* ---- asking.c */

bool asking_open(struct agent *agent, struct error *error);
/* What was open when the agent ended is asked for again, as soon as nothing else waits. */
void asking_again(struct agent *agent);
/* What others have asked for and was not fetched, in a file. */
void asking_save(struct agent *agent);
void asking_load(struct agent *agent);
/* Asks all hosts, this one too. Takes the request. name: a person's, or NULL. */
void asking_ask(struct agent *agent, struct request *request, const char *name, int64_t linger_ms);
/* What this host has of the requests; problem: why it has nothing, or NULL. */
void asking_answer(struct agent *agent, const struct request *requests, int64_t held_from_ns,
                   const json_t *found, const char *problem);
void asking_found(void *agent, const struct kept_folder *folder, const json_t *found);
/* Judges what can be judged; returns when to call it again. */
int64_t asking_judge(struct agent *agent);
/* keep, keep-last, keep-why, kept; NULL: none of these. */
json_t *asking_control(struct agent *agent, const char *request);
/* The hosts that are asked: a new array. */
json_t *asking_hosts(const struct agent *agent);

/* ---- fetching.c */

/* Starts what is due. Returns when there may be something next. */
int64_t fetching_step(struct agent *agent);
/* The ring is a new one. */
void fetching_ring_is_new(struct agent *agent);
/* How many sub-buffers of 1 MiB the ring should have, for each CPU. */
uint64_t fetching_ring_size(const struct agent *agent);

#endif
