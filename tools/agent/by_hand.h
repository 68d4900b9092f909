/*
 * What persons ask the agent for, on its control socket: `blkin keep`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_BY_HAND_H
#define BLKIN_TOOLS_BY_HAND_H

#include "asking.h"

/* All traces of the last time, of this service; "": of all. why: the tag of their spans; "": none.
 * The answer is that to keep-last: "id", or "error". */
json_t *by_hand_keep_last(struct agent *agent, struct asking *asking, int64_t last_ms,
                          const char *service, const char *why);

/* The answer to keep, keep-last, kept; NULL: the request is none of these. */
json_t *by_hand_answer(struct agent *agent, struct asking *asking, const char *request);

#endif
