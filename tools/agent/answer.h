/*
 * Makes the answer of this host to a request: the message "found" (tools/cluster/cluster.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ANSWER_H
#define BLKIN_TOOLS_ANSWER_H

#include "agent.h"

/* How far back a scan has found. */
struct answer_reach {
    int64_t held_from_ns; /* CLOCK_MONOTONIC: from then on the rings have all */
    int64_t reach_ns;     /* CLOCK_MONOTONIC: the scan searched from here on; INT64_MIN: all */
};

/*
 * requests: the number of requests that share the scan. found: the result of the scan (only.h), or
 * NULL. reach: NULL: nothing was scanned. problem: the reason of a failure, or NULL. Returns NULL
 * when out of memory.
 */
json_t *answer_new(const struct agent *agent, const struct request *request, size_t requests,
                   const struct answer_reach *reach, const json_t *found, const char *problem);

#endif
