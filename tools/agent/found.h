/*
 * Makes the answer of this host to a request: the message "found" (tools/cluster/cluster.h).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOUND_H
#define BLKIN_TOOLS_FOUND_H

#include "agent.h"

/* The reach of a scan: the scan has all records from the later of both times on. */
struct found_reach {
    int64_t held_from_ns; /* CLOCK_MONOTONIC: the rings have all records from then on */
    int64_t reach_ns; /* CLOCK_MONOTONIC: the scan read the records written from then on; INT64_MIN:
                         all records */
};

/*
 * requests: the number of requests that share the scan. found: the result of the scan
 * (selection.h), or NULL. reach: NULL if nothing was scanned. problem: the reason of a failure, or
 * NULL. Returns NULL when out of memory.
 */
json_t *found_new(const struct agent *agent, const struct request *request, size_t requests,
                  const struct found_reach *reach, const json_t *found, const char *problem);

#endif
