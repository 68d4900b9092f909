/*
 * A broker refuses the password while the Kafka transport has messages in flight. These messages
 * get their reports. Later messages go through another handle of librdkafka. The broker is
 * librdkafka's mock; the test makes the refusal.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/deliver/transport.h"
#include "babeltrace-plugin/encode/encoder.h"
#include "check.h"

#include <stdio.h>

#ifdef HAS_KAFKA

#include <dlfcn.h>
#include <librdkafka/rdkafka.h>
#include <unistd.h>

#define LIMIT_S 200

typedef void error_fn(rd_kafka_t *handle, int code, const char *reason, void *context);

static error_fn *note_error; /* the transport's */
static void *note_context;
static bool refuses; /* the next rd_kafka_poll() reports a refusal */

static void *real(const char *name)
{
    void *found = dlsym(RTLD_NEXT, name);

    if (!found)
        abort();
    return found;
}

void rd_kafka_conf_set_error_cb(rd_kafka_conf_t *conf, error_fn *callback)
{
    void (*set)(rd_kafka_conf_t *, error_fn *);
    void *const found = real("rd_kafka_conf_set_error_cb");

    memcpy(&set, &found, sizeof(found));
    note_error = callback;
    set(conf, callback);
}

int rd_kafka_poll(rd_kafka_t *handle, int timeout_ms)
{
    int (*poll)(rd_kafka_t *, int);
    void *const found = real("rd_kafka_poll");

    memcpy(&poll, &found, sizeof(found));
    if (refuses) {
        refuses = false;
        note_error(handle, RD_KAFKA_RESP_ERR__AUTHENTICATION, "no such password", note_context);
    }
    return poll(handle, timeout_ms);
}

int main(void)
{
    const struct transport_options options = {
        .protocol = &zipkin_protocol,
        .endpoint = "kafka://127.0.0.1/t?test.mock.num.brokers=1&log_level=0",
        .request_timeout_ms = 60000,
        .compression = COMPRESSION_NONE,
    };
    struct payload payload = {.text = {"[]", 2}, .stays = true};
    struct error error;
    struct transport *transport = kafka_transport_open(&options, &error);
    struct transport_reply replies[3] = {{0}}, reply;

    if (!transport) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    alarm(LIMIT_S); /* await() must return */
    note_context = transport;
    transport->probe(transport, &reply);
    CHECK(reply.outcome == OUTCOME_ACCEPTED && reply.error.text[0] == '\0');
    CHECK(transport->partitions == 4 && !transport->warning); /* the mock makes 4 */
    payload.partitions = transport->partitions;
    transport->send(transport, &payload, &replies[0]);
    refuses = true;
    transport->send(transport, &payload, &replies[1]); /* notices the refusal */
    transport->send(transport, &payload, &replies[2]);
    transport->await(transport);
    CHECK(replies[0].outcome == OUTCOME_ACCEPTED && replies[1].outcome == OUTCOME_ACCEPTED);
    CHECK(replies[2].outcome == OUTCOME_AGAIN && !replies[2].is_misplaced);
    CHECK(!replies[2].may_be_batch && replies[2].retry_after_ms == 0 && replies[2].rejected == 0);
    CHECK(strstr(replies[2].error.text, "no such password") != NULL);
    transport->probe(transport, &reply);
    payload.partitions = transport->partitions + 1;
    transport->send(transport, &payload, &reply);
    CHECK(reply.outcome == OUTCOME_AGAIN && reply.is_misplaced);
    payload.partitions = transport->partitions;
    transport->send(transport, &payload, &reply);
    transport->await(transport);
    CHECK(reply.outcome == OUTCOME_ACCEPTED);
    transport->free(transport);
    return check_status();
}

#else

int main(void)
{
    puts("this build is without librdkafka");
    return 77;
}

#endif
