/*
 * The stage of a worker: assembles traces, counts them, and keeps them if a rule matches. The stage
 * knows nothing of Kafka.
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
#include "partition.h"
#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/deliver/exporter.h"

/*
 * Writes kept traces: to a topic of the same brokers, unchanged and in the worker's transactions;
 * or by the sink's exporter, outside of the transactions, at least once.
 */

#define KEPT_MESSAGE_MAX 900000U

/* Takes a request of OTLP traces for a partition. The caller owns the bytes. Returns false on
 * failure. */
typedef bool keeper_emit_fn(void *context, uint32_t partition, const char *data, size_t length);

struct keeper;

/* Makes a keeper for a topic. Returns NULL when out of memory. */
struct keeper *keeper_new_topic(uint32_t partitions, keeper_emit_fn *emit, void *context);

/* Makes a keeper with an exporter. Returns NULL with error set. */
struct keeper *keeper_new_exporter(const struct exporter_options *options,
                                   const struct exporter_callbacks *callbacks, struct error *error);

/* Adds a trace's spans. Counts these spans, and those that are too large for a message. Returns
 * false if emit() failed, a span cannot be decoded, or memory is short. */
bool keeper_add(struct keeper *keeper, const struct held_trace *trace, struct work_counts *counts);

/* Emits all added spans. With an exporter: delivers them, or stores them in its spool, or counts
 * them as given up. Returns false with error set. */
bool keeper_flush(struct keeper *keeper, struct error *error);

/* Returns false if the keeper has no exporter. */
bool keeper_exporter_counts(struct keeper *keeper, struct exporter_counts *counts);

/* NULL is allowed. */
void keeper_free(struct keeper *keeper);

/* The caller clears the struct before work_stage_open(). */
struct work_stage {
    struct work_counts counts;
    struct names *names;
    struct statistics *statistics;
    struct trace_model model;
    struct tail_rules *rules;
    struct keeper *keeper; /* NULL: keeps no traces */
    struct assembly assembly;
};

/* Returns false when out of memory; the caller calls work_stage_close() in any case. */
bool work_stage_open(struct work_stage *stage, int64_t wait_ms);

/* Frees the members, also the rules and the keeper. */
void work_stage_close(struct work_stage *stage);

#endif
