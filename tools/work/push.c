/*
 * What all workers have counted, to a collector.
 *
 * The loop writes the messages of a round, a thread sends them, as it may wait for the network. No
 * child does: librdkafka's threads are there.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "push.h"

#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "babeltrace-plugin/encode/protocol.h"
#include "babeltrace-plugin/params.h"
#include "tools/base/say.h"
#include "tools/base/thread_job.h"
#include "tools/config/sink_params.h"
#include "tools/merged/fleet_deltas.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MS  10000
#define REQUEST_MS 5000
#define ROUND_MS   8000 /* no request begins later than this */

struct push_message {
    struct push_message *next;
    size_t length;
    char data[];
};

struct push_result {
    uint64_t requests;
    bool is_taken;
    char problem[512]; /* "": none, or what the collector had to say */
};

struct push {
    struct loop *loop;
    const struct config *config;
    const struct merged *merged;
    uint64_t requests, failed; /* rounds, the latter */
    bool has_worked;           /* the last round has */
    char problem[512];         /* of the last round; "": none */
    struct timer timer;
    struct thread_job job;
    struct push_message *messages; /* of the round, as they were when it began */
    struct push_result result;     /* and what became of them */
};

/* ---- the thread: config does not change while it runs ---------------------------------------- */

/* As of spans: an answer may be 200, and refuse a part. */
static struct protocol push_protocol(void)
{
    struct protocol protocol = otlp_protocol;

    protocol.peer = "a collector of OTLP metrics";
    protocol.path = "/v1/metrics";
    return protocol;
}

/* The sink's own parameters of TLS, credentials and compression, to another endpoint. */
static struct transport *push_open_transport(const struct config *config,
                                             const struct protocol *protocol, struct error *error)
{
    struct transport *transport = NULL;
    struct params params;

    if (config_sink_params(config, &params, error)) {
        struct transport_options *options = &params.exporter.transport;

        options->endpoint = config_text(config, "otlp-metrics");
        options->protocol = protocol;
        options->request_timeout_ms = REQUEST_MS;
        transport = http_transport_open(options, error);
    }
    return transport;
}

static bool push_send_message(struct transport *transport, const struct push_message *message,
                              struct push_result *result)
{
    const struct text text = {message->data, message->length};
    const struct payload payload = {.text = text, .spans = text};
    struct reply reply = {.delivery = DELIVERY_ACCEPTED};

    transport->send(transport, &payload, &reply);
    result->requests++;
    if (reply.delivery == DELIVERY_ACCEPTED)
        return true;
    (void)snprintf(result->problem, sizeof(result->problem), "%.500s", reply.error.text);
    return false;
}

static bool push_send_all(struct transport *transport, const struct push *push,
                          struct push_result *result)
{
    const int64_t until_ms = clock_ms() + ROUND_MS;

    for (const struct push_message *m = push->messages; m; m = m->next) {
        if (clock_ms() > until_ms) {
            (void)snprintf(result->problem, sizeof(result->problem), "no answer in time");
            return false;
        }
        if (!push_send_message(transport, m, result))
            return false;
    }
    return true;
}

static void push_send_round(void *context)
{
    struct push *push = context;
    const struct protocol protocol = push_protocol();
    struct error error = {""};
    struct transport *transport = push_open_transport(push->config, &protocol, &error);

    push->result = (struct push_result){.is_taken = false};
    if (!transport) {
        (void)snprintf(push->result.problem, sizeof(push->result.problem), "%.500s", error.text);
        return;
    }
    push->result.is_taken = push_send_all(transport, push, &push->result);
    transport->free(transport);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static void push_free_messages(struct push *push)
{
    while (push->messages) {
        struct push_message *message = push->messages;

        push->messages = message->next;
        free(message);
    }
}

static bool push_add_message(void *context, const char *data, size_t length)
{
    struct push_message ***end = context;
    struct push_message *message = malloc(sizeof(*message) + length);

    if (!message)
        return false;
    message->next = NULL;
    message->length = length;
    memcpy(message->data, data, length);
    **end = message;
    *end = &message->next;
    return true;
}

/* Returns false when out of memory. */
static bool push_write_messages(const struct merged *merged, struct push *push)
{
    struct push_message **end = &push->messages;
    struct buffer buffer = {0};
    struct deltas_head head = {
        .start_ns = merged->from_ns, .end_ns = merged->to_ns, .is_cumulative = true};
    struct names *names = names_new(2, 1);
    struct statistics *none = names ? statistics_new(names) : NULL;
    bool done = none != NULL;

    (void)snprintf(head.instance, sizeof(head.instance), "root");
    for (size_t i = 0; done && i < merged->worker_count; i++) {
        struct deltas_head one = head;

        if (!worker_is_there(&merged->workers[i], merged->to_ns))
            continue;
        (void)snprintf(one.instance, sizeof(one.instance), "%s", merged->workers[i].instance);
        one.counts = merged->workers[i].counts;
        done = deltas_write(&one, none, &buffer, push_add_message, &end);
    }
    head.is_without_counts = true;
    done = done && deltas_write(&head, merged->statistics, &buffer, push_add_message, &end) &&
           fleet_deltas_write(&head, merged->fleet, &buffer, push_add_message, &end);
    buffer_free(&buffer);
    statistics_free(none);
    names_free(names);
    return done;
}

static void push_end_round(void *context)
{
    struct push *push = context;
    const struct push_result *told = &push->result;

    push_free_messages(push);
    push->requests += told->requests;
    push->failed += !told->is_taken;
    if (!told->is_taken && (push->has_worked || !push->problem[0]))
        say(BK7030, "otlp-metrics: %s: the next request has all counts", told->problem);
    else if (told->is_taken && !push->has_worked)
        say(BK7031, "otlp-metrics: the collector takes them");
    push->has_worked = told->is_taken;
    (void)snprintf(push->problem, sizeof(push->problem), "%s", told->problem);
}

static void push_begin_round(void *context)
{
    struct push *push = context;

    timer_set(push->loop, &push->timer, PERIOD_MS);
    if (push->merged->to_ns == 0 || push->job.is_running) /* there is nothing yet */
        return;
    if (push_write_messages(push->merged, push) && thread_job_start(push->loop, &push->job))
        return;
    say(BK7032, "otlp-metrics: cannot send: %s", strerror(errno));
    push_free_messages(push);
}

void push_status(const struct push *push, json_t *status)
{
    (void)json_object_set_new(status, "pushed", json_integer((json_int_t)push->requests));
    (void)json_object_set_new(status, "push_failed", json_integer((json_int_t)push->failed));
    (void)json_object_set_new(status, "push_error", json_string(push->problem));
}

void push_close(struct push *push)
{
    if (!push)
        return;
    thread_job_end(&push->job);
    push_free_messages(push);
    free(push);
}

/* Whether the configuration is right: each round opens a transport of its own. */
static bool push_check(const struct config *config, struct error *error)
{
    const struct protocol protocol = push_protocol();
    const char *url = config_text(config, "otlp-metrics");
    struct transport *transport;
    struct error cause = {""};

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0)
        return error_set(error, "otlp-metrics \"%.200s\": expected http://HOST:4318/v1/metrics",
                         url);
    transport = push_open_transport(config, &protocol, &cause);
    if (!transport)
        return error_set(error, "otlp-metrics: %.900s", cause.text);
    if (transport->warning)
        say(BK7033, "otlp-metrics: %s", transport->warning);
    transport->free(transport);
    return true;
}

struct push *push_open(struct loop *loop, const struct config *config, const struct merged *merged,
                       struct error *error)
{
    struct push *push;

    if (!push_check(config, error))
        return NULL;
    error_set(error, "out of memory");
    push = calloc(1, sizeof(*push));
    if (!push)
        return NULL;
    *push = (struct push){.loop = loop, .config = config, .merged = merged};
    push->timer = (struct timer){.due = push_begin_round, .context = push};
    push->job =
        (struct thread_job){.run = push_send_round, .done = push_end_round, .context = push};
    timer_set(loop, &push->timer, 1000);
    return push;
}
