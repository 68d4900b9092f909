/*
 * What `blkin record` tells of itself: as JSON for `blkin status`, and to Prometheus.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RECORD_STATUS_H
#define BLKIN_TOOLS_RECORD_STATUS_H

#include "agent.h"

/* NULL: out of memory. */
json_t *record_status_json(const struct agent *agent);
char *record_status_page(const struct agent *agent);

/* The account of all runs, in a line for the end. */
void record_status_print(const struct record_totals *totals);

#endif
