/*
 * A topic of Kafka. The reader uses no consumer group: it reads all partitions, and its caller
 * stores the offsets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "topic.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define TOPIC_READ_MS 100  /* the longest topic_read() */
#define TOPIC_LOOK_MS 2000 /* the limit of requests by topic_read_all() and topic_restart() */

enum partition_state { NOT_STARTED, READING, AT_END };

struct topic {
    struct topic_options options;
    struct kafka_url url;
    int64_t offsets[TOPIC_PARTITIONS_MAX]; /* the next ones; -1: unknown */
    int64_t log_ms[TOPIC_PARTITIONS_MAX];  /* the log's time of the latest message; 0: unknown */
    enum partition_state states[TOPIC_PARTITIONS_MAX];
    int32_t partitions; /* their number; 0: unknown */
    /* the answer to topic_ask() */
    rd_kafka_resp_err_t answer;
    int32_t answer_partitions; /* -1: not in the answer */
    rd_kafka_t *consumer;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *messages;
    int fd;          /* an eventfd that librdkafka writes to */
    int64_t read_ms; /* the time of the last message */
    struct error problem;
};

/* ---- problems -------------------------------------------------------------------------------- */

static void topic_set_problem(struct topic *topic, rd_kafka_resp_err_t code, const char *reason)
{
    kafka_describe(&topic->problem, topic->url.shown, code, reason);
}

static void topic_note_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    struct topic *topic = context;

    (void)handle;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && topic->problem.text[0])
        return; /* the earlier problem is the cause */
    topic_set_problem(topic, (rd_kafka_resp_err_t)code, reason);
}

const char *topic_problem(const struct topic *topic)
{
    return topic->problem.text[0] ? topic->problem.text : NULL;
}

/* ---- partitions ------------------------------------------------------------------------------ */

/* Finds the offset of since_ms, or the partition's end if all messages are older. Returns false
 * with the problem set. */
static bool topic_offset_since(struct topic *topic, int32_t partition, int64_t since_ms,
                               int limit_ms, int64_t *offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_t *one =
        rd_kafka_topic_partition_list_add(list, topic->url.topic, partition);
    rd_kafka_resp_err_t code;

    one->offset = since_ms;
    code = rd_kafka_offsets_for_times(topic->consumer, list, limit_ms);
    if (!code)
        code = one->err;
    *offset = one->offset < 0 ? RD_KAFKA_OFFSET_END : one->offset;
    rd_kafka_topic_partition_list_destroy(list);
    if (code)
        topic_set_problem(topic, code, rd_kafka_err2str(code));
    return !code;
}

static bool topic_start(struct topic *topic, int32_t partition, int limit_ms)
{
    int64_t offset = topic->offsets[partition];

    if (offset < 0 && !topic->options.since_ns)
        offset = RD_KAFKA_OFFSET_BEGINNING;
    else if (offset < 0 && !topic_offset_since(topic, partition, topic->options.since_ns / 1000000,
                                               limit_ms, &offset))
        return false;
    if (rd_kafka_consume_start_queue(topic->topic, partition, offset, topic->messages) != 0) {
        topic_set_problem(topic, rd_kafka_last_error(), rd_kafka_err2str(rd_kafka_last_error()));
        return false;
    }
    topic->states[partition] = READING;
    return true;
}

static bool topic_is_of_no_broker(rd_kafka_resp_err_t code)
{
    return code == RD_KAFKA_RESP_ERR__TRANSPORT || code == RD_KAFKA_RESP_ERR__TIMED_OUT ||
           code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN;
}

void topic_ask(struct topic *topic, int limit_ms)
{
    const struct rd_kafka_metadata *metadata = NULL;
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(topic->consumer, 0, topic->topic, &metadata, limit_ms);

    topic->answer_partitions = -1;
    if (!code && metadata->topic_cnt == 1)
        code = metadata->topics[0].err;
    if (!code && metadata->topic_cnt == 1)
        topic->answer_partitions = metadata->topics[0].partition_cnt;
    topic->answer = code;
    if (metadata)
        rd_kafka_metadata_destroy(metadata);
}

void topic_take_answer(struct topic *topic, int limit_ms)
{
    const rd_kafka_resp_err_t code = topic->answer;
    int32_t count = topic->answer_partitions;

    (void)rd_kafka_poll(topic->consumer, 0);
    /* an earlier problem says more than the error that no broker answers */
    if (code && !(topic_is_of_no_broker(code) && topic->problem.text[0]))
        topic_set_problem(topic, code, rd_kafka_err2str(code));
    if (count > TOPIC_PARTITIONS_MAX) {
        say(BK1102, "%s: it has %d partitions, only the first %d are read", topic->url.shown,
            (int)count, TOPIC_PARTITIONS_MAX);
        count = TOPIC_PARTITIONS_MAX;
    }
    for (int32_t i = 0; i < count; i++) {
        if (topic->states[i] == NOT_STARTED && !topic_start(topic, i, limit_ms))
            return;
    }
    if (count > topic->partitions)
        topic->partitions = count;
    if (count > 0)
        topic->problem.text[0] = '\0';
}

int32_t topic_partitions(const struct topic *topic)
{
    return topic->partitions;
}

bool topic_is_at_end(const struct topic *topic)
{
    for (int32_t i = 0; i < topic->partitions; i++) {
        if (topic->states[i] != AT_END)
            return false;
    }
    return topic->partitions > 0;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Sets *offset to the message to continue with; -1: the first one. If the log still has the
 * messages before the next one, a broker has lost the log's end, and workers may have continued.
 * Messages up to the latest one's time were read: other partitions may have been read further.
 * Returns false with the problem set. */
static bool topic_find_rest(struct topic *topic, int32_t partition, int64_t *offset)
{
    const int64_t read_ms =
        topic->log_ms[partition] ? topic->log_ms[partition] : topic->options.read_ns / 1000000;
    int64_t low, high;
    const rd_kafka_resp_err_t code = rd_kafka_query_watermark_offsets(
        topic->consumer, topic->url.topic, partition, &low, &high, TOPIC_LOOK_MS);

    *offset = -1;
    if (code)
        topic_set_problem(topic, code, rd_kafka_err2str(code));
    if (code || topic->offsets[partition] < low)
        return !code;
    if (!topic_offset_since(topic, partition, read_ms + 1, TOPIC_LOOK_MS, offset))
        return false;
    if (*offset < 0)
        *offset = high;
    return true;
}

/* Handles a gap in the log: librdkafka has stopped reading the partition, and refuses to seek. */
static void topic_restart(struct topic *topic, int32_t partition)
{
    int64_t offset;

    (void)rd_kafka_consume_stop(topic->topic, partition);
    topic->states[partition] = NOT_STARTED; /* topic_take_answer() retries */
    if (!topic_find_rest(topic, partition, &offset))
        return;
    topic->offsets[partition] = offset;
    topic->options.gap(topic->options.context, partition, offset);
    (void)topic_start(topic, partition, TOPIC_LOOK_MS);
}

static bool topic_take_error(struct topic *topic, const rd_kafka_message_t *message)
{
    const int32_t partition = message->partition;

    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF) {
        topic->states[partition] = AT_END;
        topic->problem.text[0] = '\0';
    } else if (message->err == RD_KAFKA_RESP_ERR__AUTO_OFFSET_RESET ||
               message->err == RD_KAFKA_RESP_ERR_OFFSET_OUT_OF_RANGE) {
        topic_restart(topic, partition);
    } else {
        topic_set_problem(topic, message->err, rd_kafka_message_errstr(message));
    }
    return true;
}

static bool topic_take_message(struct topic *topic, const rd_kafka_message_t *message)
{
    rd_kafka_timestamp_type_t kind;
    const int64_t log_ms = rd_kafka_message_timestamp(message, &kind);
    const struct topic_message told = {
        .partition = message->partition,
        .offset = message->offset,
        .log_ns = kind == RD_KAFKA_TIMESTAMP_NOT_AVAILABLE || log_ms < 0 ? 0 : log_ms * 1000000,
        .data = message->payload,
        .length = message->len,
    };

    if (message->partition < 0 || message->partition >= TOPIC_PARTITIONS_MAX)
        return true;
    if (message->err)
        return topic_take_error(topic, message);
    topic->states[message->partition] = READING;
    topic->offsets[message->partition] = message->offset + 1;
    if (log_ms > topic->log_ms[message->partition])
        topic->log_ms[message->partition] = log_ms;
    topic->read_ms = clock_ms();
    topic->problem.text[0] = '\0';
    return topic->options.message(topic->options.context, &told);
}

bool topic_read(struct topic *topic, bool *has_more)
{
    const int64_t until_ms = clock_ms() + TOPIC_READ_MS;
    rd_kafka_message_t *message = NULL;
    bool goes_on = true;
    uint64_t ignored;

    (void)!read(topic->fd, &ignored, sizeof(ignored));
    (void)rd_kafka_poll(topic->consumer, 0);
    while (goes_on && clock_ms() < until_ms &&
           (message = rd_kafka_consume_queue(topic->messages, 0))) {
        goes_on = topic_take_message(topic, message);
        rd_kafka_message_destroy(message);
    }
    *has_more = message != NULL;
    return goes_on;
}

bool topic_read_all(struct topic *topic, int limit_ms, struct error *error)
{
    struct pollfd fd = {topic->fd, POLLIN, 0};
    bool has_more = false;

    topic->read_ms = clock_ms();
    while (!topic_is_at_end(topic)) {
        if (topic->partitions == 0) {
            (void)rd_kafka_poll(topic->consumer, 0);
            topic_ask(topic, TOPIC_LOOK_MS);
            topic_take_answer(topic, TOPIC_LOOK_MS);
        }
        if (!topic_read(topic, &has_more))
            return error_set(error, "out of memory");
        if (clock_ms() - topic->read_ms > limit_ms)
            return error_set(error, "%s",
                             topic->problem.text[0] ? topic->problem.text
                                                    : "the brokers do not answer");
        if (!has_more)
            (void)poll(&fd, 1, TOPIC_READ_MS);
    }
    return true;
}

int topic_fd(const struct topic *topic)
{
    return topic->fd;
}

/* ---- opening --------------------------------------------------------------------------------- */

static const char *const reserved[] = {"isolation.level", "enable.partition.eof",
                                       "auto.offset.reset", NULL};

static void topic_watch(const struct topic *topic, rd_kafka_queue_t *queue)
{
    static const uint64_t one = 1;

    rd_kafka_queue_io_event_enable(queue, topic->fd, &one, sizeof(one));
}

static bool topic_set_up(struct topic *topic, struct error *error)
{
    const struct topic_options *options = &topic->options;
    const char *const settings[][2] = {
        {"client.id", options->client_id},       {"fetch.wait.max.ms", options->fetch_wait_ms},
        {"isolation.level", "read_committed"},   {"enable.partition.eof", "true"},
        {"auto.offset.reset", "error"}, /* an error shows the gap */
        {"queued.max.messages.kbytes", "16384"}, {"reconnect.backoff.max.ms", "2000"},
        {"socket.keepalive.enable", "true"},     {NULL, NULL},
    };
    const struct kafka_setup setup = {
        .url = &topic->url,
        .file = options->kafka_file,
        .reserved = reserved,
        .settings = settings,
        .context = topic,
        .error = topic_note_error,
        .log = kafka_log_line,
        .is_log_polled = true,
    };
    rd_kafka_queue_t *own;

    topic->consumer = kafka_open(RD_KAFKA_CONSUMER, &setup, error);
    if (!topic->consumer)
        return false;
    topic->topic = rd_kafka_topic_new(topic->consumer, topic->url.topic, NULL);
    topic->messages = rd_kafka_queue_new(topic->consumer);
    if (!topic->topic || !topic->messages)
        return error_set(error, "topic \"%s\": %s", topic->url.topic,
                         rd_kafka_err2str(rd_kafka_last_error()));
    topic_watch(topic, topic->messages);
    own = rd_kafka_queue_get_main(topic->consumer);
    topic_watch(topic, own);
    rd_kafka_queue_destroy(own);
    return true;
}

struct topic *topic_open(const struct topic_options *options, struct error *error)
{
    struct topic *topic = calloc(1, sizeof(*topic));

    error_set(error, "out of memory");
    if (!topic)
        return NULL;
    topic->options = *options;
    for (int i = 0; i < TOPIC_PARTITIONS_MAX; i++)
        topic->offsets[i] = options->offsets ? options->offsets[i] : -1;
    topic->fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    topic->url = *options->url;
    error_set(&topic->problem, "%s: no answer yet", topic->url.shown);
    if (topic->fd >= 0 && topic_set_up(topic, error))
        return topic;
    topic_close(topic);
    return NULL;
}

void topic_close(struct topic *topic)
{
    if (!topic)
        return;
    for (int32_t i = 0; i < TOPIC_PARTITIONS_MAX; i++) {
        if (topic->states[i] != NOT_STARTED)
            (void)rd_kafka_consume_stop(topic->topic, i);
    }
    if (topic->topic)
        rd_kafka_topic_destroy(topic->topic);
    if (topic->messages)
        rd_kafka_queue_destroy(topic->messages);
    if (topic->consumer)
        rd_kafka_destroy(topic->consumer);
    if (topic->fd >= 0)
        close(topic->fd);
    free(topic);
}
