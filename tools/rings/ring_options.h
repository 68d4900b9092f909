/*
 * The holder's options, of the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_OPTIONS_H
#define BLKIN_TOOLS_RINGS_OPTIONS_H

#include "holder.h"
#include "tools/config/config.h"

/*
 * All but fdserver and left_ms. ring-bytes 0: default_bytes, or less, so that four users' events,
 * or three users' events and alarms, have room in rings-max-bytes. Returns false with error set.
 */
bool ring_options(const struct config *config, uint64_t default_bytes,
                  struct holder_options *options, struct error *error);

/* A memory for the status. */
json_t *ring_memory_json(const struct memory *memory, uint32_t user, bool is_left);

#endif
