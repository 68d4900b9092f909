/*
 * Requests of persons (`blkin keep`) at the agent's control socket, and of host-filters.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_BY_HAND_H
#define BLKIN_TOOLS_BY_HAND_H

#include "wants.h"

/* Requests all traces of the last last_ms. service: only traces of this service; "": of all. why:
 * the value of the tag blkin.kept; "": a person's request. The answer has "id" or "error"; NULL:
 * out of memory. */
json_t *by_hand_keep_last(struct agent *agent, int64_t last_ms, const char *service,
                          const char *why);

/* Answers the requests keep, keep-last and kept. Returns NULL for another request. */
json_t *by_hand_answer(struct agent *agent, const char *request);

#endif
