/*
 * What this host answers to a request: the message "found" (tools/cluster/cluster.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ANSWER_H
#define BLKIN_TOOLS_ANSWER_H

#include "agent.h"

/* How far back a scan has found. */
struct answer_reach {
    int64_t held_from_ns; /* since 1970: from then on the rings have all */
    int64_t reach_ns; /* CLOCK_MONOTONIC: what is before was not looked for; INT64_MIN: all was */
};

/*
 * One of so many requests that a snapshot answers, found: what the snapshot has (only.h), or NULL.
 * reach: NULL: nothing was scanned. problem: why it has nothing, or NULL. Returns NULL when out of
 * memory.
 */
json_t *answer_new(const struct agent *agent, const struct request *request, size_t requests,
                   const struct answer_reach *reach, const json_t *found, const char *problem);

#endif
