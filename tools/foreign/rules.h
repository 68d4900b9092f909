/*
 * Which spans are slow or have failed: the rules that programs with libblkin have, from the same
 * places (BLKIN_SLOW, BLKIN_SLOW_FILE or /run/blkin/slow), with the same limit of alarms.
 *
 * A rule of duration is for spans at which a request enters a process (server, consumer) or begins
 * (no parent): the time of those inside it and of its calls is in it. A rule of errors is for all.
 *
 * There is one set of rules in a process, as there is one file.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOREIGN_RULES_H
#define BLKIN_TOOLS_FOREIGN_RULES_H

#include "options.h"
#include "tools/otlp/otlp_decode.h"

#include <jansson.h>

/* Reads the rules, once. */
void foreign_rules_open(void);

/* About once a second: takes the file over if it has changed, and gives alarms without ids, which
 * tell of those that the limit held back. */
void foreign_rules_refresh(const struct foreign_callbacks *callbacks);

enum rules_verdict { RULES_FINE, RULES_ALARM, RULES_HELD_BACK };

/* Gives an alarm if a rule fits and the limit allows it. A later alarm tells what was held back. */
enum rules_verdict foreign_rules_check(const struct otlp_origin *origin,
                                       const struct otlp_span *span,
                                       const struct foreign_callbacks *callbacks);

/* {"rules": [...], "wrong": ...}; NULL: out of memory. */
json_t *foreign_rules_json(void);

#endif
