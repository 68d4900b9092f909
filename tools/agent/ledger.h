/*
 * The ledger: the requests of this host to all agents, and the answers.
 *
 * A trace is complete when all known hosts have answered, their rings reached back to its begin,
 * and all parents of spans were found. If that fails for a while, the trace is incomplete, and the
 * verdict names the missing parts. If several hosts request a trace, the last one judges.
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
    int64_t time_ns;   /* since 1970: the begin of the trace or, if not known, of the request */
    uint64_t spans;    /* spans found */
    uint64_t missing;  /* parents that no host has */
    uint64_t parent;   /* one of the missing parents */
    const char *lacks; /* text about the missing parts */
    const char *hosts; /* hosts that have answered */
    const char *held;  /* hosts whose rings did not reach back far enough, and since when they have
                          all; "": none */
};

struct ledger_callbacks {
    /* Called once for each trace that an alarm, or a person by its id, has requested. */
    void (*judged)(void *context, const struct verdict *verdict);
    /* Called for a trace that another host or a later request of this host judges. */
    void (*left)(void *context, struct trace_id id, bool to_other);
    /* The traces of a service are known: the callee requests them under this name. */
    void (*listed)(void *context, const char *name, const struct request *traces);
    /* A trace that began before what a host has looked for, or of which nobody knows the begin (0):
     * it is to be asked for once more, and is judged here if it is not. */
    void (*earlier)(void *context, struct asker *asker, const struct wanted *wanted,
                    int64_t begin_ns);
    void *context;
};

struct ledger;

/* Returns NULL when out of memory. */
struct ledger *ledger_new(const struct ledger_callbacks *callbacks);
void ledger_free(struct ledger *ledger);

/*
 * Enters a request that is sent now. hosts: a JSON array of names. Parts that come later than
 * timeout_ms after our own answer count as missing. name: a person's name for the request
 * (ledger_json()); NULL: of an alarm. If the request only lists the traces of a service, the next
 * request for them gets `name`. Returns false when out of memory, or if too many are open.
 */
bool ledger_ask(struct ledger *ledger, const struct request *request, const json_t *hosts,
                const char *name, int64_t timeout_ms);

/* Takes a message "found" (tools/cluster/cluster.h), also our own. Ignores messages of unknown
 * requests. */
void ledger_answer(struct ledger *ledger, const json_t *found, int64_t now_ms);

/* Another host requests these traces: it judges those that it has requested later than this host.
 */
void ledger_yield(struct ledger *ledger, const struct request *theirs);

/* True if all other hosts that are not in `away` have answered the request. */
bool ledger_is_answered(const struct ledger *ledger, const char *id, const json_t *away);

/* Marks the traces of the request as incomplete. doubt: the reason. */
void ledger_doubt(struct ledger *ledger, const char *id, const char *doubt);

/* Judges what can be judged. Returns when to call it again, at the latest. */
int64_t ledger_judge(struct ledger *ledger, int64_t now_ms);

/* This process was stopped for at most stall_ms and read no answers: all hosts get that much more
 * time. */
void ledger_note_stall(struct ledger *ledger, int64_t stall_ms);

/* Traces and requests that are not judged yet. */
size_t ledger_open(const struct ledger *ledger);

/* The answer to `kept NAME`. Lists not all traces of an open request. NULL: no request has this
 * name. */
json_t *ledger_json(const struct ledger *ledger, const char *name);

#endif
