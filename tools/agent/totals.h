/*
 * The totals of the agent since its state folder was made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_TOTALS_H
#define BLKIN_TOOLS_AGENT_TOTALS_H

#include "tools/base/totals.h"

struct agent_totals {
    struct counts sinks; /* of all runs */
    /* alarms = alarms_double + alarms_dropped + traces_asked - requests repeated at a start */
    uint64_t alarms;           /* read from rings */
    uint64_t alarms_double;    /* the trace was already wanted, or fetched after the alarm */
    uint64_t alarms_dropped;   /* more than fetch-traces */
    uint64_t alarms_lost;      /* overwritten before they were read */
    uint64_t alarms_newer;     /* of a newer format */
    uint64_t alarms_held_back; /* held back by the caps of programs' rules */
    uint64_t traces_asked;     /* requested from all hosts, for alarms of this host */
    uint64_t traces_asked_by_hand;
    uint64_t traces_asked_by_others;
    uint64_t traces_dropped; /* requested by other hosts or by hand: more than fetch-traces */
    uint64_t fetches, fetches_failed;
    uint64_t fetched_bytes, picked_bytes;
    uint64_t rings_damaged;
    uint64_t foreign_fetched, foreign_dropped; /* spans of OpenTelemetry's SDKs */
    /* traces_asked + traces_asked_by_hand = these five + open ones */
    uint64_t traces_complete, traces_incomplete, traces_not_found;
    uint64_t traces_of_others;   /* another host has requested the trace later, and judges */
    uint64_t traces_asked_again; /* this host has requested the trace later */
    uint64_t incomplete_untold;  /* incomplete traces without a span about that */
    uint64_t traces_apart;       /* spans about traces of one request that were sent apart */
    uint64_t halves_dropped;     /* halves of requests (joins.h) for which there was no room */
    uint64_t rings_grown;
    uint64_t ring_bytes; /* the current size, not a counter */
};

extern const struct totals_table agent_table;

/* Returns the list of heard alarms (heard.h), which the caller frees. A missing or damaged file
 * gives zeros and NULL. */
json_t *agent_totals_load(struct agent_totals *totals, const char *path);
/* The file's text, with that list, which is taken. NULL: out of memory. */
char *agent_totals_text(const struct agent_totals *totals, json_t *heard, size_t *length);

#endif
