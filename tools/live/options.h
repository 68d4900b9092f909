/*
 * The configuration of `blkin live`, as its parts want it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_OPTIONS_H
#define BLKIN_LIVE_OPTIONS_H

#include "readers.h"
#include "relay.h"
#include "tools/config/config.h"
#include "tracing.h"

/* All return false with error set. */
bool options_of_relay(const struct config *config, struct relay_options *options,
                      struct error *error);
bool options_of_session(const struct config *config, const struct relay_options *relay,
                        struct session_spec *spec, struct error *error);
bool options_of_readers(const struct config *config, const struct relay_options *relay,
                        struct readers_options *options, struct error *error);

#endif
