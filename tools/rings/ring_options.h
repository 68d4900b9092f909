/*
 * Reads the holder's options from the configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_OPTIONS_H
#define BLKIN_TOOLS_RINGS_OPTIONS_H

#include "tools/config/config.h"

/*
 * Sets all options but fdserver and left_ms. With ring-bytes 0, rings of events have default_bytes,
 * or less, so that rings-max-bytes has room for the events of four users. Returns false with error
 * set.
 */
bool ring_options(const struct config *config, uint64_t default_bytes,
                  struct holder_options *options, struct error *error);

/* Returns the status of a memory. */
json_t *ring_memory_json(const struct memory *memory, uint32_t user, bool is_left);

#endif
