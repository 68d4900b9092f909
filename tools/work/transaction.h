/*
 * A worker's transactions write counts, kept traces and offsets together or not at all. A function
 * that cannot write or commit calls ending_fail() and returns false.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_TRANSACTION_H
#define BLKIN_TOOLS_WORK_TRANSACTION_H

#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "stage.h"

#include <librdkafka/rdkafka.h>
#include <stdbool.h>

/*
 * The end of a worker: by a signal, or by a failure. A worker that has failed commits nothing more,
 * and the next worker continues from the last commit. A process has one worker.
 */

/* Makes SIGTERM and SIGINT ask the worker to end. */
void ending_take_signals(void);

bool ending_is_asked(void);

/* The end begins: the worker was asked to end, or ends by itself. */
void ending_begin(void);

/* For another thread: waits for the begin of the end. */
void ending_wait(void);

/* Logs the first failure. */
__attribute__((format(printf, 1, 2))) void ending_fail(const char *format, ...);

bool ending_has_failed(void);

/* Returns false if the worker failed before it was asked to end. Later failures do not count,
 * because the group may change while the worker leaves. */
bool ending_is_well(void);

/* The configuration of a worker, without the sink's parameters. */
struct work_settings {
    struct kafka_url input; /* the topic of spans */
    const char *kafka_file;
    const char *group;
    const char *deltas; /* the topic for counts; "": none */
    char instance[WORKER_NAME_MAX];
    bool is_named; /* the configuration names the instance, so another worker may have the same name
                    */
    int64_t wait_ms, commit_ms;
    uint64_t max_open_bytes; /* above this limit, the worker closes traces early */
};

struct transactions;

/* Waits for the brokers. Returns NULL with error set; error is "" after ending_fail() or after a
 * request to end. */
struct transactions *transactions_open(const struct work_settings *settings,
                                       struct work_stage *stage, struct error *error);
/* NULL is allowed. */
void transactions_close(struct transactions *transactions);

/* Opens the topic of kept traces. Returns the number of its partitions; 0 with error set. */
uint32_t transactions_open_kept(struct transactions *transactions, const char *topic,
                                struct error *error);

/* Writes a message of kept traces; a keeper_emit_fn. The first message begins a transaction. */
bool transactions_emit_kept(void *transactions, uint32_t partition, const char *data,
                            size_t length);

/* Commits the counts and kept traces since the last commit, with these offsets of the consumer. */
bool transactions_commit(struct transactions *transactions, rd_kafka_t *consumer,
                         const rd_kafka_topic_partition_list_t *offsets);

/* Returns whether messages, open spans, closed traces or partitions have changed since the last
 * commit. */
bool transactions_has_news(const struct transactions *transactions);

/* Runs the callbacks of librdkafka. */
void transactions_poll(struct transactions *transactions);

/* Aborts the open transaction, so that other workers need not wait for its time-out. NULL is
 * allowed. */
void transactions_abort(struct transactions *transactions);

#endif
