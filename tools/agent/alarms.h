/*
 * Polls the rings of this host for alarms, and requests the traces of alarms.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ALARMS_H
#define BLKIN_TOOLS_ALARMS_H

#include "wants.h"
#include "tools/otlp/otlp_in.h"
#include "tools/rings/held.h"

struct alarms;

/* Returns NULL when out of memory. */
struct alarms *alarms_new(struct agent *agent);
void alarms_free(struct alarms *alarms); /* NULL is allowed */

/* Adds or removes a memory. Before the removal, reads the last alarms, unless alarms_stop() was
 * called. */
void alarms_add_memory(struct alarms *alarms, struct held *held);
void alarms_drop_memory(struct alarms *alarms, struct held *held);
/* Adds the memories that could not be added before, for lack of memory. first: all memories. */
void alarms_watch_again(struct alarms *alarms, struct held *first);

/* Takes an alarm for a span of an SDK that was slow or has failed. */
void alarms_note_otlp(struct alarms *alarms, const struct otlp_alarm *otlp);

void alarms_start(struct alarms *alarms);
/* Polls once more, and stops. */
void alarms_stop(struct alarms *alarms);

#endif
