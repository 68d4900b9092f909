/*
 * When the rings are scanned for wanted traces, and what comes of it.
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

/* later: NULL: there are no spans of SDKs. *sampler may change. Returns NULL when out of memory. */
struct scans *scans_new(struct agent *agent, struct asking *asking, const struct holding *holding,
                        struct later *later, struct sampler *const *sampler);
void scans_free(struct scans *scans); /* NULL is allowed; waits for a scan that runs */

/* Starts what is due. Returns when there may be something next. */
int64_t scans_step(struct scans *scans);
bool scans_is_busy(const struct scans *scans);

/* Gives all that the last scan found to the export, now. */
void scans_hurry(struct scans *scans);

/* The agent ends: what waits is scanned for at once. */
void scans_end(struct scans *scans);
/* From now on a scan that fails is not tried again. */
void scans_last_call(struct scans *scans);

#endif
