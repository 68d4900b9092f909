/*
 * A worker's transactions: what it has counted and kept, and where it stands, are written together
 * or not at all.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "worker.h"

#ifdef HAS_KAFKA

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/say.h"
#include "tools/kafka/kafka_log.h"
#include "tools/merged/fleet_deltas.h"

#include <stdlib.h>
#include <string.h>

#define STEP_MS      2000  /* one wait for a broker */
#define START_MS     10000 /* the first one, until it is said that there is none */
#define ASK_AGAIN_MS 200
#define LIST_ROOM    16

/* ---- what librdkafka answers ----------------------------------------------------------------- */

enum answer { ANSWER_DONE, ANSWER_AGAIN, ANSWER_FAILED };

/* Takes the error. Where a broker is away it is said once, and tried again. */
static enum answer judge(struct worker *worker, rd_kafka_error_t *answer, const char *what)
{
    enum answer judged = ANSWER_FAILED;

    if (!answer) {
        if (worker->is_away)
            say(BK7010, "the brokers are there again");
        worker->is_away = false;
        return ANSWER_DONE;
    }
    if (rd_kafka_error_is_retriable(answer) && !rd_kafka_error_is_fatal(answer) &&
        !rd_kafka_error_txn_requires_abort(answer)) {
        if (!worker->is_away)
            say(BK7011, "%s: %s: it is tried again, nothing is lost", what,
                rd_kafka_error_string(answer));
        worker->is_away = true;
        judged = ANSWER_AGAIN;
    } else {
        worker_fail(worker, "%s: %s", what, rd_kafka_error_string(answer));
    }
    rd_kafka_error_destroy(answer);
    return judged;
}

/* ---- producing ------------------------------------------------------------------------------- */

static bool begin(struct worker *worker)
{
    if (worker->in_transaction)
        return true;
    worker->in_transaction = judge(worker, rd_kafka_begin_transaction(worker->producer),
                                   "a transaction cannot begin") == ANSWER_DONE;
    return worker->in_transaction;
}

static bool produce(struct worker *worker, rd_kafka_topic_t *topic, int32_t partition,
                    const char *data, size_t length)
{
    if (worker->has_failed || !begin(worker))
        return false;
    for (int64_t end_ms = clock_ms() + START_MS;;) {
        if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)data, length,
                             NULL, 0, NULL) == 0)
            return true;
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL || clock_ms() > end_ms) {
            worker_fail(worker, "topic \"%s\": %s", rd_kafka_topic_name(topic),
                        rd_kafka_err2str(rd_kafka_last_error()));
            return false;
        }
        (void)rd_kafka_poll(worker->producer, 100);
    }
}

bool transaction_emit_kept(void *context, uint32_t partition, const char *data, size_t length)
{
    struct worker *worker = context;

    return produce(worker, worker->kept, (int32_t)partition, data, length);
}

static bool emit_deltas(void *context, const char *data, size_t length)
{
    struct worker *worker = context;

    return produce(worker, worker->deltas, RD_KAFKA_PARTITION_UA, data, length);
}

static bool write_deltas(struct worker *worker)
{
    struct deltas_head head = {.start_ns = worker->period_ns, .end_ns = wall_clock_ns()};

    if (!worker->deltas)
        return true;
    (void)snprintf(head.instance, sizeof(head.instance), "%s", worker->instance);
    (void)snprintf(head.group, sizeof(head.group), "%s", worker->group);
    head.counts = work_counts_since(&worker->stage.counts, &worker->committed);
    return deltas_write(&head, worker->stage.statistics, &worker->deltas_buffer, emit_deltas,
                        worker) &&
           (!worker->fleet ||
            fleet_deltas_write(&head, worker->fleet, &worker->deltas_buffer, emit_deltas, worker));
}

/* ---- places ---------------------------------------------------------------------------------- */

static void add_place(const struct worker *worker, rd_kafka_topic_partition_list_t *list,
                      int32_t partition, const struct place *place)
{
    rd_kafka_topic_partition_t *one =
        rd_kafka_topic_partition_list_add(list, worker->input.topic, partition);
    char text[PLACE_TEXT_MAX];

    place_write(place, text);
    one->offset = place->watermark;
    one->metadata = strdup(text);
    one->metadata_size = one->metadata ? strlen(text) : 0;
}

void transaction_add_leaving(struct worker *worker, int32_t partition)
{
    const struct place place = partition_place(&worker->assigned[partition]->partition);

    if (memcmp(&place, &worker->assigned[partition]->committed, sizeof(place)) != 0)
        add_place(worker, worker->leaving, partition, &place);
}

/* Those that have changed. */
static rd_kafka_topic_partition_list_t *places(const struct worker *worker)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(worker->leaving);

    for (int32_t i = 0; i < worker->assigned_room; i++) {
        struct assigned *assigned = worker->assigned[i];
        struct place place;

        if (!assigned)
            continue;
        place = partition_place(&assigned->partition);
        if (memcmp(&place, &assigned->committed, sizeof(place)) != 0)
            add_place(worker, list, i, &place);
    }
    hosts_add_places(worker, list);
    return list;
}

static void note_committed(struct worker *worker)
{
    for (int32_t i = 0; i < worker->assigned_room; i++) {
        if (worker->assigned[i])
            worker->assigned[i]->committed = partition_place(&worker->assigned[i]->partition);
    }
    hosts_committed(worker);
    rd_kafka_topic_partition_list_destroy(worker->leaving);
    worker->leaving = rd_kafka_topic_partition_list_new(LIST_ROOM);
}

/* ---- committing ------------------------------------------------------------------------------ */

/* Brokers that are away are waited for, also by one who is to end: for as long as their own
 * transaction time-out, after which they have thrown it away. */
static bool commit_places(struct worker *worker, const rd_kafka_topic_partition_list_t *list)
{
    enum answer answer = ANSWER_DONE;

    if (list->cnt) {
        rd_kafka_consumer_group_metadata_t *group =
            rd_kafka_consumer_group_metadata(worker->consumer);

        do {
            answer =
                judge(worker,
                      rd_kafka_send_offsets_to_transaction(worker->producer, list, group, STEP_MS),
                      "the places cannot be committed");
        } while (answer == ANSWER_AGAIN);
        rd_kafka_consumer_group_metadata_destroy(group);
    }
    if (answer != ANSWER_DONE)
        return false;
    do {
        answer = judge(worker, rd_kafka_commit_transaction(worker->producer, STEP_MS),
                       "the transaction cannot be committed");
    } while (answer == ANSWER_AGAIN);
    return answer == ANSWER_DONE;
}

static bool commit(struct worker *worker)
{
    rd_kafka_topic_partition_list_t *list = places(worker);
    struct error error = {""};
    bool is_right = true;

    worker->stage.counts.transactions++;
    if (worker->stage.keeper && !keeper_flush(worker->stage.keeper, &error)) {
        if (!worker->has_failed)
            worker_fail(worker, "kept traces: %s", error.text);
        is_right = false;
    }
    is_right = is_right && begin(worker) && write_deltas(worker) && commit_places(worker, list);
    rd_kafka_topic_partition_list_destroy(list);
    return is_right;
}

bool transaction_commit(struct worker *worker)
{
    if (worker->has_failed)
        return false;
    if (worker->stage.assembly.is_starved) {
        worker_fail(worker, "out of memory");
        return false;
    }
    if (!commit(worker)) {
        if (!worker->has_failed)
            worker_fail(worker, "out of memory");
        return false;
    }
    worker->in_transaction = false;
    note_committed(worker);
    worker->committed = worker->stage.counts;
    worker->period_ns = wall_clock_ns();
    statistics_begin_period(worker->stage.statistics);
    return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void delivered(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context)
{
    (void)handle;
    if (message->err && message->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
        message->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
        worker_fail(context, "topic \"%s\": %s", rd_kafka_topic_name(message->rkt),
                    rd_kafka_err2str(message->err));
}

static void has_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    char cause[512];

    if (code == RD_KAFKA_RESP_ERR__FATAL && rd_kafka_fatal_error(handle, cause, sizeof(cause)))
        worker_fail(context, "%s", cause);
    else
        say(BK7012, "%s", reason);
}

/* Waits for the brokers until there are any, or until it is to end. */
static bool init(struct worker *worker)
{
    int64_t said_ms = clock_ms() + START_MS;
    rd_kafka_error_t *answer;

    while ((answer = rd_kafka_init_transactions(worker->producer, STEP_MS))) {
        const bool again = rd_kafka_error_is_retriable(answer);

        if (!again)
            worker_fail(worker, "transactions: %s", rd_kafka_error_string(answer));
        else if (clock_ms() > said_ms && !worker->is_away) {
            say(BK7013, "%s: no broker answers (%s): waiting for one", worker->input.brokers,
                rd_kafka_error_string(answer));
            worker->is_away = true;
        }
        rd_kafka_error_destroy(answer);
        if (!again || worker_is_ending)
            return false;
    }
    if (worker->is_away)
        say(BK7014, "the brokers are there");
    worker->is_away = false;
    return true;
}

bool transactions_open(struct worker *worker, struct error *error)
{
    static const char *const reserved[] = {"transactional.id", "enable.idempotence", "acks", NULL};
    const char *const settings[][2] = {
        {"transactional.id", worker->instance}, {"enable.idempotence", "true"},
        {"compression.codec", "lz4"},           {"linger.ms", "5"},
        {"message.max.bytes", "1000000"},       {"transaction.timeout.ms", "10000"},
        {"reconnect.backoff.max.ms", "2000"},   {"client.id", "blkin-work"},
    };
    const struct kafka_setup setup = {
        .url = &worker->input,
        .name = "input",
        .file_name = "kafka-file",
        .file = worker->params.exporter.transport.kafka_file,
        .reserved = reserved,
        .settings = settings,
        .count = sizeof(settings) / sizeof(settings[0]),
        .context = worker,
        .error = has_error,
        .delivered = delivered,
        .log = kafka_log_line,
    };

    worker->leaving = rd_kafka_topic_partition_list_new(LIST_ROOM);
    worker->producer = kafka_open(RD_KAFKA_PRODUCER, &setup, error);
    if (!worker->producer)
        return false;
    if (*worker->deltas_name)
        worker->deltas = rd_kafka_topic_new(worker->producer, worker->deltas_name, NULL);
    error_set(error, "%s", "");
    return init(worker);
}

/* A topic that was just made is not known at once. */
uint32_t transactions_partitions(struct worker *worker, rd_kafka_topic_t *topic,
                                 struct error *error)
{
    const int64_t end_ms = clock_ms() + START_MS;
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code;
    uint32_t count = 0;

    do {
        code = rd_kafka_metadata(worker->producer, 0, topic, &metadata, STEP_MS);
        if (code)
            continue;
        code = metadata->topic_cnt ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
        count = code ? 0 : (uint32_t)metadata->topics[0].partition_cnt;
        rd_kafka_metadata_destroy(metadata);
        if (count == 0)
            (void)rd_kafka_poll(worker->producer, ASK_AGAIN_MS);
    } while (count == 0 && !worker_is_ending && clock_ms() < end_ms);
    if (count == 0)
        kafka_describe(error, rd_kafka_topic_name(topic), code, rd_kafka_err2str(code),
                       "kafka-file");
    return count;
}

void transaction_abort(struct worker *worker)
{
    if (worker->in_transaction)
        rd_kafka_error_destroy(rd_kafka_abort_transaction(worker->producer, STEP_MS));
    worker->in_transaction = false;
}

void transactions_close(struct worker *worker)
{
    transaction_abort(worker);
    if (worker->deltas)
        rd_kafka_topic_destroy(worker->deltas);
    if (worker->kept)
        rd_kafka_topic_destroy(worker->kept);
    if (worker->producer)
        rd_kafka_destroy(worker->producer);
    if (worker->leaving)
        rd_kafka_topic_partition_list_destroy(worker->leaving);
    buffer_free(&worker->deltas_buffer);
}

#else

typedef int this_build_is_without_librdkafka;

#endif
