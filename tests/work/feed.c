/*
 * Writes the deltas of three workers: feed BROKER TOPIC ROUNDS PAUSE_MS. Some transactions are
 * aborted. Once all is committed, prints their sum as a document.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifdef HAS_KAFKA

#include "babeltrace-plugin/base/date.h"
#include "counting.h"
#include "tools/merged/merged.h"
#include "waits.h"

#include <librdkafka/rdkafka.h>

#define FEED_WORKERS 3
#define FEED_LIMIT   240000 /* ms, for a slow machine */

struct feed_worker {
    struct names *names;
    struct statistics *statistics;
    struct deltas_head head;
    rd_kafka_t *producer;
};

static const char *topic;

static void must(rd_kafka_error_t *error, const char *what)
{
    if (!error)
        return;
    fprintf(stderr, "feed: %s: %s\n", what, rd_kafka_error_string(error));
    exit(1);
}

static void begin_worker(struct feed_worker *worker, const char *broker, int number)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    char instance[64], id[320], cause[256];

    (void)snprintf(instance, sizeof(instance), "worker-%d", number);
    (void)snprintf(id, sizeof(id), "%s-%s", topic, instance); /* other programs may feed other
                                                               * topics */
    *worker = (struct feed_worker){.names = names_new(10000, 1 << 20)};
    worker->statistics = statistics_new(worker->names);
    (void)snprintf(worker->head.instance, sizeof(worker->head.instance), "%s", instance);
    (void)rd_kafka_conf_set(conf, "bootstrap.servers", broker, cause, sizeof(cause));
    (void)rd_kafka_conf_set(conf, "transactional.id", id, cause, sizeof(cause));
    (void)rd_kafka_conf_set(conf, "transaction.timeout.ms", "300000", cause, sizeof(cause));
    worker->producer = rd_kafka_new(RD_KAFKA_PRODUCER, conf, cause, sizeof(cause));
    must(rd_kafka_init_transactions(worker->producer, FEED_LIMIT), "init");
}

static bool produce(void *context, const char *data, size_t length)
{
    const struct feed_worker *worker = context;

    return rd_kafka_producev(worker->producer, RD_KAFKA_V_TOPIC(topic),
                             RD_KAFKA_V_PARTITION((int32_t)dice(2)),
                             RD_KAFKA_V_VALUE((void *)(uintptr_t)data, length),
                             RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_END) == 0;
}

/* An aborted transaction has no effect: the next transaction has its deltas. */
static void commit(struct feed_worker *worker, bool is_aborted)
{
    worker->head.end_ns = wall_clock_ns();
    must(rd_kafka_begin_transaction(worker->producer), "begin");
    if (!deltas_write(&worker->head, worker->statistics, produce, worker))
        exit(1);
    if (is_aborted) {
        (void)rd_kafka_flush(worker->producer, FEED_LIMIT);
        must(rd_kafka_abort_transaction(worker->producer, FEED_LIMIT), "abort");
        return;
    }
    must(rd_kafka_commit_transaction(worker->producer, FEED_LIMIT), "commit");
    statistics_begin_period(worker->statistics);
    worker->head.start_ns = worker->head.end_ns;
    worker->head.counts = (struct work_counts){.busy = 0.5, .behind_s = 0.25};
}

static void feed_round(struct feed_worker workers[FEED_WORKERS], struct merged *whole, bool is_last)
{
    for (int i = 0; i < 300; i++) {
        const struct one_span span = some_span();
        struct feed_worker *worker = &workers[dice(FEED_WORKERS)];

        if (!count_span(worker->statistics, worker->names, &span) ||
            !count_span(whole->statistics, whole->names, &span))
            exit(1);
        worker->head.counts.spans_counted++;
    }
    for (int i = 0; i < FEED_WORKERS; i++)
        commit(&workers[i], !is_last && dice(4) == 0);
}

int main(int argc, char *argv[])
{
    struct feed_worker workers[FEED_WORKERS];
    struct merged *whole = merged_new();
    char *text;

    if (argc != 5)
        return 2;
    topic = argv[2];
    for (int i = 0; i < FEED_WORKERS; i++)
        begin_worker(&workers[i], argv[1], i);
    for (int round = 0, rounds = atoi(argv[3]); round < rounds; round++) {
        feed_round(workers, whole, round == rounds - 1);
        pause_us(atoi(argv[4]) * 1000L);
    }
    text = merged_document(whole, wall_clock_ns());
    fputs(text, stdout);
    free(text);
    for (int i = 0; i < FEED_WORKERS; i++) {
        rd_kafka_destroy(workers[i].producer);
        statistics_free(workers[i].statistics);
        names_free(workers[i].names);
    }
    merged_free(whole);
    return 0;
}

#else

int main(void)
{
    return 77;
}

#endif
