/*
 * Joining (join.h) as a stage. It is off where programs' halves are not to be joined.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_STAGES_JOIN_STAGE_H
#define BLKIN_STAGES_JOIN_STAGE_H

#include "chain.h"
#include "join.h"

/* Returns NULL when out of memory. */
struct stage *join_stage_new(const struct join_options *options);

struct join_counts join_stage_counts(const struct stage *stage);

#endif
