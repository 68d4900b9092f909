/*
 * The ledger: what this host has asked all agents for, and what they have answered.
 *
 * A trace is complete when all hosts that were there have answered, their rings reached back to its
 * begin, and no span of it has a parent that nobody has. If it is not after a while, it is
 * incomplete, and what is missing can be said. A trace that is asked for once more, by us or by
 * somebody else, is judged by who has asked last.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_LEDGER_H
#define BLKIN_TOOLS_LEDGER_H

#include "request.h"

struct verdict {
    struct trace_id id;
    const char *why;
    bool is_by_hand;
    bool is_complete;
    int64_t time_ns;   /* since 1970: when it began, or, where that is not known, was asked for */
    uint64_t spans;    /* that were found */
    uint64_t missing;  /* parents that nobody has */
    uint64_t parent;   /* one of them */
    const char *lacks; /* what is missing, in words */
    const char *hosts; /* who has answered */
    const char *held;  /* whose ring did not reach back far enough, and since when it has all; "" */
};

struct ledger_callbacks {
    /* Once for each trace that an alarm has asked for, or a person by its id. */
    void (*judged)(void *context, const struct verdict *verdict);
    /* A trace that is not judged here: another host does, or a later request of ours. */
    void (*left)(void *context, struct trace_id id, bool to_other);
    /* The traces of a service are known: they can be asked for, under this name of the request. */
    void (*listed)(void *context, const char *name, const struct request *traces);
    /* A trace that began before what a host has looked for, or of which nobody knows the begin (0):
     * it is to be asked for once more, and is judged here if it is not. */
    void (*earlier)(void *context, const struct wanted *wanted, int64_t begin_ns);
    void *context;
};

struct ledger;

/* Returns NULL when out of memory. */
struct ledger *ledger_new(const struct ledger_callbacks *callbacks);
void ledger_free(struct ledger *ledger);

/*
 * It is asked now, of these hosts: a JSON array of their names. What is missing timeout_ms after we
 * have answered ourselves, is. name: by which a person asks for it
 * (ledger_json()); NULL: an alarm's. Of one that only lists the traces of a service `name` goes to
 * the request for these. Returns false when out of memory, or if too many are open.
 */
bool ledger_ask(struct ledger *ledger, const struct request *request, const json_t *hosts,
                const char *name, int64_t timeout_ms);

/* A message "found" (tools/cluster/cluster.h), ours too. Those that belong to no request are passed
 * over. */
void ledger_answer(struct ledger *ledger, const json_t *found, int64_t now_ms);

/* Another host asks for these traces: it judges those that it has asked for after we have. */
void ledger_yield(struct ledger *ledger, const struct request *theirs);

/* Have all other hosts answered the request that `away` does not name? */
bool ledger_is_answered(const struct ledger *ledger, const char *id, const json_t *away);

/* The traces of the request are incomplete: why. */
void ledger_doubt(struct ledger *ledger, const char *id, const char *doubt);

/* Judges what can be judged. Returns when to call it again, at the latest. */
int64_t ledger_judge(struct ledger *ledger, int64_t now_ms);

/* This process stood still, for so long at most, and read no answer meanwhile: all hosts get that
 * much more time. */
void ledger_note_stall(struct ledger *ledger, int64_t stall_ms);

/* Traces and requests that are not judged yet. */
size_t ledger_open(const struct ledger *ledger);

/* For `kept NAME`: of one that is not done not all traces are listed. NULL: there is none of this
 * name (any more). */
json_t *ledger_json(const struct ledger *ledger, const char *name);

#endif
