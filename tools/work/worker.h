/*
 * blkin work: a worker of a consumer group. One thread: reads spans, puts traces together, counts
 * them, and commits what it has counted and kept together with where it stands.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WORK_WORKER_H
#define BLKIN_TOOLS_WORK_WORKER_H

/* argv[0] is how messages begin. Returns the exit status. */
int worker_command(int argc, char *argv[]);

#ifdef HAS_KAFKA

#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "babeltrace-plugin/hosts/fleet.h"
#include "babeltrace-plugin/params.h"
#include "stage.h"
#include "tools/config/config.h"
#include "tools/merged/deltas.h"

#include <librdkafka/rdkafka.h>
#include <signal.h>
#include <string.h>

/* Where a partition stood when it was committed last. */
struct assigned {
    struct partition partition;
    struct place committed;
    int64_t end_offset; /* the end of the log was there; -1: not since the last message */
    int64_t asked_ms;   /* when the broker was asked for its end last */
    int64_t log_ms;     /* the log's time of the latest message, */
    int64_t read_ms;    /* and when it was read, by the monotonic clock; 0: none was */
};

/* Of the topic of hosts' metrics: nothing of it is open, so there is but one place. */
struct host_partition {
    bool is_ours;
    bool is_at_end;
    int64_t next; /* offset */
    int64_t committed;
    int64_t time_ms; /* the log's: of the latest message */
};

struct worker {
    struct config *config;
    struct params params; /* the sink's */
    struct kafka_url input;
    char instance[DELTAS_NAME_MAX];
    bool is_named; /* by the configuration: others must not have the name */
    const char *group;
    const char *deltas_name;
    int64_t wait_ms, commit_ms;

    rd_kafka_t *consumer, *producer;
    rd_kafka_topic_t *deltas, *kept;
    bool in_transaction;
    struct assigned **assigned; /* by partition; NULL: somebody else's */
    int32_t assigned_room;
    const char *hosts_topic; /* "": none */
    struct host_partition *host_partitions;
    int32_t host_partitions_room;
    struct fleet *fleet; /* since the last commit; NULL: there is no such topic */
    rd_kafka_topic_partition_list_t *leaving; /* with their places, for the next commit */

    struct work_stage stage;
    struct work_counts committed; /* as of the last commit */
    struct buffer deltas_buffer;
    int64_t period_ns; /* since 1970, when the last commit was */

    /* the share of the time */
    int64_t window_ns, idle_ns;
    int64_t committed_ms;
    bool is_away;    /* no broker was to be reached; that was said */
    bool has_failed; /* that was said: what was not committed is for the next one */
    bool is_member;  /* of the group */
    bool ends_well;  /* all the same, as it was to end */
    struct metrics_server *page;
    int64_t page_ms;
};

/* Set by SIGTERM and SIGINT. */
extern volatile sig_atomic_t worker_is_ending;

/* Says it, and that it ends; nothing more is committed. */
__attribute__((format(printf, 2, 3))) void worker_fail(struct worker *worker, const char *format,
                                                       ...);

/* ---- assign.c */

/* Of librdkafka's consumer. */
void rebalance(rd_kafka_t *handle, rd_kafka_resp_err_t what,
               rd_kafka_topic_partition_list_t *partitions, void *context);

/* NULL: it is somebody else's. */
struct assigned *assigned_of(const struct worker *worker, int32_t partition);

void give_away(struct worker *worker, int32_t partition);

/* ---- reading.c */

/* Reads what is there. Returns false if there was nothing. */
bool read_some(struct worker *worker);

/* Where the log has ended no message tells its time: it is the latest message's, and goes on from
 * there once the broker has said that there is nothing more. */
void pass_time(struct worker *worker);

/* Makes room if there is more than max-open-bytes. */
void relieve(struct worker *worker);

/* ---- hosts.c: the topic of hosts' metrics */

static inline bool is_of_hosts(const struct worker *worker, const char *topic)
{
    return worker->fleet && strcmp(topic, worker->hosts_topic) == 0;
}

/* Where it begins to read is in partition->offset then. Returns false after worker_fail(). */
bool hosts_assign(struct worker *worker, rd_kafka_topic_partition_t *partition);
void hosts_give_back(struct worker *worker, int32_t partition);

void hosts_read(struct worker *worker, const rd_kafka_message_t *message, int64_t time_ms);
void hosts_end(struct worker *worker, int32_t partition);

/* For a commit: where those stand that have changed; and when that is done. */
void hosts_add_places(const struct worker *worker, rd_kafka_topic_partition_list_t *list);
void hosts_committed(struct worker *worker);

int64_t hosts_behind_ms(const struct worker *worker, int64_t now_ms);

/* ---- transaction.c: all return false after worker_fail() */

bool transactions_open(struct worker *worker, struct error *error);
void transactions_close(struct worker *worker);

/* The one that is open, so that others need not wait for its time-out. */
void transaction_abort(struct worker *worker);

/* A message of kept traces, in the transaction that is open from the first one on. */
bool transaction_emit_kept(void *context, uint32_t partition, const char *data, size_t length);

/* What was counted and kept since the last one, and where each partition stands. */
bool transaction_commit(struct worker *worker);

/* Where it stands, for the next commit: the partition is given away before it. */
void transaction_add_leaving(struct worker *worker, int32_t partition);

/* How many partitions a topic of the producer's has; 0 with error set: not to be found out. */
uint32_t transactions_partitions(struct worker *worker, rd_kafka_topic_t *topic,
                                 struct error *error);

/* ---- worker_page.c */

/* For Prometheus; context is the worker. */
char *worker_page(void *context);

/* The account in one line. */
#define ACCOUNT_LINE_MAX 512
void worker_account_line(const struct work_counts *counts, char line[ACCOUNT_LINE_MAX]);

#endif

#endif
