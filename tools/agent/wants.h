/*
 * Exchanges requests and answers with all hosts, and judges whether traces are complete.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WANTS_H
#define BLKIN_TOOLS_WANTS_H

#include "agent.h"
#include "halves.h"
#include "joins.h"
#include "judge.h"
#include "tools/cluster/cluster.h"

struct wants {
    struct agent *agent;
    struct cluster *cluster; /* NULL: this host has no cluster */
    struct judge *judge;
    struct joins *joins;
    /* The number of the last request, part of its id. Numbers begin with the time in ms: the next
     * process, which may have the same pid in a container, must not take this process's answers. */
    unsigned long requests;
    struct request *earlier; /* collects traces that began before the searched time, by asker */
    bool asks_again;         /* an earlier process may have left open traces */
    bool has_saved_others;   /* others_file is not empty */
    bool others_changed;     /* others_file does not have the last change: see wants_save() */
    char others_file[4096];
};

/* Connects with the cluster, if one is configured. Returns NULL with error set. */
struct wants *wants_open(struct agent *agent, struct error *error);
void wants_close(struct wants *wants); /* NULL is allowed */

/* ---- requests of this host */

/* Sends a request for alarms to all hosts, and fetches the spans of this host. With send = all,
 * only other hosts fetch. Takes the request. */
void wants_send_for_alarms(struct wants *wants, struct request *request);

/* Sends a person's request to all hosts, and fetches the spans of this host. Takes the request.
 * Returns {"id": NAME}, for judge_json(). */
json_t *wants_send_by_hand(struct wants *wants, struct request *request);

/* Repeats the requests that were open at the end of an earlier process, as far as there is room. */
void wants_repeat(struct wants *wants);

/* Returns why this host refuses that host's requests for windows; NULL: it accepts them. */
const char *wants_refuses(const struct wants *wants, const char *host);

/* ---- answers of this host */

/* The reach of a scan: the scan has all records from the later of both times on. */
struct found_reach {
    int64_t held_from_ns; /* CLOCK_MONOTONIC: the rings have all records from then on */
    int64_t reach_ns; /* CLOCK_MONOTONIC: the scan read the records written from then on; INT64_MIN:
                         all records */
};

/* Answers the requests. reach: NULL if nothing was scanned. problem: the reason of a failure, or
 * NULL. */
void wants_answer(struct wants *wants, const struct request *requests,
                  const struct found_reach *reach, const json_t *found, const char *problem);

/* Notes the result of a scan, and answers the requests. found: see selection.h; NULL: nothing. */
void wants_found(struct wants *wants, const struct request *requests,
                 const struct found_reach *reach, const json_t *found);

/* Save and load the requests of other hosts that name traces and wait, or are fetched now.
 * wants_save() writes only after a change. The loop calls it once for all messages of one turn. */
void wants_save(struct wants *wants);
void wants_load(struct wants *wants);

/* ---- verdicts */

/* Judges the traces that can be judged. Returns the time of the next call, in ms of clock_ms(). */
int64_t wants_judge(struct wants *wants);

/* Returns the number of traces and requests that are not judged yet. */
size_t wants_open_count(const struct wants *wants);

/* ---- status */

/* Returns a new array of the hosts that are asked. */
json_t *wants_hosts(const struct wants *wants);

/* ---- shared by wants.c and wants_answers.c */

void wants_set_id(struct wants *wants, struct request *request);

/* Sends the request to the other hosts, and enters it in the judge's list. The caller has to fetch
 * the spans of this host. halves: of the request's only trace, or NULL. Takes the halves. */
void wants_ask_others(struct wants *wants, struct request *request, const char *name,
                      int64_t linger_ms, json_t *halves);

/* Returns NULL when out of memory. */
struct joins *wants_open_joins(struct wants *wants);

#endif
