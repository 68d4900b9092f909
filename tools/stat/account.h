/*
 * A service's account as the sink's own line says it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_STAT_ACCOUNT_H
#define BLKIN_TOOLS_STAT_ACCOUNT_H

#include "babeltrace-plugin/account/counters.h"

#include <jansson.h>

#define ACCOUNT_LINE_MAX (COUNTS_LINE_MAX + 256)

/* values has the counters by their names; those that are not there are 0. */
void account_line(const char *name, const json_t *values, char line[ACCOUNT_LINE_MAX]);

#endif
