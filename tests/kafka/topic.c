/*
 * What tests need of a topic, without a Java of their own for each question.
 *
 *     topic BROKERS create TOPIC PARTITIONS [NAME=VALUE]...
 *     topic BROKERS grow TOPIC PARTITIONS
 *     topic BROKERS delete TOPIC
 *     topic BROKERS read TOPIC [NAME=VALUE]...     what is in it now: "PARTITION OFFSET LENGTH\n",
 *                                                  then the message and "\n", for each
 *     topic BROKERS produce TOPIC PARTITION [KEY]  what is on stdin, as one message
 *     topic BROKERS trim TOPIC                     deletes what is in it, as retention does
 *
 * NAME=VALUE: of the topic; of librdkafka with read. Nothing takes longer than 60 s.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <inttypes.h>
#include <librdkafka/rdkafka.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LIMIT_MS 60000

static void fail(const char *what, const char *cause)
{
    fprintf(stderr, "topic: %s: %s\n", what, cause);
    exit(1);
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value)
{
    char cause[256];

    if (rd_kafka_conf_set(conf, name, value, cause, sizeof(cause)) != RD_KAFKA_CONF_OK)
        fail(name, cause);
}

static rd_kafka_t *open_handle(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *brokers)
{
    rd_kafka_t *handle;
    char cause[256];

    set(conf, "bootstrap.servers", brokers);
    set(conf, "reconnect.backoff.max.ms", "500");
    handle = rd_kafka_new(type, conf, cause, sizeof(cause));
    if (!handle)
        fail("rd_kafka_new", cause);
    return handle;
}

/* ---- topics ---------------------------------------------------------------------------------- */

static void check(const rd_kafka_topic_result_t *const *results, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rd_kafka_topic_result_error(results[i]))
            fail(rd_kafka_topic_result_name(results[i]),
                 rd_kafka_topic_result_error_string(results[i]));
    }
}

static void await(rd_kafka_queue_t *queue)
{
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, LIMIT_MS);
    const rd_kafka_topic_result_t **results = NULL;
    size_t count = 0;

    if (!event || rd_kafka_event_error(event))
        fail("no answer", event ? rd_kafka_event_error_string(event) : "in time");
    if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_CREATETOPICS_RESULT)
        results =
            rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    else if (rd_kafka_event_type(event) == RD_KAFKA_EVENT_DELETETOPICS_RESULT)
        results =
            rd_kafka_DeleteTopics_result_topics(rd_kafka_event_DeleteTopics_result(event), &count);
    else
        results = rd_kafka_CreatePartitions_result_topics(
            rd_kafka_event_CreatePartitions_result(event), &count);
    check(results, count);
    rd_kafka_event_destroy(event);
}

/* Until the broker tells others of a new topic: it may have made it and not know it yet. */
static void await_leaders(rd_kafka_t *handle, const char *topic)
{
    rd_kafka_topic_t *one = rd_kafka_topic_new(handle, topic, NULL);
    bool are_there = false;

    for (int i = 0; i < LIMIT_MS / 20 && !are_there; i++) {
        const struct rd_kafka_metadata *metadata;

        if (rd_kafka_metadata(handle, 0, one, &metadata, LIMIT_MS) != RD_KAFKA_RESP_ERR_NO_ERROR)
            fail(topic, "no answer in time");
        are_there = !metadata->topics[0].err && metadata->topics[0].partition_cnt > 0;
        for (int j = 0; j < metadata->topics[0].partition_cnt; j++)
            are_there = are_there && metadata->topics[0].partitions[j].leader >= 0;
        rd_kafka_metadata_destroy(metadata);
        (void)usleep(are_there ? 0 : 20000);
    }
    if (!are_there)
        fail(topic, "made, and not known");
    rd_kafka_topic_destroy(one);
}

static void administer(const char *brokers, const char *what, const char *topic, char **args)
{
    rd_kafka_t *handle = open_handle(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), brokers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_AdminOptions_t *options = rd_kafka_AdminOptions_new(handle, RD_KAFKA_ADMIN_OP_ANY);
    char cause[256];

    (void)rd_kafka_AdminOptions_set_request_timeout(options, LIMIT_MS, cause, sizeof(cause));
    if (strcmp(what, "create") == 0) {
        rd_kafka_NewTopic_t *new_topic =
            rd_kafka_NewTopic_new(topic, atoi(args[0]), 1, cause, sizeof(cause));

        if (!new_topic)
            fail(topic, cause);
        for (args++; *args; args++) {
            char *value = strchr(*args, '=');

            if (!value)
                fail("expected NAME=VALUE", *args);
            *value = '\0';
            (void)rd_kafka_NewTopic_set_config(new_topic, *args, value + 1);
        }
        rd_kafka_CreateTopics(handle, &new_topic, 1, options, queue);
        await(queue);
        await_leaders(handle, topic);
        rd_kafka_NewTopic_destroy(new_topic);
    } else if (strcmp(what, "delete") == 0) {
        rd_kafka_DeleteTopic_t *old = rd_kafka_DeleteTopic_new(topic);

        rd_kafka_DeleteTopics(handle, &old, 1, options, queue);
        await(queue);
        rd_kafka_DeleteTopic_destroy(old);
    } else {
        rd_kafka_NewPartitions_t *grown =
            rd_kafka_NewPartitions_new(topic, (size_t)atoi(args[0]), cause, sizeof(cause));

        if (!grown)
            fail(topic, cause);
        rd_kafka_CreatePartitions(handle, &grown, 1, options, queue);
        await(queue);
        rd_kafka_NewPartitions_destroy(grown);
    }
    rd_kafka_AdminOptions_destroy(options);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
}

/* ---- messages -------------------------------------------------------------------------------- */

static void print(const rd_kafka_message_t *message)
{
    printf("%" PRId32 " %" PRId64 " %zu\n", message->partition, message->offset, message->len);
    (void)fwrite(message->payload, 1, message->len, stdout);
    (void)putchar('\n');
}

static rd_kafka_topic_partition_list_t *partitions_of(rd_kafka_t *handle, const char *topic)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_t *one = rd_kafka_topic_new(handle, topic, NULL);
    const struct rd_kafka_metadata *metadata;
    const rd_kafka_resp_err_t code = rd_kafka_metadata(handle, 0, one, &metadata, LIMIT_MS);

    if (code != RD_KAFKA_RESP_ERR_NO_ERROR || metadata->topics[0].err)
        fail(topic, rd_kafka_err2str(code ? code : metadata->topics[0].err));
    for (int i = 0; i < metadata->topics[0].partition_cnt; i++)
        rd_kafka_topic_partition_list_add(list, topic, i)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_metadata_destroy(metadata);
    rd_kafka_topic_destroy(one);
    return list;
}

static void read_all(const char *brokers, const char *topic, char **args)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    rd_kafka_topic_partition_list_t *list;
    rd_kafka_t *handle;
    int left;

    set(conf, "group.id", "test-topic");
    set(conf, "enable.auto.commit", "false");
    set(conf, "enable.partition.eof", "true");
    set(conf, "fetch.wait.max.ms", "50");
    for (; *args; args++) {
        char *value = strchr(*args, '=');

        if (!value)
            fail("expected NAME=VALUE", *args);
        *value = '\0';
        set(conf, *args, value + 1);
    }
    handle = open_handle(RD_KAFKA_CONSUMER, conf, brokers);
    (void)rd_kafka_poll_set_consumer(handle);
    list = partitions_of(handle, topic);
    left = list->cnt;
    if (rd_kafka_assign(handle, list) != RD_KAFKA_RESP_ERR_NO_ERROR)
        fail(topic, "cannot read it");
    while (left) {
        rd_kafka_message_t *message = rd_kafka_consumer_poll(handle, LIMIT_MS);

        if (!message)
            fail(topic, "no end within a minute");
        if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
            left--;
        else if (!message->err)
            print(message);
        rd_kafka_message_destroy(message);
    }
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_destroy(handle);
}

static void produce(const char *brokers, const char *topic, int partition, const char *key)
{
    static char text[1 << 20];
    rd_kafka_t *handle = open_handle(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), brokers);
    const size_t length = fread(text, 1, sizeof(text), stdin);

    if (rd_kafka_producev(handle, RD_KAFKA_V_TOPIC(topic), RD_KAFKA_V_PARTITION(partition),
                          RD_KAFKA_V_KEY(key, key ? strlen(key) : 0),
                          RD_KAFKA_V_VALUE(text, length), RD_KAFKA_V_END) ||
        rd_kafka_flush(handle, LIMIT_MS))
        fail(topic, "cannot write to it");
    rd_kafka_destroy(handle);
}

static void trim(const char *brokers, const char *topic)
{
    rd_kafka_t *handle = open_handle(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), brokers);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(handle);
    rd_kafka_topic_partition_list_t *list = partitions_of(handle, topic);
    const rd_kafka_topic_partition_list_t *done;
    rd_kafka_DeleteRecords_t *records;
    rd_kafka_event_t *event;

    for (int i = 0; i < list->cnt; i++)
        list->elems[i].offset = RD_KAFKA_OFFSET_END;
    records = rd_kafka_DeleteRecords_new(list);
    rd_kafka_DeleteRecords(handle, &records, 1, NULL, queue);
    event = rd_kafka_queue_poll(queue, LIMIT_MS);
    if (!event || rd_kafka_event_error(event))
        fail(topic, event ? rd_kafka_event_error_string(event) : "no answer in time");
    done = rd_kafka_DeleteRecords_result_offsets(rd_kafka_event_DeleteRecords_result(event));
    for (int i = 0; i < done->cnt; i++) {
        if (done->elems[i].err)
            fail(topic, rd_kafka_err2str(done->elems[i].err));
    }
    rd_kafka_event_destroy(event);
    rd_kafka_DeleteRecords_destroy(records);
    rd_kafka_topic_partition_list_destroy(list);
    rd_kafka_queue_destroy(queue);
    rd_kafka_destroy(handle);
}

int main(int argc, char **argv)
{
    const bool is_read = argc > 3 && strcmp(argv[2], "read") == 0;
    const bool is_trim = argc > 3 && strcmp(argv[2], "trim") == 0;

    if (argc < 4 || (argc < 5 && !is_read && !is_trim && strcmp(argv[2], "delete") != 0))
        fail("wrong usage", "see the head of topic.c");
    if (is_read)
        read_all(argv[1], argv[3], argv + 4);
    else if (is_trim)
        trim(argv[1], argv[3]);
    else if (strcmp(argv[2], "produce") == 0)
        produce(argv[1], argv[3], atoi(argv[4]), argc > 5 ? argv[5] : NULL);
    else
        administer(argv[1], argv[2], argv[3], argv + 4);
    return fflush(stdout) == 0 ? 0 : 1;
}
