/*
 * Requests: to all hosts and from them, the answers, and what becomes of the traces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ASKING_H
#define BLKIN_TOOLS_ASKING_H

#include "agent.h"
#include "answer.h"
#include "halves.h"

struct asking;

/* Joins the cluster, if there is one. Returns NULL with error set. */
struct asking *asking_open(struct agent *agent, struct error *error);
void asking_close(struct asking *asking); /* NULL is allowed */

/* ---- requests of this host */

/* Asks all hosts, this one too. Takes the request. name: a person's, or NULL. */
void asking_ask(struct asking *asking, struct request *request, const char *name,
                int64_t linger_ms);

/* The same for alarms. With send = all nothing has to be fetched here. Takes the request. */
void asking_ask_for_alarms(struct asking *asking, struct request *request);

/* Asks all hosts for a person. Takes the request. Returns {"id": NAME}, for asking_known(). */
json_t *asking_ask_by_hand(struct asking *asking, struct request *request);

/* What became of a person's request; NULL: none of this name is known. */
json_t *asking_known(const struct asking *asking, const char *name);

/* What was open when the agent ended is asked for again, as far as there is room. */
void asking_again(struct asking *asking);

/* Why all of a time is not fetched for that host; NULL: it is. */
const char *asking_refuses(const struct asking *asking, const char *host);

/* ---- what this host has of requests */

/* reach: NULL: nothing was scanned. problem: why it has nothing, or NULL. */
void asking_answer(struct asking *asking, const struct request *requests,
                   const struct answer_reach *reach, const json_t *found, const char *problem);

/* What a scan found (only.h), whose spans are given to the export; NULL: nothing. */
void asking_found(struct asking *asking, const struct request *requests,
                  const struct answer_reach *reach, const json_t *found);

/* What other hosts have asked for and was not fetched outlives the agent: in a file, and back. */
void asking_save(struct asking *asking);
void asking_load(struct asking *asking);

/* ---- joins (joins.h) */

/* A look has ended. problem: why it failed, or NULL. */
void asking_looked(struct asking *asking, const struct halves *found, int64_t held_from_ns,
                   const char *problem);
/* Where a trace is sent. False: under its own id. */
bool asking_place(const struct asking *asking, struct trace_id id, struct join_place *place);
/* The agent ends: no place of a trace is waited for any more. */
void asking_end_joins(struct asking *asking);

/* ---- verdicts */

/* Judges what can be judged; returns when to call it again. */
int64_t asking_judge(struct asking *asking);
void asking_note_stall(struct asking *asking, int64_t stall_ms); /* as ledger_note_stall() */

/* Traces and requests that are not judged yet. */
size_t asking_open_count(const struct asking *asking);
/* The broker is there, and has yet to accept messages. */
bool asking_is_posting(const struct asking *asking);

/* ---- what it shows */

/* The hosts that are asked: a new array. */
json_t *asking_hosts(const struct asking *asking);
/* Of the cluster; NULL: there is none. */
json_t *asking_cluster_json(const struct asking *asking);

#endif
