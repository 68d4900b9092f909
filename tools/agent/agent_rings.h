/*
 * Configures, grows and measures the rings of this host's programs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_RINGS_H
#define BLKIN_TOOLS_AGENT_RINGS_H

#include "agent.h"
#include "babeltrace-plugin/base/printer.h"
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

/* Returns the object "rings" of the status. */
json_t *agent_rings_json(const struct agent_rings *agent_rings);
/* Prints the metrics blkin_agent_ring_*. */
void agent_rings_print(const struct agent_rings *agent_rings, struct printer *printer);

#endif
