/*
 * The alarms of this host's programs: a watcher polls them, and their traces are asked for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ALARMS_H
#define BLKIN_TOOLS_ALARMS_H

#include "asking.h"
#include "recording.h"

struct alarms;

/* Returns NULL when out of memory. */
struct alarms *alarms_new(struct agent *agent, struct asking *asking, struct recording *recording);
void alarms_free(struct alarms *alarms); /* NULL is allowed */

void alarms_start(struct alarms *alarms);
/* The watcher ends after the poll that is under way, or is killed. */
void alarms_stop(struct alarms *alarms);
bool alarms_are_watched(const struct alarms *alarms);

/* Once, at least: what was wanted by then is known. */
bool alarms_have_polled(const struct alarms *alarms);

/* [{"rule", "alarms", "held_back", "dropped"}], since the start */
json_t *alarms_rules_json(const struct alarms *alarms);

#endif
