/*
 * The spans that wait for the collector in the agent's spool, for `blkin show agent:`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_AGENT_WAITING_H
#define BLKIN_TOOLS_AGENT_WAITING_H

#include <jansson.h>

/* Returns the oldest spans in Zipkin's JSON, at most about 4 MiB. folder: of the spool; "": none.
 */
json_t *waiting_spans(const char *folder);

#endif
