/*
 * Schedules scans of the rings for wanted traces, and gives the results to the export.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCANS_H
#define BLKIN_TOOLS_SCANS_H

#include "wants.h"
#include "agent_rings.h"
#include "late_spans.h"
#include "tools/sampler/sampler.h"

struct scans;

/* Called after the agent's other parts are open. Returns NULL when out of memory. */
struct scans *scans_new(struct agent *agent);
void scans_free(struct scans *scans); /* NULL is allowed; waits for a running scan */

/* Starts a scan if one is due. Returns the latest time of the next call, in ms of clock_ms();
 * INT64_MAX: the end of the running scan calls agent_step(). */
int64_t scans_step(struct scans *scans);
bool scans_is_busy(const struct scans *scans);

/* Gives the remaining results of the last scan to the export at once. */
void scans_hurry(struct scans *scans);

/* At the end of the agent: makes the waiting requests due at once. Windows still keep the pause
 * after the last window. */
void scans_end(struct scans *scans);

#endif
