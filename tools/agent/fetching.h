/*
 * Fetching: when the rings are copied, and what comes of it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FETCHING_H
#define BLKIN_TOOLS_FETCHING_H

#include "asking.h"
#include "holding.h"
#include "later.h"
#include "tools/sampler/sampler.h"

struct fetching;

/* later: NULL: there are no foreign spans. *sampler may change. Returns NULL when out of memory. */
struct fetching *fetching_new(struct agent *agent, struct asking *asking, struct kept *kept,
                              const struct holding *holding, struct later *later,
                              struct sampler *const *sampler);
void fetching_free(struct fetching *fetching); /* NULL is allowed */

/* Starts what is due. Returns when there may be something next. */
int64_t fetching_step(struct fetching *fetching);
bool fetching_is_busy(const struct fetching *fetching);

/* The agent ends: what waits is fetched at once. */
void fetching_end(struct fetching *fetching);
/* From now on what fails is not tried again. */
void fetching_last_call(struct fetching *fetching);

#endif
