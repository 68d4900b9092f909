/*
 * blkin config push.
 *
 * It reads the topic before it writes, so a missing broker or topic is reported before a change.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "push.h"

#include "tools/config/config.h"

#include <stdio.h>

#ifndef HAS_KAFKA

int config_push(int argc, char *argv[], const char *usage)
{
    (void)argc;
    (void)usage;
    fprintf(stderr, "%s: kafka:// is not in this build: build it with librdkafka\n", argv[0]);
    return 1;
}

#else

#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "pushed.h"
#include "tools/base/say.h"
#include "tools/config/file.h"
#include "tools/kafka/kafka_settings.h"
#include "tools/kafka/topic.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SERVICE    "host" /* the service that takes lines from the topic */
#define KEY        "config-topic"
#define READ_MS    30000
#define DELIVER_MS "15000"
#define FLUSH_MS   20000
#define KEYS       1024 /* more are not shown */

struct push {
    const char *program, *hosts, *kafka_file;
    struct kafka_url url;
    char key[PUSHED_KEY_MAX + 1];
    struct pushed_text found[KEYS]; /* the latest text of each key */
    size_t count;
};

/* Prints foreign text without control characters, for a terminal. */
static void push_print(FILE *file, const char *text)
{
    for (; *text; text++)
        fputc((unsigned char)*text < 0x20 || *text == 0x7f ? '?' : *text, file);
}

static void push_complain(const struct push *push, const char *what)
{
    fprintf(stderr, "%s: ", push->program);
    push_print(stderr, what);
    fputc('\n', stderr);
}

/* ---- what there is --------------------------------------------------------------------------- */

static struct pushed_text *push_find(struct push *push, const char *key)
{
    for (size_t i = 0; i < push->count; i++) {
        if (strcmp(push->found[i].key, key) == 0)
            return &push->found[i];
    }
    return NULL;
}

static bool push_take_message(void *context, const struct topic_message *message)
{
    struct push *push = context;
    struct pushed_text text = {.bytes = (char *)(uintptr_t)message->data, /* to be copied from */
                               .size = message->length,
                               .offset = message->offset,
                               .written_ns = message->log_ns};
    struct pushed_text *found;

    if (message->partition != 0 || !message->key || message->key_length > PUSHED_KEY_MAX)
        return true;
    memcpy(text.key, message->key, message->key_length);
    text.key[message->key_length] = '\0';
    found = push_find(push, text.key);
    if (!found && message->data && push->count < KEYS)
        found = &push->found[push->count++];
    return !found || pushed_text_copy(found, &text);
}

static void push_ignore_gap(void *context, int32_t partition)
{
    (void)context;
    (void)partition;
}

static void push_say_waiting(void *context, const char *why)
{
    struct error error;

    error_set(&error, "trying for %d s: %s", READ_MS / 1000, why);
    push_complain(context, error.text);
}

static bool push_read_topic(struct push *push, struct error *error)
{
    const struct topic_options options = {
        .client_id = "blkin-config",
        .fetch_wait_ms = "100",
        .url = &push->url,
        .kafka_file = push->kafka_file,
        .message = push_take_message,
        .gap = push_ignore_gap,
        .context = push,
    };
    struct topic *topic = topic_open(&options, error);
    const bool is_read = topic && topic_read_all(topic, READ_MS, push_say_waiting, error);

    if (is_read && topic_partitions(topic) > 1)
        fprintf(stderr, "%s: %s has %d partitions: only the first is used\n", push->program,
                push->url.shown, (int)topic_partitions(topic));
    topic_close(topic);
    return is_read;
}

/* ---- showing --------------------------------------------------------------------------------- */

static void push_print_lines(const struct pushed_text *text)
{
    for (size_t i = 0; i < text->size; i++) {
        const unsigned char c = (unsigned char)text->bytes[i];

        putchar((c < 0x20 && c != '\n' && c != '\t') || c == 0x7f ? '?' : c);
    }
    if (text->size && text->bytes[text->size - 1] != '\n')
        putchar('\n');
}

static void push_print_text(const struct pushed_text *text)
{
    const char *hosts = strncmp(text->key, SERVICE " ", strlen(SERVICE " ")) == 0
                            ? text->key + strlen(SERVICE " ")
                            : "";
    const time_t written = (time_t)(text->written_ns / 1000000000);
    struct error error = {""};
    char when[32] = "";
    struct tm local;

    if (text->written_ns && localtime_r(&written, &local))
        (void)strftime(when, sizeof(when), ", written %Y-%m-%d %H:%M:%S", &local);
    fputs("# \"", stdout);
    push_print(stdout, text->key);
    printf("\" at offset %" PRId64 "%s\n", text->offset, when);
    if (!pushed_check_hosts(hosts, &error)) {
        puts("# no host takes it: its key is not \"" SERVICE " HOSTS\"");
    } else if (!pushed_check(SERVICE, "line", text->bytes, text->size, &error)) {
        fputs("# hosts refuse it: ", stdout);
        push_print(stdout, error.text);
        putchar('\n');
    }
    push_print_lines(text);
}

static int push_compare_keys(const void *a, const void *b)
{
    return strcmp(((const struct pushed_text *)a)->key, ((const struct pushed_text *)b)->key);
}

static int push_show(struct push *push, bool is_one)
{
    size_t shown = 0;

    qsort(push->found, push->count, sizeof(*push->found), push_compare_keys);
    for (size_t i = 0; i < push->count; i++) {
        const struct pushed_text *text = &push->found[i];

        if (!text->bytes || (is_one && strcmp(text->key, push->key) != 0))
            continue;
        if (shown++)
            putchar('\n');
        push_print_text(text);
    }
    if (!shown)
        fprintf(stderr, "%s: %s: no configuration is there: each host uses its own file\n",
                push->program, push->url.shown);
    return 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

struct delivery {
    bool is_done;
    rd_kafka_resp_err_t code;
    int64_t offset;
};

static void push_note_delivery(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context)
{
    struct delivery *delivery = context;

    (void)handle;
    *delivery = (struct delivery){true, message->err, message->offset};
}

static rd_kafka_t *push_open_producer(const struct push *push, struct delivery *delivery,
                                      struct error *error)
{
    static const char *const settings[][2] = {
        {"enable.idempotence", "true"}, /* implies acks=all */
        {"message.timeout.ms", DELIVER_MS},
        {"client.id", "blkin-config"},
        {"log_level", "0"},
        {NULL, NULL},
    };
    static const char *const reserved[] = {"enable.idempotence", "acks", NULL};
    const struct kafka_setup setup = {
        .url = &push->url,
        .file = push->kafka_file,
        .reserved = reserved,
        .settings = settings,
        .context = delivery,
        .delivered = push_note_delivery,
    };

    return kafka_open(RD_KAFKA_PRODUCER, &setup, error);
}

/* bytes is NULL: removes the key. */
static bool push_deliver(const struct push *push, rd_kafka_t *producer, const char *bytes,
                         size_t size, struct delivery *delivery, struct error *error)
{
    rd_kafka_resp_err_t code = rd_kafka_producev(
        producer, RD_KAFKA_V_TOPIC(push->url.topic), RD_KAFKA_V_PARTITION(0),
        RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_KEY(push->key, strlen(push->key)),
        RD_KAFKA_V_VALUE((void *)(uintptr_t)bytes, size), RD_KAFKA_V_END);

    if (!code)
        (void)rd_kafka_flush(producer, FLUSH_MS);
    if (!code)
        code = delivery->is_done ? delivery->code : RD_KAFKA_RESP_ERR__TIMED_OUT;
    if (code)
        kafka_describe(error, push->url.shown, code, rd_kafka_err2str(code));
    return !code;
}

static void push_take_setting(void *context, const char *key, const char *value)
{
    char *policy = context;

    if (strcmp(key, "cleanup.policy") == 0)
        (void)snprintf(policy, 64, "%s", value);
}

/* If a topic is not compacted, the brokers delete its oldest messages. */
static void push_check_topic(const struct push *push, rd_kafka_t *client)
{
    char policy[64] = "";

    if (kafka_settings(client, RD_KAFKA_RESOURCE_TOPIC, push->url.topic, push_take_setting,
                       policy) &&
        policy[0] && strcmp(policy, "compact") != 0)
        fprintf(stderr,
                "%s: %s is not compacted: the brokers will delete the configuration when it is "
                "old; run\n    kafka-configs.sh --bootstrap-server %s --alter --entity-type topics "
                "--entity-name %s --add-config cleanup.policy=compact\n",
                push->program, push->url.shown, push->url.brokers, push->url.topic);
}

static int push_write_message(const struct push *push, const char *bytes, size_t size)
{
    struct delivery delivery = {.is_done = false};
    struct error error = {""};
    rd_kafka_t *producer = push_open_producer(push, &delivery, &error);
    const bool is_written =
        producer && push_deliver(push, producer, bytes, size, &delivery, &error);

    if (!is_written)
        push_complain(push, error.text);
    else if (bytes)
        printf("%s: \"%s\" at offset %" PRId64 ": %zu bytes\n", push->url.shown, push->key,
               delivery.offset, size);
    else
        printf("%s: \"%s\" is removed\n", push->url.shown, push->key);
    if (is_written)
        push_check_topic(push, producer);
    if (producer) {
        (void)rd_kafka_purge(producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        rd_kafka_destroy(producer);
    }
    return is_written ? 0 : 1;
}

static int push_file(struct push *push, const char *path)
{
    struct error error = {""};
    size_t size = 0;
    char *bytes = config_file_read(path, &size, &error);
    int status = 1;

    if (bytes && pushed_check(SERVICE, path, bytes, size, &error) && push_read_topic(push, &error))
        status = push_write_message(push, bytes, size);
    else
        push_complain(push, error.text);
    free(bytes);
    return status;
}

static int push_remove_text(struct push *push)
{
    const struct pushed_text *found = push_find(push, push->key);

    if (found && found->bytes)
        return push_write_message(push, NULL, 0);
    fprintf(stderr, "%s: %s: there is no \"%s\"\n", push->program, push->url.shown, push->key);
    return 1;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static bool push_check_usage(struct push *push, const struct config *config, bool shows,
                             bool removes, struct error *error)
{
    const char *url = config_text(config, KEY);
    const int files = config_operands(config);
    struct error why;

    if ((shows && removes) || files != !(shows || removes))
        return error_set(error, "expected one FILE, --show or --remove");
    if (!url || !*url)
        return error_set(error,
                         KEY ": expected kafka://BROKER[,BROKER...]/TOPIC, as for the hosts");
    push->kafka_file = config_text(config, KAFKA_FILE);
    (void)snprintf(push->key, sizeof(push->key), SERVICE " %.*s", PUSHED_PATTERN_MAX,
                   push->hosts ? push->hosts : "*");
    if (push->hosts && !pushed_check_hosts(push->hosts, &why))
        return error_set(error, "--hosts: %s", why.text);
    return kafka_url_parse(&push->url, KEY, url, error);
}

static int push_run(struct push *push, const struct config *config, bool shows, bool removes)
{
    struct error error = {""};

    if (!push_check_usage(push, config, shows, removes, &error)) {
        push_complain(push, error.text);
        return 2;
    }
    if (!shows && !removes)
        return push_file(push, config_operand(config, 0));
    if (!push_read_topic(push, &error)) {
        push_complain(push, error.text);
        return 1;
    }
    return shows ? push_show(push, push->hosts != NULL) : push_remove_text(push);
}

int config_push(int argc, char *argv[], const char *usage)
{
    bool shows = false, removes = false;
    struct push *push = calloc(1, sizeof(*push));
    struct config *config = NULL;
    int status = 1;

    if (push) {
        const struct config_flag flags[] = {{"hosts", NULL, &push->hosts},
                                            {"show", &shows, NULL},
                                            {"remove", &removes, NULL},
                                            {NULL, NULL, NULL}};
        const struct config_request request = {SERVICE, usage, flags};

        push->program = argv[0];
        say_open(argv[0], "none"); /* our messages contain librdkafka's */
        config = config_read(&request, argc, argv, &status);
    }
    if (config)
        status = push_run(push, config, shows, removes);
    for (size_t i = 0; push && i < push->count; i++)
        pushed_text_clear(&push->found[i]);
    config_free(config);
    free(push);
    return status;
}

#endif
