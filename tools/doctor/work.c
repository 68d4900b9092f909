/* Checks `blkin work`: brokers, topics, their settings, and their messages.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"

#ifndef HAS_KAFKA

void check_work(const struct doctor *doctor)
{
    (void)doctor;
    saw(LEVEL_BAD, "work.build",
        "this build is without librdkafka" MEND
        "apt install librdkafka-dev and build again, or install the package");
}

#else

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/kafka/topic.h"
#include "tools/otlp/otlp_decode.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Time limits of requests. DOCTOR_LIMIT_MS ends the check if the brokers answer nearly none. */
#define WORK_CHECK_MS 1500
#define WORK_ASK_MS   1500
#define WORK_READ_MS  1500

struct kafka {
    const struct doctor *doctor;
    struct kafka_url url;
    const char *deltas; /* "": none */
    rd_kafka_t *client;
    int brokers;
    int partitions; /* of the input topic */
    int32_t a_broker;
    bool has_deltas, has_transaction_state;
};

/* ---- settings, as a broker has them ---------------------------------------------------------- */

struct settings {
    char time[32], cleanup[32]; /* settings of a topic */
    int64_t message_bytes, retention_ms;
    int64_t replicas, in_sync; /* a broker's settings for the transaction log */
};

static void take_setting(struct settings *settings, const char *key, const char *value)
{
    if (strcmp(key, "message.timestamp.type") == 0)
        (void)snprintf(settings->time, sizeof(settings->time), "%s", value);
    else if (strcmp(key, "cleanup.policy") == 0)
        (void)snprintf(settings->cleanup, sizeof(settings->cleanup), "%s", value);
    else if (strcmp(key, "max.message.bytes") == 0)
        settings->message_bytes = strtoll(value, NULL, 10);
    else if (strcmp(key, "retention.ms") == 0)
        settings->retention_ms = strtoll(value, NULL, 10);
    else if (strcmp(key, "transaction.state.log.replication.factor") == 0)
        settings->replicas = strtoll(value, NULL, 10);
    else if (strcmp(key, "transaction.state.log.min.isr") == 0)
        settings->in_sync = strtoll(value, NULL, 10);
}

/* Reads the settings of a topic or a broker. Returns false without an answer within WORK_ASK_MS. */
static bool read_settings(rd_kafka_t *client, rd_kafka_ResourceType_t type, const char *name,
                          struct settings *settings)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_new(client);
    rd_kafka_ConfigResource_t *resource = rd_kafka_ConfigResource_new(type, name);
    const rd_kafka_ConfigResource_t **told;
    rd_kafka_event_t *event;
    size_t count = 0;

    rd_kafka_DescribeConfigs(client, &resource, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, WORK_ASK_MS);
    if (event && !rd_kafka_event_error(event)) {
        told = rd_kafka_DescribeConfigs_result_resources(
            rd_kafka_event_DescribeConfigs_result(event), &count);
        if (count == 1 && !rd_kafka_ConfigResource_error(told[0])) {
            const rd_kafka_ConfigEntry_t **entries =
                rd_kafka_ConfigResource_configs(told[0], &count);

            for (size_t i = 0; i < count; i++) {
                const char *value = rd_kafka_ConfigEntry_value(entries[i]);

                take_setting(settings, rd_kafka_ConfigEntry_name(entries[i]), value ? value : "");
            }
        } else {
            count = 0;
        }
    }
    if (event)
        rd_kafka_event_destroy(event);
    rd_kafka_ConfigResource_destroy(resource);
    rd_kafka_queue_destroy(queue);
    return count > 0;
}

#define SET_CONFIG                                                                               \
    MEND "kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s " \
         "--add-config "
#define OUR_MESSAGE_BYTES 900000 /* the largest message that BlkKin writes */

static void check_input_settings(const struct kafka *kafka)
{
    const char *topic = kafka->url.topic;
    struct settings settings = {.message_bytes = INT64_MAX};

    if (!read_settings(kafka->client, RD_KAFKA_RESOURCE_TOPIC, topic, &settings)) {
        saw(LEVEL_NOTE, "input.time",
            "cannot read the topic's settings from the brokers" MEND
            "allow DescribeConfigs, or check by hand that %s has "
            "message.timestamp.type=LogAppendTime",
            topic);
        return;
    }
    if (strcmp(settings.time, "LogAppendTime") == 0)
        saw(LEVEL_OK, "input.time", "%s has times of the brokers (LogAppendTime)", topic);
    else
        saw(LEVEL_BAD, "input.time",
            "%s has times of the writers (%s): workers assemble traces by time, and one writer "
            "with a wrong clock closes traces too early" SET_CONFIG
            "message.timestamp.type=LogAppendTime",
            topic, settings.time, kafka->url.brokers, topic);
    if (settings.message_bytes < OUR_MESSAGE_BYTES)
        saw(LEVEL_BAD, "input.size",
            "%s takes messages of at most %" PRId64 " bytes, but writers send up to %d" SET_CONFIG
            "max.message.bytes=1048588",
            topic, settings.message_bytes, OUR_MESSAGE_BYTES, kafka->url.brokers, topic);
}

static void check_deltas_settings(const struct kafka *kafka)
{
    struct settings settings = {.retention_ms = -1};

    if (!kafka->has_deltas ||
        !read_settings(kafka->client, RD_KAFKA_RESOURCE_TOPIC, kafka->deltas, &settings))
        return;
    if (strstr(settings.cleanup, "compact"))
        saw(LEVEL_BAD, "deltas.kept",
            "%s is compacted: brokers take no messages without a key there, and deltas have "
            "none" SET_CONFIG "cleanup.policy=delete",
            kafka->deltas, kafka->url.brokers, kafka->deltas);
    else if (settings.retention_ms >= 0 && settings.retention_ms < 600000)
        saw(LEVEL_BAD, "deltas.kept",
            "%s keeps deltas for only %" PRId64
            " s: older deltas that the root has not read are lost" SET_CONFIG
            "retention.ms=86400000",
            kafka->deltas, settings.retention_ms / 1000, kafka->url.brokers, kafka->deltas);
    else
        saw(LEVEL_OK, "deltas.kept", "%s keeps deltas for long enough", kafka->deltas);
}

/* Kafka creates the transaction log with the first transaction, and needs enough brokers for its
 * replicas. */
static void check_transactions(const struct kafka *kafka)
{
    struct settings settings = {.replicas = 0};
    char broker[16];

    (void)snprintf(broker, sizeof(broker), "%d", (int)kafka->a_broker);
    if (!read_settings(kafka->client, RD_KAFKA_RESOURCE_BROKER, broker, &settings))
        saw(LEVEL_NOTE, "transactions.log",
            "cannot read the settings of the brokers" MEND
            "check by hand that transaction.state.log.replication.factor is at "
            "most the number of brokers");
    else if (settings.in_sync > kafka->brokers ||
             (!kafka->has_transaction_state && settings.replicas > kafka->brokers))
        saw(LEVEL_BAD, "transactions.log",
            "the log of transactions needs %" PRId64 " brokers, %" PRId64
            " of them in sync, but there are %d: workers cannot commit" MEND
            "add brokers, or set transaction.state.log.replication.factor=%d and "
            "transaction.state.log.min.isr=1 in server.properties",
            settings.replicas, settings.in_sync, kafka->brokers, kafka->brokers);
    else
        saw(LEVEL_OK, "transactions.log", "%d brokers are enough for transactions", kafka->brokers);
}

/* ---- topics ---------------------------------------------------------------------------------- */

static void find_topics(struct kafka *kafka, const rd_kafka_metadata_t *metadata)
{
    kafka->brokers = metadata->broker_cnt;
    kafka->a_broker = metadata->broker_cnt ? metadata->brokers[0].id : -1;
    for (int i = 0; i < metadata->topic_cnt; i++) {
        const rd_kafka_metadata_topic_t *topic = &metadata->topics[i];

        if (strcmp(topic->topic, kafka->url.topic) == 0)
            kafka->partitions = topic->err ? 0 : topic->partition_cnt;
        if (strcmp(topic->topic, kafka->deltas) == 0)
            kafka->has_deltas = !topic->err;
        if (strcmp(topic->topic, "__transaction_state") == 0)
            kafka->has_transaction_state = true;
    }
}

#define NO_TOPIC(partitions, setting)                                                    \
    "there is no topic %s, or this user may not read it" MEND                            \
    "kafka-topics.sh --bootstrap-server %s --create --topic %s --partitions " partitions \
    " --config " setting

static void check_topics(const struct kafka *kafka)
{
    if (kafka->partitions == 0)
        saw(LEVEL_BAD, "input.topic", NO_TOPIC("12", "message.timestamp.type=LogAppendTime"),
            kafka->url.topic, kafka->url.brokers, kafka->url.topic);
    else
        saw(LEVEL_OK, "input.topic", "%s has %d partitions: at most that many workers can share it",
            kafka->url.topic, kafka->partitions);
    if (!*kafka->deltas)
        saw(LEVEL_NOTE, "deltas.topic", "deltas is not set: blkin work --root has nothing to read");
    else if (strcmp(kafka->deltas, kafka->url.topic) == 0)
        saw(LEVEL_BAD, "deltas.topic",
            "deltas and input name the same topic" MEND "set deltas = blkin_deltas in blkin.conf");
    else if (!kafka->has_deltas)
        saw(LEVEL_BAD, "deltas.topic", NO_TOPIC("1", "retention.ms=86400000"), kafka->deltas,
            kafka->url.brokers, kafka->deltas);
    else
        saw(LEVEL_OK, "deltas.topic", "%s is there", kafka->deltas);
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Returns one of the last two messages of a partition; NULL: none was received in time. */
static rd_kafka_message_t *last_message(const struct kafka *kafka, const char *name, int partitions)
{
    rd_kafka_topic_t *topic = rd_kafka_topic_new(kafka->client, name, NULL);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(kafka->client);
    const int64_t until_ms = clock_ms() + WORK_READ_MS;
    rd_kafka_message_t *message = NULL;
    int ends = 0;

    for (int i = 0; i < partitions; i++)
        (void)rd_kafka_consume_start_queue(topic, i, RD_KAFKA_OFFSET_TAIL(2), queue);
    while (!message && ends < partitions && clock_ms() < until_ms) {
        message = rd_kafka_consume_queue(queue, 100);
        if (message && message->err) {
            ends += message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF;
            rd_kafka_message_destroy(message);
            message = NULL;
        }
    }
    for (int i = 0; i < partitions; i++)
        (void)rd_kafka_consume_stop(topic, i);
    rd_kafka_queue_destroy(queue);
    rd_kafka_topic_destroy(topic);
    return message;
}

static void ignore_span(void *context, const struct otlp_origin *origin,
                        const struct otlp_span *span)
{
    (void)context;
    (void)origin;
    (void)span;
}

static void check_messages(const struct kafka *kafka)
{
    rd_kafka_message_t *message = last_message(kafka, kafka->url.topic, kafka->partitions);
    struct otlp_decoded decoded;
    int64_t age_s;

    if (!message) {
        saw(LEVEL_NOTE, "input.messages",
            "%s has no messages, or no broker sent one within %d ms" MEND
            "set endpoint = kafka://%s/%s and format = otlp on the hosts that collect spans",
            kafka->url.topic, WORK_READ_MS, kafka->url.brokers, kafka->url.topic);
        return;
    }
    decoded = otlp_decode((struct text){message->payload, message->len}, ignore_span, NULL);
    age_s = wall_clock_ns() / 1000000000 - rd_kafka_message_timestamp(message, NULL) / 1000;
    if (decoded.is_broken || decoded.spans == 0)
        saw(LEVEL_BAD, "input.messages",
            "partition %d, offset %" PRId64 ": expected OTLP traces, got something else%s" MEND
            "set format = otlp where it is written (in an OpenTelemetry collector: otlp_proto)",
            (int)message->partition, message->offset,
            message->len && *(const char *)message->payload == '[' ? ": Zipkin's JSON?" : "");
    else
        saw(LEVEL_OK, "input.messages",
            "OTLP traces: a message has %" PRIu64 " spans, and is %" PRId64 " s old", decoded.spans,
            age_s);
    rd_kafka_message_destroy(message);
}

/* ---- all checks of workers ------------------------------------------------------------------- */

static rd_kafka_t *open_client(struct kafka *kafka, struct error *error)
{
    static const char *const settings[][2] = {{"client.id", "blkin-doctor"},
                                              {"enable.partition.eof", "true"},
                                              {"log_level", "0"},
                                              {NULL, NULL}};
    const struct kafka_setup setup = {
        .url = &kafka->url,
        .file = config_text(kafka->doctor->config, "kafka-file"),
        .settings = settings,
    };

    kafka->client = kafka_open(RD_KAFKA_CONSUMER, &setup, error);
    return kafka->client;
}

/* Explains a failed connection. The client reports the reason later, by an event. */
static void work_explain(const struct kafka *kafka, rd_kafka_resp_err_t code)
{
    rd_kafka_event_t *event;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(kafka->client);
    struct error error;

    kafka_describe(&error, kafka->url.brokers, code, rd_kafka_err2str(code));
    while ((event = rd_kafka_queue_poll(queue, 0))) {
        if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_ERROR &&
            rd_kafka_event_error(event) != RD_KAFKA_RESP_ERR__ALL_BROKERS_DOWN)
            kafka_describe(&error, kafka->url.brokers, rd_kafka_event_error(event),
                           rd_kafka_event_error_string(event));
        rd_kafka_event_destroy(event);
    }
    rd_kafka_queue_destroy(queue);
    saw(LEVEL_BAD, "broker.answers", "%s" MEND "is a broker there? input is set by %s", error.text,
        config_origin(kafka->doctor->config, "input"));
}

static void check_brokers(struct kafka *kafka)
{
    const rd_kafka_metadata_t *metadata = NULL;
    const rd_kafka_resp_err_t code =
        rd_kafka_metadata(kafka->client, 1, NULL, &metadata, WORK_CHECK_MS);

    if (code) {
        work_explain(kafka, code);
        return;
    }
    find_topics(kafka, metadata);
    rd_kafka_metadata_destroy(metadata);
    saw(LEVEL_OK, "broker.answers", "%s answers; brokers in the cluster: %d", kafka->url.brokers,
        kafka->brokers);
    check_topics(kafka);
    check_transactions(kafka);
    if (kafka->partitions) {
        check_input_settings(kafka);
        check_messages(kafka);
    }
    check_deltas_settings(kafka);
}

void check_work(const struct doctor *doctor)
{
    const char *input = config_text(doctor->config, "input");
    const char *deltas = config_text(doctor->config, "deltas");
    struct kafka kafka = {.doctor = doctor, .deltas = deltas ? deltas : ""};
    struct error error;

    if (!input || !*input) {
        saw(LEVEL_BAD, "work.settings",
            "input is not set: the worker has no topic to read" MEND
            "set input = kafka://BROKER/TOPIC below [work] in blkin.conf");
    } else if (!kafka_url_parse(&kafka.url, "input", input, &error) ||
               !open_client(&kafka, &error)) {
        saw(LEVEL_BAD, "work.settings",
            "%s" MEND "blkin config show --section=work shows where it is set", error.text);
    } else {
        check_brokers(&kafka);
        rd_kafka_destroy(kafka.client);
    }
}

#endif
