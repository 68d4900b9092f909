/*
 * Command "blkin agent --dump=DIR": writes the contents of the rings as a trace for babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_DUMP_RINGS_H
#define BLKIN_TOOLS_DUMP_RINGS_H

#include "tools/config/config.h"

/* Dumps the rings of the running agent, or the rings that outlived a killed agent. Returns the exit
 * status. */
int dump_rings(const struct config *config, const char *folder);

#endif
