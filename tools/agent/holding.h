/*
 * The rings of this host's programs, and measurements of their fill.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOLDING_H
#define BLKIN_TOOLS_HOLDING_H

#include "agent.h"
#include "tools/rings/holder.h"

struct holding;

/* May call the callbacks before it returns. Returns NULL with error set, for example if another
 * agent runs. */
struct holding *holding_open(struct agent *agent, const struct holder_callbacks *callbacks,
                             struct error *error);
void holding_close(struct holding *holding); /* NULL is allowed */

/* Applies a new configuration. Returns false with error set if it is wrong. */
bool holding_configure(struct holding *holding, struct error *error);

/* All memories: linked by next. */
struct held *holding_first(const struct holding *holding);

/* Bytes that all programs write per second, measured at the last look. */
uint64_t holding_bytes_per_s(const struct holding *holding);
/* Seconds that the fastest ring holds at this rate; 0: nothing is written. */
uint64_t holding_holds_s(const struct holding *holding);

/* For the status. */
json_t *holding_json(const struct holding *holding);

#endif
