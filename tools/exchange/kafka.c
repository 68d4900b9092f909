/*
 * The exchange through a topic of Kafka, where there is a broker already: librdkafka's threads
 * speak to it, and wake our loop.
 *
 * All is in partition 0: messages are few and small (the brokers' cap is ours), and so none comes
 * before one that it answers. Each recorder reads the topic from its end, in no group: all get all,
 * and what is for others is dropped here. Nobody tells who is there: each says so itself ("hello").
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "exchange_parts.h"

#ifndef HAS_KAFKA

struct backend *exchange_kafka_open(struct exchange *exchange, const struct config *config,
                                    struct error *error)
{
    (void)exchange;
    (void)config;
    error_set(error, "hub: kafka:// is not in this build: build it with librdkafka, or use "
                     "`blkin hub`");
    return NULL;
}

#else

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/kafka_conf.h"
#include "tools/base/say.h"
#include "tools/kafka/kafka_log.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FILE_KEY      "hub-kafka-file"
#define PARTITION     0
#define HELLO_MS      10000
#define HELLO_MIN_MS  1000 /* also when others come: they want to know of us */
#define HOST_GRACE_MS 30000
#define HOSTS_MAX     16384
#define BATCH         256 /* messages that are worked on before others have their turn */
#define FLUSH_MS      1000

struct kafka {
    struct backend base;
    struct exchange *exchange;
    struct loop *loop;
    struct kafka_url url;
    rd_kafka_t *producer, *consumer;
    rd_kafka_topic_t *topic;
    rd_kafka_queue_t *messages;
    struct watched watched; /* an eventfd that librdkafka writes to */
    struct timer look, hello;
    json_t *hosts;   /* name: when it was heard of last, ms */
    int64_t said_ms; /* when we have said hello */
    bool is_saying;  /* it is on its way */
};

/* ---- who is there ---------------------------------------------------------------------------- */

static void say_hello(void *context);

static void tell_hosts(const struct kafka *kafka)
{
    json_t *names = json_array(), *seen;
    const char *name;

    json_object_foreach(kafka->hosts, name, seen)(void)
        json_array_append_new(names, json_string(name));
    exchange_hosts(kafka->exchange, names);
    json_decref(names);
}

static void hear_of(struct kafka *kafka, const char *host)
{
    const bool is_new = !json_object_get(kafka->hosts, host);

    if (!message_is_host(host) || strcmp(host, kafka->exchange->host) == 0 ||
        (is_new && json_object_size(kafka->hosts) >= HOSTS_MAX))
        return;
    (void)json_object_set_new(kafka->hosts, host, json_integer(clock_ms()));
    if (!is_new)
        return;
    tell_hosts(kafka);
    if (clock_ms() - kafka->said_ms >= HELLO_MIN_MS)
        timer_set(kafka->loop, &kafka->hello, 0);
}

static void forget_hosts(struct kafka *kafka)
{
    const size_t before = json_object_size(kafka->hosts);
    json_t *seen;
    const char *name;
    void *next;

    json_object_foreach_safe(kafka->hosts, next, name, seen)
    {
        if (clock_ms() - json_integer_value(seen) > HOST_GRACE_MS)
            (void)json_object_del(kafka->hosts, name);
    }
    if (json_object_size(kafka->hosts) != before)
        tell_hosts(kafka);
}

/* ---- posting --------------------------------------------------------------------------------- */

/* What a delivery report is of. */
static char a_message, a_hello;

static bool produce(struct kafka *kafka, char *text, size_t length, char *what)
{
    return rd_kafka_producev(
               kafka->producer, RD_KAFKA_V_TOPIC(kafka->url.topic), RD_KAFKA_V_PARTITION(PARTITION),
               RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY), RD_KAFKA_V_VALUE(text, length),
               RD_KAFKA_V_OPAQUE(what), RD_KAFKA_V_END) == RD_KAFKA_RESP_ERR_NO_ERROR;
}

static void kafka_post(struct backend *backend, char *text, size_t length)
{
    struct kafka *kafka = (struct kafka *)backend;

    if (!produce(kafka, text, length, &a_message)) {
        if (kafka->exchange->dropped++ == 0)
            say(BT_LOGGING_LEVEL_WARNING,
                "messages for other hosts are dropped: the broker has been away for too long");
    }
    free(text);
}

static void say_hello(void *context)
{
    struct kafka *kafka = context;
    char text[MESSAGE_HOST_MAX + 64];

    timer_set(kafka->loop, &kafka->hello, HELLO_MS);
    if (kafka->is_saying)
        return;
    (void)snprintf(text, sizeof(text), "{\"type\":\"hello\",\"host\":\"%s\"}",
                   kafka->exchange->host);
    kafka->is_saying = produce(kafka, text, strlen(text), &a_hello);
    kafka->said_ms = clock_ms();
}

static void set_problem(struct kafka *kafka, rd_kafka_resp_err_t code, const char *what)
{
    struct error problem;

    kafka_describe(&problem, kafka->exchange->url, code, what, FILE_KEY);
    exchange_state(kafka->exchange, problem.text);
}

/* In rd_kafka_poll(), as the next one. */
static void delivered(rd_kafka_t *handle, const rd_kafka_message_t *message, void *context)
{
    struct kafka *kafka = context;

    (void)handle;
    if (message->_private == &a_hello)
        kafka->is_saying = false;
    if (message->err == RD_KAFKA_RESP_ERR_NO_ERROR) {
        kafka->exchange->posted += message->_private == &a_message;
        exchange_state(kafka->exchange, NULL);
        return;
    }
    if (message->_private == &a_message && message->err == RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE)
        kafka->exchange->refused++;
    else if (message->_private == &a_message)
        kafka->exchange->dropped++;
    if (message->err != RD_KAFKA_RESP_ERR__MSG_TIMED_OUT) /* why, was said before */
        set_problem(kafka, message->err, rd_kafka_err2str(message->err));
}

static void has_error(rd_kafka_t *handle, int code, const char *reason, void *context)
{
    struct kafka *kafka = context;

    (void)handle;
    set_problem(kafka, (rd_kafka_resp_err_t)code, reason);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void take_message(struct kafka *kafka, const rd_kafka_message_t *message)
{
    json_t *json;

    if (message->err == RD_KAFKA_RESP_ERR__PARTITION_EOF)
        return;
    if (message->err) {
        set_problem(kafka, message->err, rd_kafka_message_errstr(message));
        return;
    }
    json = message->len <= MESSAGE_MAX ? json_loadb(message->payload, message->len, 0, NULL) : NULL;
    hear_of(kafka, message_text(json, "host"));
    if (strcmp(message_text(json, "type"), "hello") != 0)
        exchange_received(kafka->exchange, json);
    json_decref(json);
}

static void look(void *context)
{
    struct kafka *kafka = context;
    rd_kafka_message_t *message;
    int count = 0;

    (void)rd_kafka_poll(kafka->producer, 0);
    (void)rd_kafka_poll(kafka->consumer, 0);
    while (count++ < BATCH && (message = rd_kafka_consume_queue(kafka->messages, 0))) {
        take_message(kafka, message);
        rd_kafka_message_destroy(message);
    }
    forget_hosts(kafka);
    timer_set(kafka->loop, &kafka->look, count > BATCH ? 0 : 1000);
}

static void ready(void *context, short events)
{
    struct kafka *kafka = context;
    uint64_t ignored;

    (void)events;
    (void)!read(kafka->watched.fd, &ignored, sizeof(ignored));
    look(kafka);
}

/* ---- opening --------------------------------------------------------------------------------- */

static rd_kafka_conf_t *make_conf(struct kafka *kafka, const struct config *config,
                                  bool is_producer, struct error *error)
{
    static const char *const producers[][2] = {
        {"enable.idempotence", "true"}, /* and acks=all: in order, once, kept */
        {"message.timeout.ms", "60000"},
        {"queue.buffering.max.kbytes", "16384"},
        {"queue.buffering.max.messages", "100000"},
        {"message.max.bytes", "1100000"},
        {"linger.ms", "1"},
    };
    static const char *const both[][2] = {{"client.id", "blkin-record"},
                                          {"log.queue", "true"},
                                          {"reconnect.backoff.max.ms", "2000"},
                                          {"socket.keepalive.enable", "true"}};
    rd_kafka_conf_t *conf = rd_kafka_conf_new();

    if (!kafka_conf_set(conf, both, sizeof(both) / sizeof(both[0]), "hub", error) ||
        (is_producer && !kafka_conf_set(conf, producers, sizeof(producers) / sizeof(producers[0]),
                                        "hub", error)) ||
        !kafka_conf_set_url(conf, &kafka->url, "hub", FILE_KEY, NULL, error) ||
        !kafka_conf_set_file(conf, config_text(config, FILE_KEY), FILE_KEY, NULL, error)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_opaque(conf, kafka);
    rd_kafka_conf_set_error_cb(conf, has_error);
    rd_kafka_conf_set_log_cb(conf, kafka_log_line);
    if (is_producer)
        rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    return conf;
}

static rd_kafka_t *make_handle(struct kafka *kafka, const struct config *config,
                               rd_kafka_type_t type, struct error *error)
{
    rd_kafka_conf_t *conf = make_conf(kafka, config, type == RD_KAFKA_PRODUCER, error);
    rd_kafka_t *handle = NULL;
    char cause[256];

    if (!conf)
        return NULL;
    handle = rd_kafka_new(type, conf, cause, sizeof(cause));
    if (!handle) {
        rd_kafka_conf_destroy(conf);
        error_set(error, FILE_KEY ": %s", cause);
        return NULL;
    }
    (void)rd_kafka_set_log_queue(handle,
                                 NULL); /* so that kafka_log_line() is called in our thread */
    return handle;
}

/* The loop is woken when there is something in a queue that was empty. */
static void watch_queue(const struct kafka *kafka, rd_kafka_queue_t *queue)
{
    static const uint64_t one = 1;

    rd_kafka_queue_io_event_enable(queue, kafka->watched.fd, &one, sizeof(one));
}

static void watch_main_queue(const struct kafka *kafka, rd_kafka_t *handle)
{
    rd_kafka_queue_t *queue = rd_kafka_queue_get_main(handle);

    watch_queue(kafka, queue);
    rd_kafka_queue_destroy(queue);
}

static bool start_reading(struct kafka *kafka, struct error *error)
{
    kafka->messages = rd_kafka_queue_new(kafka->consumer);
    kafka->topic = rd_kafka_topic_new(kafka->consumer, kafka->url.topic, NULL);
    if (kafka->messages && kafka->topic &&
        rd_kafka_consume_start_queue(kafka->topic, PARTITION, RD_KAFKA_OFFSET_END,
                                     kafka->messages) == 0)
        return true;
    error_set(error, "hub: topic \"%s\": %s", kafka->url.topic,
              rd_kafka_err2str(rd_kafka_last_error()));
    return false;
}

static void kafka_close(struct backend *backend)
{
    struct kafka *kafka = (struct kafka *)backend;

    timer_clear(kafka->loop, &kafka->look);
    timer_clear(kafka->loop, &kafka->hello);
    if (kafka->watched.fd >= 0)
        loop_unwatch(kafka->loop, &kafka->watched);
    if (kafka->producer) {
        (void)rd_kafka_flush(kafka->producer, FLUSH_MS);
        (void)rd_kafka_purge(kafka->producer, RD_KAFKA_PURGE_F_QUEUE | RD_KAFKA_PURGE_F_INFLIGHT);
        (void)rd_kafka_poll(kafka->producer, 0);
        rd_kafka_destroy(kafka->producer);
    }
    if (kafka->topic) {
        (void)rd_kafka_consume_stop(kafka->topic, PARTITION);
        rd_kafka_topic_destroy(kafka->topic);
    }
    if (kafka->messages)
        rd_kafka_queue_destroy(kafka->messages);
    if (kafka->consumer)
        rd_kafka_destroy(kafka->consumer);
    if (kafka->watched.fd >= 0)
        close(kafka->watched.fd);
    json_decref(kafka->hosts);
    free(kafka);
}

struct backend *exchange_kafka_open(struct exchange *exchange, const struct config *config,
                                    struct error *error)
{
    struct kafka *kafka = calloc(1, sizeof(*kafka));

    error_set(error, "out of memory");
    if (!kafka)
        return NULL;
    kafka->base = (struct backend){kafka_post, kafka_close};
    kafka->exchange = exchange;
    kafka->loop = exchange->loop;
    kafka->look = (struct timer){.due = look, .context = kafka};
    kafka->hello = (struct timer){.due = say_hello, .context = kafka};
    kafka->watched =
        (struct watched){eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), POLLIN, ready, kafka, NULL};
    kafka->hosts = json_object();
    exchange->has_cap = true;
    cap_open(&exchange->cap, config_integer(config, "hub-traces-per-s"), clock_ms());
    if (kafka->watched.fd < 0 || !kafka->hosts ||
        !kafka_url_parse(&kafka->url, "hub", FILE_KEY, config_text(config, "hub"), error) ||
        !(kafka->producer = make_handle(kafka, config, RD_KAFKA_PRODUCER, error)) ||
        !(kafka->consumer = make_handle(kafka, config, RD_KAFKA_CONSUMER, error)) ||
        !start_reading(kafka, error)) {
        kafka_close(&kafka->base);
        return NULL;
    }
    (void)snprintf(exchange->url, sizeof(exchange->url), "kafka://%.700s/%s", kafka->url.brokers,
                   kafka->url.topic);
    loop_watch(kafka->loop, &kafka->watched);
    watch_main_queue(kafka, kafka->producer);
    watch_main_queue(kafka, kafka->consumer);
    watch_queue(kafka, kafka->messages);
    say_hello(kafka);
    look(kafka);
    return &kafka->base;
}

#endif
