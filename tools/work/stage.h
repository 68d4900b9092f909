/*
 * The stage of a worker: traces are put together, counted, and kept if the rules want that. Knows
 * nothing of Kafka.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_STAGE_H
#define BLKIN_TOOLS_WORK_STAGE_H

#include "babeltrace-plugin/model/statistics.h"
#include "babeltrace-plugin/model/tail.h"
#include "keeper.h"
#include "partition.h"

/* Zeros, then work_stage_open(). */
struct work_stage {
    struct work_counts counts;
    struct names *names;
    struct statistics *statistics;
    struct trace_model model;
    struct tail_rules *rules;
    struct keeper *keeper; /* NULL: nothing is kept */
    struct assembly assembly;
};

/* Returns false when out of memory: close it all the same. */
bool work_stage_open(struct work_stage *stage, int64_t wait_ms);

/* Rules and keeper, too. */
void work_stage_close(struct work_stage *stage);

#endif
