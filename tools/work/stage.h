/*
 * The stage of a worker: assembles traces, counts them, and keeps them if a rule matches. Knows
 * nothing of Kafka.
 *
 * A worker does not use the sink's stages (babeltrace-plugin/stages/chain.h). The stages take
 * decoded spans, and decoding costs more than all other work of a worker. A worker's counts must
 * also be a function of the log of one partition. The stage join needs both halves of a request,
 * which are in different partitions. Tail sampling waits for a trace's last span, while a worker
 * closes a trace a fixed time after its first message.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_STAGE_H
#define BLKIN_TOOLS_WORK_STAGE_H

#include "babeltrace-plugin/model/statistics.h"
#include "babeltrace-plugin/model/tail.h"
#include "keeper.h"
#include "partition.h"

/* Begins with zeros, then work_stage_open(). */
struct work_stage {
    struct work_counts counts;
    struct names *names;
    struct statistics *statistics;
    struct trace_model model;
    struct tail_rules *rules;
    struct keeper *keeper; /* NULL: keeps no traces */
    struct assembly assembly;
};

/* Returns false when out of memory; the caller closes it in any case. */
bool work_stage_open(struct work_stage *stage, int64_t wait_ms);

/* Frees the rules and the keeper, too. */
void work_stage_close(struct work_stage *stage);

#endif
