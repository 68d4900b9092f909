/*
 * What the parts of interaction.h share: interaction.c for interaction_end.c and
 * interaction_held.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_INTERACTION_PARTS_H
#define BLKIN_PRELOAD_INTERACTION_PARTS_H

#include "interaction.h"

/* True for the one who ends it, and has to record it. */
bool interaction_end_once(struct interaction *interaction);
void interaction_record(struct interaction *interaction);

/* Ends what has no answer. */
void interaction_discard(struct interaction *interaction);

/* Of all threads that run. */
void interaction_for_each_worker(void (*look)(void *worker));

#endif
