/*
 * Judges whether traces are complete, by the requests of this host and the answers of all agents.
 *
 * A trace is complete if all known hosts have answered, their rings reached back to the trace's
 * begin, and all parents of spans were found. If a part is still missing after a time-out, the
 * trace is incomplete, and the verdict names the missing parts. If several hosts request a trace,
 * the last one judges.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JUDGE_H
#define BLKIN_TOOLS_JUDGE_H

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
    const char *lacks; /* text about the missing parts; "": complete */
    const char *hosts; /* hosts that have answered */
    const char *held;  /* "HOST: TIME, ...": hosts whose rings did not reach back far enough, and
                          the times from which they have all records; "": none */
};

struct judge_callbacks {
    /* Gets the verdict, once for each trace that is requested by its id. */
    void (*judged)(void *context, const struct verdict *verdict);
    /* Called in place of judged() for a trace that a later request judges. to_other: the request of
     * another host. */
    void (*left)(void *context, struct trace_id id, bool to_other);
    /* Gets the traces of a service, and requests them under this name. traces->left_out: the number
     * of traces that no answer lists. */
    void (*listed)(void *context, const char *name, const struct request *traces);
    /* Gets a trace that began before the time that a host has searched, and requests the trace once
     * more. begin_ns 0: search all records, as a missing parent may be older. Without a new
     * request, the trace is judged as it is. */
    void (*earlier)(void *context, struct asker *asker, const struct wanted *wanted,
                    int64_t begin_ns);
    void *context;
};

struct judge;

/* Returns NULL when out of memory. */
struct judge *judge_new(const struct judge_callbacks *callbacks);
void judge_free(struct judge *judge);

/*
 * Enters a request that is sent now. hosts: a JSON array of names. timeout_ms: an answer counts as
 * missing if it arrives this long after this host's own answer. name: the name of a person's
 * request (judge_json()); NULL: a request for alarms. If the request lists the traces of a
 * service, listed() gets the name. Returns false when out of memory, or if too many are open.
 */
bool judge_ask(struct judge *judge, const struct request *request, const json_t *hosts,
               const char *name, int64_t timeout_ms);

/* Adds a message "found" (tools/cluster/cluster.h) of another host or of this one. Ignores messages
 * about unknown requests, and a host's second answer unless the answer has "late". */
void judge_answer(struct judge *judge, const json_t *found, int64_t now_ms);

/* Leaves traces to the request of another host, if it is later than this host's requests. */
void judge_yield(struct judge *judge, const struct request *theirs);

/* Returns true if all other hosts that are not in `away` have answered the request, or if the
 * request is not known. */
bool judge_is_answered(const struct judge *judge, const char *id, const json_t *away);

/* Marks the traces of the request as incomplete. doubt: the reason. */
void judge_doubt(struct judge *judge, const char *id, const char *doubt);

/* Judges the traces that can be judged. Returns the latest time of the next call. */
int64_t judge_due(struct judge *judge, int64_t now_ms);

/* Extends all time-outs by stall_ms, because this process was stopped and read no answers. */
void judge_note_stall(struct judge *judge, int64_t stall_ms);

/* Returns the number of traces and windows that are not judged yet. */
size_t judge_open(const struct judge *judge);

/* Returns the answer to `kept NAME`. For an open request, the answer lists only the first traces.
 * NULL: no request has this name. */
json_t *judge_json(const struct judge *judge, const char *name);

/* Gives the export a span that reports an incomplete trace. The span is part of the trace: service
 * "blkin-agent", name "incomplete". */
struct export;
void judge_report(struct export *export, const struct verdict *verdict);

#endif
