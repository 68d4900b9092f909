/*
 * What `blkin agent` tells of itself: as JSON for `blkin status`, and to Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RECORD_STATUS_H
#define BLKIN_TOOLS_RECORD_STATUS_H

#include "alarms.h"
#include "fetching.h"
#include "send_all.h"

/* The parts of the agent. */
struct agent_parts {
    struct agent agent;
    struct asking *asking;
    struct kept *kept;
    struct alarms *alarms;
    struct holding *holding;
    struct otlp_in *foreign; /* NULL: no SDK sends spans here */
    struct later *later;
    struct fetching *fetching;
    struct sampler *sampler; /* NULL: host = no */
    struct send_all *all;    /* NULL: send = slow */
};

/* For the frame's status(), and its page(). NULL: out of memory. */
json_t *agent_status_json(const struct agent_parts *parts);
char *agent_status_page(const struct agent_parts *parts);

/* The account of all runs, in a line for the end. */
void agent_status_print(const struct agent_totals *totals);

#endif
