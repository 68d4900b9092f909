/*
 * Shared by the files of joins. joins.c looks for halves, asks other hosts and decides;
 * joins_known.c stores the traces and their halves.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JOINS_PARTS_H
#define BLKIN_TOOLS_JOINS_PARTS_H

#include "joins.h"

#include "babeltrace-plugin/base/hash.h"

#define JOINS_TRACES_MAX 16384
#define JOINS_HALVES_MAX 65536
#define JOINS_KEEP_MS    120000

enum joins_state {
    JOINS_ELSEWHERE, /* a trace of another host */
    JOINS_LOOK,      /* its halves are not all known */
    /* all hosts were asked; the trace waits for answers, for its place, or for room in the scan
     * queue */
    JOINS_ASKED,
    JOINS_DONE /* to be collected now, or collected */
};

struct known_half {
    struct join_half half; /* in the table of halves by its key */
    struct joins_trace *trace;
    struct known_half *next; /* of the trace */
};

struct joins_trace {
    struct table_link in_table; /* by id.low */
    struct trace_id id;
    enum joins_state state;
    struct request *request; /* in JOINS_LOOK and JOINS_ASKED */
    struct known_half *halves;
    size_t half_count;
    char why[WHY_MAX + 1];
    bool is_answered; /* JOINS_ASKED: all hosts have answered, or the deadline has passed */
    bool is_cut;      /* halves may be missing: there was no room, or a look failed */
    bool is_settled;  /* its place is known, and does not change */
    unsigned looks;
    int64_t due_ms; /* JOINS_LOOK: when the next look for the trace is due */
    /* JOINS_LOOK: when the wait for a missing root ends. JOINS_ASKED: when the wait for answers
     * ends, and after that the wait for the caller's place. */
    int64_t deadline_ms;
    int64_t until_ms; /* a trace without a request is forgotten after this time */
    /* the time of one extra look for halves that were recorded late; INT64_MAX: it has begun */
    int64_t again_ms;
    int64_t from_ns; /* since 1970: looks search for its halves from this time on; 0: not set */
    struct join_place place;
    const char *doubt; /* why the trace is incomplete; NULL: no reason is known */
};

struct joins {
    struct agent *agent;
    struct joins_calls on;
    struct table traces, halves;          /* halves that hosts reported, or that were found here */
    struct request *others, **last_other; /* wants of other hosts that wait for a look */
    struct request *looked;               /* the requests that wait for the running look */
    json_t *settled;                      /* the next message about settled traces; NULL: none */
    bool is_looking;
    bool is_cut;            /* the look has found traces for which there was no room */
    int64_t looked_ms;      /* when the look began */
    int64_t looked_from_ns; /* since 1970 */
    int64_t skew_ns;
};

/* ---- joins_known.c ---- */

/* Visits the known halves with the key of this half. */
#define JOINS_FOR_EACH_OF_KEY(known, joins, of_half)                                              \
    table_for_each_of(known, &(joins)->halves, hash_number((joins)->halves.seed, (of_half)->key), \
                      half.in_table)

static inline bool joins_fits(const struct joins *joins, const struct join_half *a,
                              const struct join_half *b)
{
    return a->key == b->key && join_half_fits(a, b, joins->skew_ns);
}

/* Returns NULL if the trace is not known. */
struct joins_trace *joins_trace(const struct joins *joins, struct trace_id id);
/* Returns the known trace, or a new one. NULL: there are `room` traces, or no memory. */
struct joins_trace *joins_get(struct joins *joins, struct trace_id id, const char *why,
                              size_t room);
/* Frees the trace. */
void joins_forget(struct joins *joins, struct joins_trace *trace);

/* Returns the server's half with which the trace began; NULL: not known. */
const struct known_half *joins_root(const struct joins_trace *trace);

bool joins_has(const struct joins *joins, const struct joins_trace *trace,
               const struct join_half *half);
/* Notes a half of the trace. Returns false if it is known already. Also returns false when out of
 * memory, or if there are `room` halves, or too many of the trace. It then sets is_cut, and counts
 * the half in halves_dropped. */
bool joins_know(struct joins *joins, struct joins_trace *trace, const struct join_half *half,
                size_t room);
/* Returns another trace, one of whose known halves fits; NULL: none fits. */
const struct joins_trace *joins_other(const struct joins *joins, const struct join_half *half);

/* Notes that the place of the trace is known, and will not change. Marks callers and servers whose
 * places contradict that place as incomplete. */
void joins_settle(struct joins *joins, struct joins_trace *trace);

#endif
