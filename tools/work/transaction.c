/* SPDX-License-Identifier: BSD-2-Clause */
#include "transaction.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tools/base/notify.h"
#include "tools/base/say.h"
#include "tools/kafka/topic.h"
#include "tools/merged/merged.h"

#include <semaphore.h>
#include <stdlib.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>

#define TRANSACTION_STEP_MS 2000 /* one wait for a broker */
/* The time-out of a full queue and of a new topic. After this time, the worker also logs that no
 * broker answers. */
#define START_MS     10000
#define ASK_AGAIN_MS 200 /* between requests for the partitions of a new topic */

/* ---- the end of a worker --------------------------------------------------------------------- */

static volatile sig_atomic_t is_asked;
static bool has_failed, failed_before_asked;
static sem_t begins; /* the end */

void ending_begin(void)
{
    (void)sem_post(&begins);
}

void ending_wait(void)
{
    while (sem_wait(&begins) != 0)
        ;
}

static void ending_on_signal(int signal)
{
    (void)signal;
    is_asked = 1;
    ending_begin();
}

void ending_take_signals(void)
{
    const struct sigaction action = {.sa_handler = ending_on_signal};

    (void)sem_init(&begins, 0, 0);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}

bool ending_is_asked(void)
{
    return is_asked;
}

void ending_fail(const char *format, ...)
{
    char text[1024];
    va_list values;

    if (has_failed)
        return;
    va_start(values, format);
    (void)vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    has_failed = true;
    failed_before_asked = !is_asked;
    say(is_asked ? BK7016 : BK7015,
        "%s: this worker ends; the next one counts the spans that are not committed", text);
}

bool ending_has_failed(void)
{
    return has_failed;
}

bool ending_is_well(void)
{
    return !failed_before_asked;
}

struct transactions {
    const struct work_settings *settings;
    struct work_stage *stage;
    rd_kafka_t *producer;
    rd_kafka_topic_t *deltas, *kept; /* NULL: none */
    bool is_open;                    /* a transaction is open */
    bool has_logged_outage;          /* has logged that no broker answers */
    struct work_counts committed;    /* the counts of the last commit */
    int64_t period_start_ns;         /* the time of the last commit, since 1970 */
};

/* ---- errors of librdkafka -------------------------------------------------------------------- */

enum kafka_result { KAFKA_DONE, KAFKA_RETRY, KAFKA_FAILED };

/* Frees the error; NULL: none. Logs an unreachable broker once, and returns KAFKA_RETRY. */
static enum kafka_result transactions_handle_error(struct transactions *transactions,
                                                   rd_kafka_error_t *error, const char *what)
{
    enum kafka_result result = KAFKA_FAILED;

    if (!error) {
        if (transactions->has_logged_outage)
            say(BK7010, "the brokers answer again");
        transactions->has_logged_outage = false;
        return KAFKA_DONE;
    }
    if (rd_kafka_error_is_retriable(error) && !rd_kafka_error_is_fatal(error) &&
        !rd_kafka_error_txn_requires_abort(error)) {
        if (!transactions->has_logged_outage)
            say(BK7011, "%s: %s: the worker tries again, nothing is lost", what,
                rd_kafka_error_string(error));
        transactions->has_logged_outage = true;
        notify("WATCHDOG=1"); /* a wait for brokers is no hang */
        result = KAFKA_RETRY;
    } else {
        ending_fail("%s: %s", what, rd_kafka_error_string(error));
    }
    rd_kafka_error_destroy(error);
    return result;
}

/* ---- producing ------------------------------------------------------------------------------- */

static bool transactions_begin(struct transactions *transactions)
{
    if (transactions->is_open)
        return true;
    transactions->is_open =
        transactions_handle_error(transactions, rd_kafka_begin_transaction(transactions->producer),
                                  "cannot begin a transaction") == KAFKA_DONE;
    return transactions->is_open;
}

static bool transactions_produce(struct transactions *transactions, rd_kafka_topic_t *topic,
                                 int32_t partition, const char *data, size_t length)
{
    if (ending_has_failed() || !transactions_begin(transactions))
        return false;
    for (int64_t end_ms = clock_ms() + START_MS;;) {
        if (rd_kafka_produce(topic, partition, RD_KAFKA_MSG_F_COPY, (void *)(uintptr_t)data, length,
                             NULL, 0, NULL) == 0)
            return true;
        if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL || clock_ms() > end_ms) {
            ending_fail("topic \"%s\": %s", rd_kafka_topic_name(topic),
                        rd_kafka_err2str(rd_kafka_last_error()));
            return false;
        }
        (void)rd_kafka_poll(transactions->producer, 100);
    }
}

bool transactions_emit_kept(void *context, uint32_t partition, const char *data, size_t length)
{
    struct transactions *transactions = context;

    return transactions_produce(transactions, transactions->kept, (int32_t)partition, data, length);
}

static bool transactions_emit_deltas(void *context, const char *data, size_t length)
{
    struct transactions *transactions = context;

    return transactions_produce(transactions, transactions->deltas, RD_KAFKA_PARTITION_UA, data,
                                length);
}

static bool transactions_write_deltas(struct transactions *transactions)
{
    const struct work_settings *settings = transactions->settings;
    struct deltas_head head = {.start_ns = transactions->period_start_ns,
                               .end_ns = wall_clock_ns()};

    if (!transactions->deltas)
        return true;
    (void)snprintf(head.instance, sizeof(head.instance), "%s", settings->instance);
    head.counts = work_counts_since(&transactions->stage->counts, &transactions->committed);
    return deltas_write(&head, transactions->stage->statistics, transactions_emit_deltas,
                        transactions);
}

/* ---- committing ------------------------------------------------------------------------------ */

/* Retries until librdkafka returns a final error, also after a request to end: the brokers abort
 * the transaction after transaction.timeout.ms. */
static bool transactions_commit_offsets(struct transactions *transactions, rd_kafka_t *consumer,
                                        const rd_kafka_topic_partition_list_t *offsets)
{
    enum kafka_result result = KAFKA_DONE;

    if (offsets->cnt) {
        rd_kafka_consumer_group_metadata_t *group = rd_kafka_consumer_group_metadata(consumer);

        do {
            result = transactions_handle_error(
                transactions,
                rd_kafka_send_offsets_to_transaction(transactions->producer, offsets, group,
                                                     TRANSACTION_STEP_MS),
                "cannot commit the offsets");
        } while (result == KAFKA_RETRY);
        rd_kafka_consumer_group_metadata_destroy(group);
    }
    if (result != KAFKA_DONE)
        return false;
    do {
        result = transactions_handle_error(
            transactions, rd_kafka_commit_transaction(transactions->producer, TRANSACTION_STEP_MS),
            "cannot commit the transaction");
    } while (result == KAFKA_RETRY);
    return result == KAFKA_DONE;
}

static bool transactions_flush_kept(struct keeper *keeper)
{
    struct error error = {""};
    const bool is_right = !keeper || keeper_flush(keeper, &error);

    if (!is_right)
        ending_fail("kept traces: %s", error.text);
    return is_right;
}

bool transactions_commit(struct transactions *transactions, rd_kafka_t *consumer,
                         const rd_kafka_topic_partition_list_t *offsets)
{
    struct work_stage *stage = transactions->stage;

    if (ending_has_failed())
        return false;
    stage->counts.transactions++;
    if (stage->assembly.is_starved || !transactions_flush_kept(stage->keeper) ||
        !transactions_begin(transactions) || !transactions_write_deltas(transactions) ||
        !transactions_commit_offsets(transactions, consumer, offsets)) {
        ending_fail("out of memory"); /* not logged if a callee has logged its own failure */
        return false;
    }
    transactions->is_open = false;
    transactions->committed = stage->counts;
    transactions->period_start_ns = wall_clock_ns();
    statistics_begin_period(stage->statistics);
    return true;
}

bool transactions_has_news(const struct transactions *transactions)
{
    const struct work_counts *now = &transactions->stage->counts;
    const struct work_counts *before = &transactions->committed;

    return now->messages != before->messages || now->spans_open != before->spans_open ||
           now->traces_closed != before->traces_closed || now->partitions != before->partitions;
}

void transactions_poll(struct transactions *transactions)
{
    (void)rd_kafka_poll(transactions->producer, 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

static void transactions_delivered(rd_kafka_t *handle, const rd_kafka_message_t *message,
                                   void *context)
{
    (void)handle;
    (void)context;
    if (message->err && message->err != RD_KAFKA_RESP_ERR__PURGE_QUEUE &&
        message->err != RD_KAFKA_RESP_ERR__PURGE_INFLIGHT)
        ending_fail("topic \"%s\": %s", rd_kafka_topic_name(message->rkt),
                    rd_kafka_err2str(message->err));
}

static void transactions_on_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    char cause[512];

    (void)context;
    if (code == RD_KAFKA_RESP_ERR__FATAL && rd_kafka_fatal_error(handle, cause, sizeof(cause)))
        ending_fail("%s", cause);
    else
        say(BK7012, "%s", reason);
}

/* Waits for a broker. Returns false after a request to end, or after an error that is not
 * retriable. */
static bool transactions_init(struct transactions *transactions)
{
    int64_t said_ms = clock_ms() + START_MS;
    rd_kafka_error_t *error;

    while ((error = rd_kafka_init_transactions(transactions->producer, TRANSACTION_STEP_MS))) {
        const bool again = rd_kafka_error_is_retriable(error);

        if (!again)
            ending_fail("transactions: %s", rd_kafka_error_string(error));
        else if (clock_ms() > said_ms && !transactions->has_logged_outage) {
            say(BK7013, "%s: no broker answers (%s): the worker waits",
                transactions->settings->input.brokers, rd_kafka_error_string(error));
            transactions->has_logged_outage = true;
        }
        rd_kafka_error_destroy(error);
        if (!again || ending_is_asked())
            return false;
    }
    if (transactions->has_logged_outage)
        say(BK7014, "the brokers answer");
    transactions->has_logged_outage = false;
    return true;
}

static rd_kafka_t *transactions_producer(const struct work_settings *from, struct error *error)
{
    static const char *const reserved[] = {"transactional.id", "enable.idempotence", "acks", NULL};
    const char *const settings[][2] = {
        {"transactional.id", from->instance},
        {"enable.idempotence", "true"},
        {"compression.codec", "lz4"},
        {"linger.ms", "5"},
        {"message.max.bytes", "1000000"},
        {"transaction.timeout.ms", "10000"},
        {"reconnect.backoff.max.ms", "2000"},
        {"client.id", "blkin-work"},
        {NULL, NULL},
    };
    const struct kafka_setup setup = {
        .url = &from->input,
        .file = from->kafka_file,
        .reserved = reserved,
        .settings = settings,
        .error = transactions_on_error,
        .delivered = transactions_delivered,
        .log = kafka_log_line,
    };

    return kafka_open(RD_KAFKA_PRODUCER, &setup, error);
}

struct transactions *transactions_open(const struct work_settings *settings,
                                       struct work_stage *stage, struct error *error)
{
    struct transactions *transactions = calloc(1, sizeof(*transactions));

    error_set(error, "out of memory");
    if (!transactions)
        return NULL;
    *transactions = (struct transactions){
        .settings = settings, .stage = stage, .period_start_ns = wall_clock_ns()};
    transactions->producer = transactions_producer(settings, error);
    if (transactions->producer) {
        if (*settings->deltas)
            transactions->deltas =
                rd_kafka_topic_new(transactions->producer, settings->deltas, NULL);
        error_set(error, "%s", "");
        if (transactions_init(transactions))
            return transactions;
    }
    transactions_close(transactions);
    return NULL;
}

/* Asks the brokers for the topic's partitions, for START_MS at most: brokers learn of a new topic
 * late. Returns the number of partitions; 0: none, with error set. */
uint32_t transactions_open_kept(struct transactions *transactions, const char *topic,
                                struct error *error)
{
    const int64_t end_ms = clock_ms() + START_MS;
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code;
    uint32_t count = 0;

    transactions->kept = rd_kafka_topic_new(transactions->producer, topic, NULL);
    do {
        code = rd_kafka_metadata(transactions->producer, 0, transactions->kept, &metadata,
                                 TRANSACTION_STEP_MS);
        if (code)
            continue;
        code = metadata->topic_cnt ? metadata->topics[0].err : RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC;
        count = code ? 0 : (uint32_t)metadata->topics[0].partition_cnt;
        rd_kafka_metadata_destroy(metadata);
        if (count == 0)
            (void)rd_kafka_poll(transactions->producer, ASK_AGAIN_MS);
    } while (count == 0 && !ending_is_asked() && clock_ms() < end_ms);
    if (count == 0)
        kafka_describe(error, topic, code, rd_kafka_err2str(code));
    return count;
}

void transactions_abort(struct transactions *transactions)
{
    if (transactions && transactions->is_open)
        rd_kafka_error_destroy(
            rd_kafka_abort_transaction(transactions->producer, TRANSACTION_STEP_MS));
    if (transactions)
        transactions->is_open = false;
}

void transactions_close(struct transactions *transactions)
{
    if (!transactions)
        return;
    transactions_abort(transactions);
    if (transactions->deltas)
        rd_kafka_topic_destroy(transactions->deltas);
    if (transactions->kept)
        rd_kafka_topic_destroy(transactions->kept);
    if (transactions->producer)
        rd_kafka_destroy(transactions->producer);
    free(transactions);
}
