/*
 * The totals of all runs of the agent. A file in the state folder stores them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_TOTALS_H
#define BLKIN_TOOLS_AGENT_TOTALS_H

#include "tools/base/totals.h"

struct agent_totals {
    struct counts sinks; /* of the pipelines and the exporter */
    /* alarms = alarms_double + alarms_dropped + the traces_asked for alarms */
    uint64_t alarms;           /* of programs and of SDKs, with a trace */
    uint64_t alarms_double;    /* the trace was already wanted, fetched after the alarm, or sent */
    uint64_t alarms_dropped;   /* beyond the asker's share, so the trace is not fetched */
    uint64_t alarms_lost;      /* overwritten before they were read */
    uint64_t alarms_newer;     /* of a newer format */
    uint64_t alarms_held_back; /* suppressed by the caps of rules; not in `alarms` */
    /* Requested from all hosts: for alarms, again after a restart or for an earlier begin, and for
     * joins. traces_asked + traces_asked_by_hand = traces_complete + traces_incomplete +
     * traces_not_found + traces_of_others + traces_asked_again + open */
    uint64_t traces_asked, traces_asked_by_hand;
    uint64_t traces_asked_by_others;
    uint64_t traces_dropped; /* requested by other hosts or by hand, but beyond fetch-traces */
    uint64_t fetches, fetches_failed;
    uint64_t fetched_bytes, picked_bytes; /* of records that scans read, and that they found */
    uint64_t rings_damaged;
    uint64_t foreign_fetched, foreign_dropped; /* spans of OpenTelemetry's SDKs */
    uint64_t traces_complete, traces_incomplete, traces_not_found;
    uint64_t traces_of_others;   /* another host judges, as it requested the trace later */
    uint64_t traces_asked_again; /* a later request of this host judges */
    uint64_t incomplete_untold;  /* incomplete traces that no span "incomplete" reports */
    uint64_t traces_apart;       /* spans about traces of one request that were sent apart */
    uint64_t halves_dropped;     /* halves of requests (joins.h) for which there was no room */
    uint64_t rings_grown;
    uint64_t traces_skipped, skipped_bytes; /* after crashes: see deaths.h */
    /* no counters */
    uint64_t ring_bytes; /* the size of a ring in new memories; 0: not grown */
    json_t *read;        /* the settled place of send = all: see send_all.h; NULL: none */
    uint64_t deaths;     /* crashes of agents that have read on from this place: see deaths.h */
    int64_t deaths_at_ns;
    json_t *file; /* the file that the last run has ended: see export.h; NULL: none */
};

extern const struct totals_table agent_table;

/* Returns the list of read alarms (alarms_seen.h), which the caller frees. A missing or damaged
 * file gives zeros and NULL. */
json_t *agent_totals_load(struct agent_totals *totals, const char *path);
/* Returns the text of the file; NULL: out of memory. Takes the list of read alarms. */
char *agent_totals_text(const struct agent_totals *totals, json_t *alarms_seen, size_t *length);

#endif
