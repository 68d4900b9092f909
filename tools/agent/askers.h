/*
 * Askers: the users of this host, and the senders of OTLP, whose alarms ask for traces. Each has a
 * share of alarms, of waiting traces and of scans (tools/base/payer.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ASKERS_H
#define BLKIN_TOOLS_ASKERS_H

#include "tools/base/payer.h"

#include <jansson.h>

struct asker {
    struct payer payer;
    uint64_t alarms, held_back, doubles, dropped; /* as in struct agent_totals */
    uint64_t unwatched; /* failed attempts to read a memory's alarms: out of memory */
    char why[128];      /* of the last alarm */
    int64_t rest_ms;    /* no scan for the asker's traces begins before this time */
};

void askers_begin(struct payers *askers);

/* Returns the asker of this name, and makes a new one if there is none. At the limit of askers, may
 * return the one named "others": see payers_get(). NULL: out of memory. */
struct asker *askers_get(struct payers *askers, const char *name);

/* NULL is allowed. An asker that is held is not dropped. */
struct asker *asker_hold(struct asker *asker);
void asker_release(struct asker *asker);

/* Returns [{"of": NAME, "alarms", "held_back", "double", "dropped", "unwatched", "why"}]. Counts
 * are since the start. */
json_t *askers_json(const struct payers *askers);

#endif
