/*
 * A worker's transactions: what it has counted and kept, and where it stands, are written together
 * or not at all.
 *
 * A function that returns false has called ending_fail().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_TRANSACTION_H
#define BLKIN_TOOLS_WORK_TRANSACTION_H

#include "settings.h"
#include "stage.h"

#include <librdkafka/rdkafka.h>

struct transactions;

/* Waits for the brokers. Returns NULL: error is set, or "" after ending_fail() or when the worker
 * was asked to end. */
struct transactions *transactions_open(const struct work_settings *settings,
                                       struct work_stage *stage, struct error *error);
/* NULL is allowed. */
void transactions_close(struct transactions *transactions);

/* The topic of kept traces. Returns how many partitions it has; 0 with error set. */
uint32_t transactions_open_kept(struct transactions *transactions, const char *topic,
                                struct error *error);

/* A message of kept traces; a keeper_emit_fn. The first one begins a transaction. */
bool transactions_emit_kept(void *transactions, uint32_t partition, const char *data,
                            size_t length);

/* What was counted and kept since the last commit, and these places of this consumer. */
bool transactions_commit(struct transactions *transactions, rd_kafka_t *consumer,
                         const rd_kafka_topic_partition_list_t *places);

/* Of what is counted something has changed since the last commit; times and memory always do. */
bool transactions_has_news(const struct transactions *transactions);

/* Lets librdkafka call back. */
void transactions_poll(struct transactions *transactions);

/* Aborts the open transaction, so that others need not wait for its time-out. NULL is allowed. */
void transactions_abort(struct transactions *transactions);

#endif
