/*
 * Joins: unmodified servers send each other no ids. Each server's half of a request begins a trace
 * of its own, whose id is marked (tracepoints/format/join.h), on whichever host the server runs.
 * Before such a trace is sent, its place in the whole request is found:
 *
 * 1. A look lists the halves that this host's rings have from the begin of the trace on. A trace is
 *    taken, too, if one of its halves fits a half of a wanted trace, of this host or another.
 * 2. The want of the trace tells all hosts its halves. Each host looks for halves that fit, takes
 *    their traces and wants them in the same way, and answers after that.
 * 3. When all hosts have answered, the host of the trace decides: the trace has no caller, or is a
 *    part of its caller's trace. In that case the host waits until the caller's host has settled
 *    the caller's trace. The host tells all others the id under which the trace is sent.
 *
 * So one host decides about each trace. Each of these waits lasts at most answer-timeout-ms. A
 * trace whose place is not settled then is sent under its own id, and is incomplete. The trace of
 * its possible caller is incomplete, too, even if a host tells the caller's halves only later.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_JOINS_H
#define BLKIN_TOOLS_JOINS_H

#include "agent.h"
#include "halves.h"

struct joins;

struct joins_calls {
    /* Scans the rings for halves; takes the request. joins_looked() tells the end. */
    void (*look)(void *context, struct request *request);
    /* Asks all hosts for a trace, telling them its halves (takes the list); sets the request's
     * id. The trace is not collected yet. */
    void (*want)(void *context, struct request *request, json_t *halves);
    /* Returns true if all connected hosts have answered the want. */
    bool (*is_answered)(void *context, const struct request *request);
    /* Tells all hosts where traces are sent; takes the list: see "settled" in cluster.h. */
    void (*settle)(void *context, json_t *settled);
    /* Fetches the trace, of this host or another one. Takes the request. doubt: why the trace is
     * incomplete, or NULL. */
    void (*fetch)(void *context, struct request *request, const char *doubt);
    /* Answers another host's want without spans. Its trace has none on this host, or `problem` says
     * why. held_from_ns: the rings have everything from then on. */
    void (*answer)(void *context, const struct request *request, int64_t held_from_ns,
                   const char *problem);
    /* Marks as incomplete a trace that a host has sent, or will send. time_ns: since 1970. */
    void (*mark)(void *context, struct trace_id id, int64_t time_ns, const char *why);
    void *context;
};

/* Returns NULL when out of memory. */
struct joins *joins_new(struct agent *agent, const struct joins_calls *calls);
void joins_free(struct joins *joins); /* NULL is allowed */

/* Takes the marked traces out of a request of this host, and looks for their halves at due_ms.
 * Removes traces that joins already look for or ask for, and counts them as requested again. Other
 * known traces stay. */
void joins_take(struct joins *joins, struct request *request, int64_t due_ms);

/* Notes the halves in a want of another host. is_refused: the want is not obeyed, and its halves
 * get half of the room. */
void joins_note(struct joins *joins, const json_t *message, bool is_refused);
/* Queues a want of another host, whose halves joins_note() has noted: the next look searches
 * for fitting halves, and then answers the want. Takes the request. */
void joins_queue_want(struct joins *joins, struct request *request);
/* Takes a message of another host about settled traces. */
void joins_take_settled(struct joins *joins, const json_t *message);

/* Takes the halves that the look has found. problem: why the look failed, or NULL. */
void joins_looked(struct joins *joins, const struct halves *found, int64_t held_from_ns,
                  const char *problem);

/* Does the due work. Returns the time of the next call, in ms of clock_ms(). */
int64_t joins_step(struct joins *joins);

/* Sets the place where the trace is sent, which may be its own id. Returns false if the trace is
 * not marked, or if its place is not known here. */
bool joins_find(const struct joins *joins, struct trace_id id, struct join_place *place);

/* Returns the number of wanted traces that were not requested from other hosts yet. */
size_t joins_open(const struct joins *joins);

/* Called when the agent ends: decides the places of all traces without further waiting. */
void joins_end(struct joins *joins);

#endif
