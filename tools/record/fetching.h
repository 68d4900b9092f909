/*
 * The snapshots of the ring: when one is taken, what comes of it, and how the ring is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FETCHING_H
#define BLKIN_TOOLS_FETCHING_H

#include "asking.h"
#include "pick.h"
#include "recording.h"

struct fetching;

/* Returns NULL when out of memory. */
struct fetching *fetching_new(struct agent *agent, struct asking *asking, struct kept *kept,
                              struct recording *recording);
void fetching_free(struct fetching *fetching); /* NULL is allowed */

/* Starts what is due. Returns when there may be something next. */
int64_t fetching_step(struct fetching *fetching);
bool fetching_is_busy(const struct fetching *fetching);

/* The ring is a new one. */
void fetching_ring_is_new(struct fetching *fetching);

/* The agent ends: what waits is fetched at once. */
void fetching_end(struct fetching *fetching);
/* From now on what fails is not tried again. */
void fetching_last_call(struct fetching *fetching);

/* How the ring was at the last look. */
const struct ring_look *fetching_look(const struct fetching *fetching);
/* How long the ring lasts at the rate of the last look; 0: not known. */
uint64_t fetching_holds_s(const struct fetching *fetching);
/* The ring, for the status. */
json_t *fetching_ring_json(const struct fetching *fetching);

#endif
