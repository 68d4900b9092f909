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
    /* alarms = alarms_double + alarms_dropped + the part of traces_asked that alarms caused */
    uint64_t alarms;           /* read from rings */
    uint64_t alarms_double;    /* the trace was already wanted, or fetched after the alarm */
    uint64_t alarms_dropped;   /* beyond the limit fetch-traces: the trace is not fetched */
    uint64_t alarms_lost;      /* overwritten before they were read */
    uint64_t alarms_newer;     /* of a newer format */
    uint64_t alarms_held_back; /* not recorded: a cap of a program's rules; not in `alarms` */
    /* requested from all hosts: for an alarm of this host, again after a restart, for an earlier
     * begin, or for a joined half */
    uint64_t traces_asked;
    uint64_t traces_asked_by_hand;
    uint64_t traces_asked_by_others;
    uint64_t traces_dropped; /* requested by other hosts or by hand, beyond fetch-traces */
    uint64_t fetches, fetches_failed;
    uint64_t fetched_bytes, picked_bytes; /* scanned, and found in them */
    uint64_t rings_damaged;
    uint64_t foreign_fetched, foreign_dropped; /* spans of OpenTelemetry's SDKs */
    /* traces_asked + traces_asked_by_hand = complete + incomplete + not_found + of_others +
     * asked_again + open ones */
    uint64_t traces_complete, traces_incomplete, traces_not_found;
    uint64_t traces_of_others;   /* another host has requested it later, and gives the verdict */
    uint64_t traces_asked_again; /* this host has requested it later */
    uint64_t incomplete_untold;  /* incomplete, without a span that reports it */
    uint64_t rings_grown;
    uint64_t ring_bytes; /* size of a ring of events in new memories; no counter, but saved */
};

extern const struct totals_table agent_table;

/* Returns the list of heard alarms (heard.h), which the caller frees. A missing or damaged file
 * gives zeros and NULL. */
json_t *agent_totals_load(struct agent_totals *totals, const char *path);
/* Returns the text of the state file, with the heard alarms, whose reference it takes. NULL: out of
 * memory. */
char *agent_totals_text(const struct agent_totals *totals, json_t *heard, size_t *length);

#endif
