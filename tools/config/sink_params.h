/* Makes the sink's parameters from a configuration.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_SINK_PARAMS_H
#define BLKIN_TOOLS_SINK_PARAMS_H

#include "babeltrace-plugin/params.h"
#include "config.h"

/* The texts live as long as the configuration. Returns false with error set. */
bool config_sink_params(const struct config *config, struct params *params, struct error *error);

#endif
