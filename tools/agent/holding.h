/*
 * Configures, grows and measures the rings of this host's programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOLDING_H
#define BLKIN_TOOLS_HOLDING_H

#include "agent.h"
#include "tools/rings/holder.h"

struct holding;

/* The callbacks may be called before the function returns. Returns NULL with error set, for example
 * if another agent runs. */
struct holding *holding_open(struct agent *agent, const struct holder_callbacks *callbacks,
                             struct error *error);
void holding_close(struct holding *holding); /* NULL is allowed */

/* Applies the agent's new configuration. Returns false with error set if the keys are wrong. */
bool holding_configure(struct holding *holding, struct error *error);

/* Returns the first memory; `next` links all memories. */
struct held *holding_first(const struct holding *holding);

/* Returns the bytes per second that all programs wrote until the last look. */
uint64_t holding_bytes_per_s(const struct holding *holding);
/* Returns the seconds until the busiest ring is overwritten at this rate; 0: nothing is written. */
uint64_t holding_holds_s(const struct holding *holding);

/* Returns the part "rings" of the status. */
json_t *holding_json(const struct holding *holding);

#endif
