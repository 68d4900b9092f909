/*
 * Exchanges requests and answers with all hosts, and judges whether traces are complete.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ASKING_H
#define BLKIN_TOOLS_ASKING_H

#include "agent.h"
#include "answer.h"
#include "halves.h"

struct asking;

/* Connects with the cluster, if one is configured. Returns NULL with error set. */
struct asking *asking_open(struct agent *agent, struct error *error);
void asking_close(struct asking *asking); /* NULL is allowed */

/* ---- requests of this host */

/* Sends the request to all hosts, and fetches the spans of this host. Takes the request. name: the
 * name of a person's request; NULL: a request for alarms. linger_ms: the delay of the fetch. */
void asking_ask(struct asking *asking, struct request *request, const char *name,
                int64_t linger_ms);

/* Calls asking_ask() for alarms. With send = all, only other hosts fetch. Takes the request. */
void asking_ask_for_alarms(struct asking *asking, struct request *request);

/* Calls asking_ask() for a person. Takes the request. Returns {"id": NAME}, for asking_known(). */
json_t *asking_ask_by_hand(struct asking *asking, struct request *request);

/* Returns the state of a person's request; NULL: no request has this name. */
json_t *asking_known(const struct asking *asking, const char *name);

/* Repeats the requests that were open at the end of an earlier process, as far as there is room. */
void asking_again(struct asking *asking);

/* Returns why this host refuses that host's requests for windows; NULL: it accepts them. */
const char *asking_refuses(const struct asking *asking, const char *host);

/* ---- answers of this host */

/* Answers the requests. reach: NULL if nothing was scanned. problem: the reason of a failure, or
 * NULL. */
void asking_answer(struct asking *asking, const struct request *requests,
                   const struct answer_reach *reach, const json_t *found, const char *problem);

/* Notes the result of a scan, and answers the requests. found: see only.h; NULL: nothing. */
void asking_found(struct asking *asking, const struct request *requests,
                  const struct answer_reach *reach, const json_t *found);

/* Save and load the waiting requests of other hosts. */
void asking_save(struct asking *asking);
void asking_load(struct asking *asking);

/* ---- joins (joins.h) */

/* Takes the halves that a look has found. problem: why the look failed, or NULL. */
void asking_looked(struct asking *asking, const struct halves *found, int64_t held_from_ns,
                   const char *problem);
/* Sets the place if the trace is sent under another id. Returns false if not. */
bool asking_place(const struct asking *asking, struct trace_id id, struct join_place *place);
/* At the end of the agent: no trace waits for its place any more. */
void asking_end_joins(struct asking *asking);

/* ---- verdicts */

/* Judges the traces that can be judged. Returns the time of the next call, in ms of clock_ms(). */
int64_t asking_judge(struct asking *asking);
void asking_note_stall(struct asking *asking, int64_t stall_ms); /* as ledger_note_stall() */

/* Returns the number of traces and requests that are not judged yet. */
size_t asking_open_count(const struct asking *asking);
/* Returns whether the broker is connected, and has not accepted all messages yet. */
bool asking_is_posting(const struct asking *asking);

/* ---- status */

/* Returns a new array of the hosts that are asked. */
json_t *asking_hosts(const struct asking *asking);
/* Returns cluster_json(); NULL without a cluster. */
json_t *asking_cluster_json(const struct asking *asking);

#endif
