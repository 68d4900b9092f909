/*
 * Configures, grows and measures the rings of this host's programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_RINGS_H
#define BLKIN_TOOLS_AGENT_RINGS_H

#include "agent.h"
#include "tools/rings/holder.h"

struct agent_rings;

/* The callbacks may be called before the function returns. Returns NULL with error set, for example
 * if another agent runs. */
struct agent_rings *agent_rings_open(struct agent *agent, const struct holder_callbacks *callbacks,
                                     struct error *error);
void agent_rings_close(struct agent_rings *agent_rings); /* NULL is allowed */

/* Applies the agent's new configuration. Returns false with error set if the keys are wrong. */
bool agent_rings_configure(struct agent_rings *agent_rings, struct error *error);

/* Returns the first memory; `next` links all memories. */
struct held *agent_rings_first(const struct agent_rings *agent_rings);

/* Returns the bytes per second that all programs wrote until the last look. */
uint64_t agent_rings_bytes_per_s(const struct agent_rings *agent_rings);
/* Returns the seconds until the busiest ring is overwritten at this rate; 0: nothing is written. */
uint64_t agent_rings_holds_s(const struct agent_rings *agent_rings);

/* Returns the part "rings" of the status. */
json_t *agent_rings_json(const struct agent_rings *agent_rings);

#endif
