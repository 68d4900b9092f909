/*
 * blkin agent --dump=DIR: what the rings hold now, as a trace for babeltrace2 and others.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DUMP_RINGS_H
#define BLKIN_TOOLS_DUMP_RINGS_H

#include "tools/config/config.h"

/* Of the agent that runs; else of what has outlived one that was killed. Returns the exit
 * status. */
int dump_rings(const struct config *config, const char *folder);

#endif
