/*
 * The status of the agent: as JSON for `blkin status`, and as metrics for Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_STATUS_H
#define BLKIN_TOOLS_AGENT_STATUS_H

#include "alarms.h"
#include "scans.h"
#include "send_all.h"

struct agent_parts {
    struct agent agent;
    struct wants *wants;
    struct alarms *alarms;
    struct agent_rings *agent_rings;
    struct otlp_in *otlp; /* NULL: no SDK sends spans here */
    struct late_spans *late_spans;
    struct scans *scans;
    struct sampler *sampler; /* NULL: host = no */
    struct send_all *all;    /* NULL: send = slow */
};

/* The functions status() and page() of the agent's struct frame_calls. NULL: out of memory. */
json_t *agent_status_json(const struct agent_parts *parts);
char *agent_status_page(const struct agent_parts *parts);

#endif
