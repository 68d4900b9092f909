/*
 * The rings of this host's programs, which the agent holds, and how they are: as measured.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOLDING_H
#define BLKIN_TOOLS_HOLDING_H

#include "agent.h"
#include "tools/rings/holder.h"

struct holding;

/* The callbacks may be called before this returns. Returns NULL with error set: another agent is
 * there, say. */
struct holding *holding_open(struct agent *agent, const struct holder_callbacks *callbacks,
                             struct error *error);
void holding_close(struct holding *holding); /* NULL is allowed */

/* The configuration is another one. Returns false with error set: it cannot be. */
bool holding_configure(struct holding *holding, struct error *error);

/* All memories: linked by next. */
struct held *holding_first(const struct holding *holding);

/* Written by all programs, at the last look. */
uint64_t holding_bytes_per_s(const struct holding *holding);
/* For so long the ring that is written fastest lasts at this rate; 0: nothing is written. */
uint64_t holding_holds_s(const struct holding *holding);

/* For the status. */
json_t *holding_json(const struct holding *holding);

#endif
