/*
 * Schedules scans of the rings for wanted traces, and gives the results to the export.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SCANS_H
#define BLKIN_TOOLS_SCANS_H

#include "asking.h"
#include "holding.h"
#include "later.h"
#include "tools/sampler/sampler.h"

struct scans;

/* later: NULL without spans of SDKs. *sampler may change. Returns NULL when out of memory. */
struct scans *scans_new(struct agent *agent, struct asking *asking, const struct holding *holding,
                        struct later *later, struct sampler *const *sampler);
void scans_free(struct scans *scans); /* NULL is allowed; waits for a scan that runs */

/* Starts a scan if one is due. Returns the time of the next call. */
int64_t scans_step(struct scans *scans);
bool scans_is_busy(const struct scans *scans);

/* Gives all results of the last scan to the export, now. */
void scans_hurry(struct scans *scans);

/* The agent ends: scans for all waiting requests at once. */
void scans_end(struct scans *scans);
/* From now on a scan that fails is not tried again. */
void scans_last_call(struct scans *scans);

#endif
