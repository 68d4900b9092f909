/*
 * What persons ask the agent for, on its control socket: `blkin keep`.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_BY_HAND_H
#define BLKIN_TOOLS_BY_HAND_H

#include "asking.h"

/* The answer to keep, keep-last, keep-why, kept; NULL: the request is none of these. */
json_t *by_hand_answer(struct agent *agent, struct asking *asking, const char *request);

#endif
