/*
 * The host's rules of slow spans, which the agent puts into the memories of rings. They come from
 * where programs have theirs from: BLKIN_SLOW, BLKIN_SLOW_FILE or /run/blkin/slow.
 *
 * A process has one set of them, as there is one file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_HOST_RULES_H
#define BLKIN_TOOLS_RINGS_HOST_RULES_H

#include <stdbool.h>

/* Reads them if they have changed. Returns true if these are others than those of before. */
bool host_rules_refresh(void);

/* NULL: there are none so far. */
const char *host_rules(void);

#endif
