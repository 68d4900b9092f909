/*
 * The stage of a worker: traces are put together, counted, and kept if the rules want that. Knows
 * nothing of Kafka.
 *
 * The sink's chain of stages (babeltrace-plugin/stages/chain.h) is not used here. It takes whole
 * spans, and to decode these would cost more than all that a worker does with a span. And what a
 * worker counts must be a function of the log of one partition: joining needs both halves of a
 * request, whose trace ids lie in different partitions, and tail sampling of the sink waits for the
 * last span of a trace, where the worker closes it a fixed time after its first message.
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
