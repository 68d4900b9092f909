/*
 * The Kafka transport. A batch becomes one message or more for each partition that it has spans of.
 * All replicas in sync acknowledge the messages before the next batch.
 *
 * librdkafka sends in its own threads. It retries for up to request_timeout_ms, and never writes a
 * message twice into the log (idempotence). After that time, the caller may retry a message that
 * librdkafka never sent. A message that was sent may be in the log, so no caller retries it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

#ifndef HAS_KAFKA

struct transport *kafka_transport_open(const struct transport_options *options, struct error *error)
{
    (void)options;
    return error_null(error,
                      "endpoint: kafka:// is not in this build: build it with librdkafka, or have "
                      "the spans sent over http(s)://");
}

#else

#include "babeltrace-plugin/base/thread.h"
#include "kafka_conf.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#define KAFKA_MESSAGE_BYTES 900000 /* a broker takes a MiB in one request by default */

#define KAFKA_TOPIC_MS 10000  /* the wait for an answer about the topic */
#define AWAY_MS        1000   /* same, if the brokers were away before */
#define LOOK_STEP_MS   200    /* one call of rd_kafka_metadata(), which cannot be interrupted */
#define LOOK_AGAIN_MS  300000 /* partitions may have been added */
#define MAKING_MS      1000   /* the wait for brokers that create topics automatically */
#define WAIT_STEP_MS   100    /* a waiting thread sees a cancellation within this time */
#define CANCELLED_MS   2000   /* the wait for the reports about purged messages */

#define BEGUN_MAX 4096 /* further partitions share elements */

enum begun { NOT_BEGUN, FIRST_SENT, BEGUN };

struct kafka_transport {
    struct transport base;
    struct kafka_url url;
    char *file;
    char timeout_ms[24];
    enum compression compression;
    atomic_bool is_cancelled;
    pthread_mutex_t lock; /* protects handle against cancel() */
    rd_kafka_t *handle;
    rd_kafka_topic_t *topic;
    bool is_stale; /* the handle has to be replaced */
    int64_t look_again_ms;
    int64_t look_ms;
    uint32_t outstanding; /* messages without a report */
    /*
     * Whether the broker has acknowledged a message of this handle, for each partition. The leader
     * of a new partition may refuse the first message and accept the second one. Then librdkafka
     * sends the first one again, and the leader drops it as a duplicate. So the first message of a
     * partition goes alone.
     */
    uint8_t begun[BEGUN_MAX];
    bool is_abandoned; /* reports must not write to the replies any more */
    bool is_away;      /* no broker is reachable */
    bool has_broker;   /* a broker answered the last query */
    rd_kafka_resp_err_t problem_code;
    char problem[300];
};

/* ---- events of librdkafka, in rd_kafka_poll() and rd_kafka_flush() --------------------------- */

static void kafka_note_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    struct kafka_transport *kafka = context;

    (void)handle;
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
        kafka->is_away = true;
    if (code == RD_KAFKA_RESP_ERR__FATAL || code == RD_KAFKA_RESP_ERR__AUTHENTICATION ||
        code == RD_KAFKA_RESP_ERR__SSL)
        kafka->is_stale = true; /* kafka-file may have a new password at the next attempt */
    if (code == RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN && kafka->problem_code)
        return; /* the earlier error has the reason */
    kafka->problem_code = (rd_kafka_resp_err_t)code;
    (void)snprintf(kafka->problem, sizeof(kafka->problem), "%s", reason);
}

static void kafka_note_answer(struct kafka_transport *kafka)
{
    kafka->is_away = false;
    kafka->problem_code = RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void kafka_set_error(struct kafka_transport *kafka, rd_kafka_resp_err_t code,
                            struct transport_reply *reply)
{
    const bool is_vague = code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT ||
                          code == RD_KAFKA_RESP_ERR__TRANSPORT ||
                          code == RD_KAFKA_RESP_ERR__TIMED_OUT || code == RD_KAFKA_RESP_ERR__FATAL;

    if (atomic_load(&kafka->is_cancelled))
        error_set(&reply->error, "%s: no answer in time", kafka->url.shown);
    else if (is_vague && kafka->problem_code)
        kafka_describe(&reply->error, kafka->url.shown, kafka->problem_code, kafka->problem);
    else
        kafka_describe(&reply->error, kafka->url.shown, code, rd_kafka_err2str(code));
}

/* Returns true if the broker has refused the message, so the log does not contain it. */
static bool kafka_is_final(rd_kafka_resp_err_t code, enum outcome *outcome)
{
    switch (code) {
    case RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE:
    case RD_KAFKA_RESP_ERR_RECORD_LIST_TOO_LARGE:
        *outcome = OUTCOME_TOO_LARGE;
        return true;
    case RD_KAFKA_RESP_ERR_INVALID_RECORD:
        *outcome = OUTCOME_INVALID;
        return true;
    case RD_KAFKA_RESP_ERR_TOPIC_EXCEPTION:
    case RD_KAFKA_RESP_ERR_TOPIC_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_CLUSTER_AUTHORIZATION_FAILED:
    case RD_KAFKA_RESP_ERR_POLICY_VIOLATION:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_VERSION:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_COMPRESSION_TYPE:
    case RD_KAFKA_RESP_ERR_UNSUPPORTED_FOR_MESSAGE_FORMAT:
        *outcome = OUTCOME_REFUSED;
        return true;
    default:
        return false;
    }
}

static void kafka_judge(struct kafka_transport *kafka, rd_kafka_resp_err_t code,
                        rd_kafka_msg_status_t status, struct transport_reply *reply)
{
    *reply = (struct transport_reply){.outcome = OUTCOME_ACCEPTED};
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR || status == RD_KAFKA_MSG_STATUS_PERSISTED) {
        kafka_note_answer(kafka);
        return;
    }
    kafka_set_error(kafka, code, reply);
    if (!kafka_is_final(code, &reply->outcome))
        reply->outcome = status == RD_KAFKA_MSG_STATUS_POSSIBLY_PERSISTED
                             ? OUTCOME_POSSIBLY_PERSISTED
                             : OUTCOME_AGAIN;
    if (code == RD_KAFKA_RESP_ERR__UNKNOWN_TOPIC || code == RD_KAFKA_RESP_ERR__UNKNOWN_PARTITION ||
        code == RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART || code == RD_KAFKA_RESP_ERR__MSG_TIMED_OUT)
        kafka->look_again_ms = 0;
    kafka->is_stale |= code == RD_KAFKA_RESP_ERR__FATAL;
}

static void kafka_delivered(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context)
{
    struct kafka_transport *kafka = context;

    (void)handle;
    kafka->outstanding--;
    if (kafka->is_abandoned)
        return;
    kafka_judge(kafka, message->err, rd_kafka_message_status(message), message->_private);
    kafka->begun[(uint32_t)message->partition % BEGUN_MAX] = message->err ? NOT_BEGUN : BEGUN;
}

/* Logs only if the options contain "debug". */
static void kafka_log_if_asked(const rd_kafka_t *handle, int level, const char *facility,
                               const char *text)
{
    const rd_kafka_conf_t *conf = rd_kafka_conf((rd_kafka_t *)(uintptr_t)handle);
    char debug[8];
    size_t size = sizeof(debug);

    if (rd_kafka_conf_get(conf, "debug", debug, &size) != RD_KAFKA_CONF_OK || debug[0])
        rd_kafka_log_print(handle, level, facility, text);
}

/* ---- the handle ------------------------------------------------------------------------------ */

/* The guarantees for a span's outcome depend on these options. */
static const char *const reserved[] = {"bootstrap.servers",
                                       "metadata.broker.list",
                                       "acks",
                                       "request.required.acks",
                                       "enable.idempotence",
                                       "enable.gapless.guarantee",
                                       "transactional.id",
                                       "message.timeout.ms",
                                       "delivery.timeout.ms",
                                       "message.max.bytes",
                                       "queue.buffering.max.kbytes",
                                       "batch.num.messages",
                                       NULL};

static void kafka_close_handle(struct kafka_transport *kafka)
{
    rd_kafka_t *handle = kafka->handle;

    if (!handle)
        return;
    pthread_mutex_lock(&kafka->lock);
    kafka->handle = NULL;
    pthread_mutex_unlock(&kafka->lock);
    rd_kafka_topic_destroy(kafka->topic);
    rd_kafka_destroy(handle);
    kafka->topic = NULL;
}

/* Called in the process that sends: librdkafka's threads do not survive a fork(2). */
static bool kafka_open_handle(struct kafka_transport *kafka, struct error *error)
{
    static const char *const codecs[] = {[COMPRESSION_AUTO] = "lz4",
                                         [COMPRESSION_NONE] = "none",
                                         [COMPRESSION_GZIP] = "gzip",
                                         [COMPRESSION_ZSTD] = "zstd"};
    const char *const settings[][2] = {
        {"client.id", "blkin"},
        {"acks", "all"},
        {"enable.idempotence", "true"},
        {"message.timeout.ms", kafka->timeout_ms},
        {"message.max.bytes", "1000000"},
        {"batch.num.messages", "1"}, /* a broker that refuses one message refuses the whole batch */
        {"queue.buffering.max.kbytes", "1048576"}, /* room for a whole batch */
        {"linger.ms", "20"},                       /* kafka_await() ends this delay */
        {"compression.codec", codecs[kafka->compression]},
        {"reconnect.backoff.max.ms", "1000"},
        {"socket.keepalive.enable", "true"},
        {NULL, NULL},
    };
    const struct kafka_setup setup = {
        .url = &kafka->url,
        .file = kafka->file,
        .reserved = reserved,
        .settings = settings,
        .context = kafka,
        .error = kafka_note_error,
        .delivered = kafka_delivered,
        .log = kafka_log_if_asked,
    };
    rd_kafka_t *handle = kafka_open(RD_KAFKA_PRODUCER, &setup, error);

    if (!handle)
        return false;
    kafka->topic = rd_kafka_topic_new(handle, kafka->url.topic, NULL);
    if (!kafka->topic) {
        error_set(error, "%s: %s", kafka->url.shown, rd_kafka_err2str(rd_kafka_last_error()));
        rd_kafka_destroy(handle);
        return false;
    }
    pthread_mutex_lock(&kafka->lock);
    kafka->handle = handle;
    pthread_mutex_unlock(&kafka->lock);
    kafka->is_stale = kafka->is_away = false;
    memset(kafka->begun, NOT_BEGUN, sizeof(kafka->begun));
    kafka->problem_code = RD_KAFKA_RESP_ERR_NO_ERROR;
    kafka->look_again_ms = 0;
    return true;
}

/* ---- looking up the topic -------------------------------------------------------------------- */

static rd_kafka_resp_err_t kafka_ask(struct kafka_transport *kafka, int timeout_ms, int *partitions)
{
    const struct rd_kafka_metadata *metadata;
    rd_kafka_resp_err_t code =
        rd_kafka_metadata(kafka->handle, 0, kafka->topic, &metadata, timeout_ms);

    (void)rd_kafka_poll(kafka->handle, 0);
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        return code;
    kafka_note_answer(kafka);
    code = metadata->topic_cnt == 1 ? metadata->topics[0].err : RD_KAFKA_RESP_ERR_UNKNOWN;
    *partitions = metadata->topic_cnt == 1 ? metadata->topics[0].partition_cnt : 0;
    rd_kafka_metadata_destroy(metadata);
    return code == RD_KAFKA_RESP_ERR_NO_ERROR && *partitions <= 0
               ? RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE
               : code;
}

/* Returns true if a further query may have another answer. */
static bool kafka_may_change(const struct kafka_transport *kafka, rd_kafka_resp_err_t code,
                             int64_t since_ms, bool was_away)
{
    const int64_t waited_ms = clock_ms() - since_ms;

    if (atomic_load(&kafka->is_cancelled) || kafka->is_stale)
        return false;
    switch (code) {
    case RD_KAFKA_RESP_ERR__TRANSPORT:
    case RD_KAFKA_RESP_ERR__TIMED_OUT:
        return was_away ? waited_ms < AWAY_MS : !kafka->is_away && waited_ms < kafka->look_ms;
    case RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE:
    case RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART:
        return waited_ms < MAKING_MS;
    default:
        return false;
    }
}

static void kafka_look_up(struct kafka_transport *kafka, struct transport_reply *reply)
{
    const int64_t since_ms = clock_ms();
    const bool was_away = kafka->is_away;
    int step_ms = LOOK_STEP_MS, partitions = 0;
    rd_kafka_resp_err_t code;

    do {
        code = kafka_ask(kafka, step_ms, &partitions);
        if (code == RD_KAFKA_RESP_ERR__TIMED_OUT)
            step_ms *= 2; /* for a slow network */
        else if (code != RD_KAFKA_RESP_ERR_NO_ERROR && code != RD_KAFKA_RESP_ERR__TRANSPORT)
            (void)rd_kafka_poll(kafka->handle, WAIT_STEP_MS);
        kafka->has_broker =
            code != RD_KAFKA_RESP_ERR__TRANSPORT && code != RD_KAFKA_RESP_ERR__TIMED_OUT;
    } while (kafka_may_change(kafka, code, since_ms, was_away));
    if (code == RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka->base.partitions = (uint32_t)partitions;
        kafka->look_again_ms = clock_ms() + LOOK_AGAIN_MS;
        *reply = (struct transport_reply){.outcome = OUTCOME_ACCEPTED};
        return;
    }
    *reply = (struct transport_reply){.outcome = OUTCOME_AGAIN};
    kafka_set_error(kafka, code, reply);
    if (kafka->is_stale)
        reply->outcome = OUTCOME_REFUSED;
    else
        (void)kafka_is_final(code, &reply->outcome);
}

/* Returns whether handle and topic are ready. looks: queries the brokers in any case. */
static bool kafka_is_ready(struct kafka_transport *kafka, bool looks, struct transport_reply *reply)
{
    *reply = (struct transport_reply){.outcome = OUTCOME_AGAIN};
    if (atomic_load(&kafka->is_cancelled))
        return error_set(&reply->error, "%s: no answer in time", kafka->url.shown);
    if (kafka->is_stale && kafka->outstanding) {
        /* closing the handle would lose the reports that kafka_await() waits for */
        kafka_set_error(kafka, RD_KAFKA_RESP_ERR__FATAL, reply);
        return false;
    }
    if (!kafka->handle || kafka->is_stale) {
        kafka_close_handle(kafka);
        if (!kafka_open_handle(kafka, &reply->error))
            return false;
    }
    (void)rd_kafka_poll(kafka->handle, 0); /* events since the last message */
    if (looks || kafka->is_away || clock_ms() >= kafka->look_again_ms)
        kafka_look_up(kafka, reply);
    else
        reply->outcome = OUTCOME_ACCEPTED;
    return reply->outcome == OUTCOME_ACCEPTED;
}

static void kafka_probe(struct transport *transport, struct transport_reply *reply)
{
    struct kafka_transport *kafka = (struct kafka_transport *)transport;
    struct error cause;

    if (kafka_is_ready(kafka, true, reply) || reply->outcome != OUTCOME_AGAIN || !kafka->handle ||
        kafka->has_broker)
        return;
    cause = reply->error;
    error_set(&reply->error, "no broker is there: %s: start it, or correct the parameter endpoint",
              cause.text);
}

/* ---- sending --------------------------------------------------------------------------------- */

static void kafka_await(struct transport *transport)
{
    struct kafka_transport *kafka = (struct kafka_transport *)transport;
    int64_t cancelled_ms = CLOCK_NEVER;

    while (kafka->outstanding) {
        /* rd_kafka_flush() also ends the delay of linger.ms */
        (void)rd_kafka_flush(kafka->handle, WAIT_STEP_MS);
        if (!kafka->outstanding || !atomic_load(&kafka->is_cancelled))
            continue;
        /* cancel() may have been called before the messages were queued */
        (void)rd_kafka_purge(kafka->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                                RD_KAFKA_PURGE_F_NON_BLOCKING);
        if (cancelled_ms == CLOCK_NEVER)
            cancelled_ms = clock_ms();
        if (clock_ms() - cancelled_ms > CANCELLED_MS) {
            kafka->is_abandoned = true; /* the caller frees replies and messages */
            kafka_close_handle(kafka);
            kafka->outstanding = 0;
        }
    }
}

static void kafka_send(struct transport *transport, const struct payload *payload,
                       struct transport_reply *reply)
{
    struct kafka_transport *kafka = (struct kafka_transport *)transport;
    const int flags = payload->stays ? 0 : RD_KAFKA_MSG_F_COPY;
    uint8_t *const begun = &kafka->begun[payload->partition % BEGUN_MAX];
    rd_kafka_resp_err_t code;

    if (*begun == FIRST_SENT)
        kafka_await(transport);
    if (!kafka_is_ready(kafka, false, reply))
        return;
    if (payload->partitions != kafka->base.partitions) {
        *reply = (struct transport_reply){.outcome = OUTCOME_AGAIN, .is_misplaced = true};
        return;
    }
    /* the reply if no report arrives in time: see kafka_await() */
    reply->outcome = OUTCOME_POSSIBLY_PERSISTED;
    error_set(&reply->error, "%s: no answer in time", kafka->url.shown);
    do {
        code = rd_kafka_produce(kafka->topic, (int32_t)payload->partition, flags,
                                (void *)(uintptr_t)payload->text.data, payload->text.length, NULL,
                                0, reply) == 0
                   ? RD_KAFKA_RESP_ERR_NO_ERROR
                   : rd_kafka_last_error();
        /* the queue is full of messages of this batch, whose reports make room */
        if (code == RD_KAFKA_RESP_ERR__QUEUE_FULL)
            (void)rd_kafka_flush(kafka->handle, WAIT_STEP_MS);
    } while (code == RD_KAFKA_RESP_ERR__QUEUE_FULL && !atomic_load(&kafka->is_cancelled));
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka_judge(kafka, code, RD_KAFKA_MSG_STATUS_NOT_PERSISTED, reply);
        return;
    }
    kafka->outstanding++;
    if (*begun == NOT_BEGUN)
        *begun = FIRST_SENT;
}

static bool kafka_arrange(struct transport *transport, const struct encoder *encoder,
                          struct body_run run, size_t bytes, struct arranged *arranged)
{
    return kafka_arrange_run(transport->partitions, encoder, run,
                             bytes < KAFKA_MESSAGE_BYTES ? bytes : KAFKA_MESSAGE_BYTES, arranged);
}

/* Purged messages get their reports at once. */
static void kafka_cancel(struct transport *transport)
{
    struct kafka_transport *kafka = (struct kafka_transport *)transport;

    atomic_store(&kafka->is_cancelled, true);
    LOCK_GUARD(&kafka->lock);
    if (kafka->handle)
        (void)rd_kafka_purge(kafka->handle, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT |
                                                RD_KAFKA_PURGE_F_NON_BLOCKING);
}

static void kafka_free(struct transport *transport)
{
    struct kafka_transport *kafka = (struct kafka_transport *)transport;

    kafka_close_handle(kafka);
    pthread_mutex_destroy(&kafka->lock);
    free(kafka->file);
    free(kafka);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool kafka_is_local(const char *brokers)
{
    static const char *const locals[] = {"localhost", "127.", "[::1]"};
    bool is_here = false;

    for (size_t i = 0; i < sizeof(locals) / sizeof(locals[0]); i++)
        is_here |= strncmp(brokers, locals[i], strlen(locals[i])) == 0;
    return is_here;
}

static bool kafka_has_plain_password(rd_kafka_t *handle)
{
    char protocol[32] = "", mechanism[32] = "";
    size_t protocol_size = sizeof(protocol), mechanism_size = sizeof(mechanism);
    const rd_kafka_conf_t *conf = rd_kafka_conf(handle);

    return rd_kafka_conf_get(conf, "security.protocol", protocol, &protocol_size) ==
               RD_KAFKA_CONF_OK &&
           rd_kafka_conf_get(conf, "sasl.mechanisms", mechanism, &mechanism_size) ==
               RD_KAFKA_CONF_OK &&
           strcmp(protocol, "sasl_plaintext") == 0 && strcmp(mechanism, "PLAIN") == 0;
}

struct transport *kafka_transport_open(const struct transport_options *options, struct error *error)
{
    struct kafka_transport *kafka = calloc(1, sizeof(*kafka));

    if (!kafka)
        return error_null(error, "out of memory");
    kafka->base = (struct transport){
        .probe = kafka_probe,
        .send = kafka_send,
        .arrange = kafka_arrange,
        .await = kafka_await,
        .cancel = kafka_cancel,
        .free = kafka_free,
    };
    kafka->compression = options->compression;
    kafka->look_ms =
        options->request_timeout_ms < KAFKA_TOPIC_MS ? options->request_timeout_ms : KAFKA_TOPIC_MS;
    kafka->file = options->kafka_file ? strdup(options->kafka_file) : NULL;
    (void)snprintf(kafka->timeout_ms, sizeof(kafka->timeout_ms), "%lld",
                   (long long)options->request_timeout_ms);
    pthread_mutex_init(&kafka->lock, NULL);
    if (!kafka_url_parse(&kafka->url, "endpoint", options->endpoint, error)) {
        kafka_free(&kafka->base);
        return NULL;
    }
    if ((options->kafka_file && !kafka->file) || !kafka_open_handle(kafka, error)) {
        kafka_free(&kafka->base);
        return NULL;
    }
    if (kafka_has_plain_password(kafka->handle) && !kafka_is_local(kafka->url.brokers))
        kafka->base.warning =
            "the password goes over sasl_plaintext, where everyone on the network path can read "
            "it: use sasl_ssl, or a mechanism that does not send the password";
    return &kafka->base;
}

#endif
