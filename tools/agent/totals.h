/*
 * What `blkin agent` has done since its state folder was made.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RECORD_TOTALS_H
#define BLKIN_TOOLS_RECORD_TOTALS_H

#include "tools/base/totals.h"

struct agent_totals {
    struct totals readers;
    /* alarms = doubles + dropped + traces_asked, but for what a start asks for again */
    uint64_t alarms;           /* that were seen */
    uint64_t alarms_double;    /* their trace was wanted already, or fetched after them */
    uint64_t alarms_dropped;   /* more than fetch-traces */
    uint64_t alarms_lost;      /* overwritten before they were seen */
    uint64_t alarms_newer;     /* of a version that is not known here */
    uint64_t alarms_held_back; /* by the caps of programs' rules */
    uint64_t traces_asked;     /* by alarms of this host: asked of all */
    uint64_t traces_asked_by_hand;
    uint64_t traces_asked_by_others;
    uint64_t traces_dropped; /* of others and by hand: more than fetch-traces */
    uint64_t fetches, fetches_failed;
    uint64_t fetched_bytes, picked_bytes;
    uint64_t rings_damaged;
    uint64_t foreign_fetched, foreign_dropped; /* spans of OpenTelemetry's SDKs */
    /* traces_asked + traces_asked_by_hand = these five + those that are open */
    uint64_t traces_complete, traces_incomplete, traces_not_found;
    uint64_t traces_of_others;   /* another host has asked later, and judges */
    uint64_t traces_asked_again; /* this host has asked later */
    uint64_t incomplete_untold;  /* of traces_incomplete: no span tells of them */
    uint64_t rings_grown;
    uint64_t ring_bytes; /* as they have grown: no counter */
};

extern const struct totals_table agent_table;

/* A file that is not there, or is damaged, gives zeros and NULL; else the list of alarms that were
 * heard (heard.h), the caller's. */
json_t *agent_totals_load(struct agent_totals *totals, const char *path);
/* The file's text, with that list, which is taken. NULL: out of memory. */
char *agent_totals_text(const struct agent_totals *totals, json_t *heard, size_t *length);

#endif
