/*
 * What this host answers to a request: the message "found" (tools/cluster/cluster.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ANSWER_H
#define BLKIN_TOOLS_ANSWER_H

#include "agent.h"

/*
 * One of so many requests that a snapshot answers, found: what the snapshot has (only.h), or NULL.
 * problem: why it has nothing, or NULL. Returns NULL when out of memory.
 */
json_t *answer_new(const struct agent *agent, const struct request *request, size_t requests,
                   int64_t held_from_ns, const json_t *found, const char *problem);

#endif
