/*
 * What all workers have counted, to a collector.
 *
 * A child sends: so it has all as it is at one time, and may wait for the network.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "push.h"

#include "account/printer.h"
#include "fleet_deltas.h"
#include "output/http_url.h"
#include "output/protocol.h"
#include "params.h"
#include "service/say.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define PERIOD_MS  10000
#define REQUEST_MS 5000
#define ROUND_MS   8000 /* of all requests; then the child is killed */

/* ---- in the child ---------------------------------------------------------------------------- */

/* As of spans: an answer may be 200, and refuse a part. */
static struct protocol metrics_protocol(void)
{
    struct protocol protocol = otlp_protocol;

    protocol.peer = "a collector of OTLP metrics";
    protocol.path = "/v1/metrics";
    return protocol;
}

/* The sink's own parameters of TLS, credentials and compression, to another endpoint. */
static struct transport *open_transport(const struct config *config,
                                        const struct protocol *protocol, struct error *error)
{
    bt_value *map = config_sink_params(config);
    struct transport *transport = NULL;
    struct params params;

    error_set(error, "out of memory");
    if (map && params_read(&params, map, error)) {
        struct transport_options *options = &params.exporter.transport;

        options->endpoint = config_text(config, "otlp-metrics");
        options->protocol = protocol;
        options->request_timeout_ms = REQUEST_MS;
        transport = http_transport_open(options, error);
    }
    bt_value_put_ref(map);
    return transport;
}

struct sending {
    struct transport *transport;
    struct push_result *result;
};

static bool send_message(void *context, const char *data, size_t length)
{
    const struct sending *sending = context;
    const struct payload payload = {.text = {data, length}, .spans = {data, length}};
    struct reply reply = {.delivery = DELIVERY_ACCEPTED};

    sending->transport->send(sending->transport, &payload, &reply);
    sending->result->requests++;
    if (reply.delivery == DELIVERY_ACCEPTED)
        return true;
    (void)snprintf(sending->result->problem, sizeof(sending->result->problem), "%.500s",
                   reply.error.text);
    return false;
}

static bool send_all(const struct merged *merged, struct sending *sending)
{
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
        done = deltas_write(&one, none, &buffer, send_message, sending);
    }
    head.is_without_counts = true;
    done = done && deltas_write(&head, merged->statistics, &buffer, send_message, sending) &&
           fleet_deltas_write(&head, merged->fleet, &buffer, send_message, sending);
    buffer_free(&buffer);
    if (none)
        statistics_free(none);
    if (names)
        names_free(names);
    return done;
}

static bool send_round(const void *argument, void *result)
{
    const struct push *push = argument;
    const struct protocol protocol = metrics_protocol();
    struct push_result *told = result;
    struct error error = {""};
    struct sending sending = {open_transport(push->config, &protocol, &error), told};

    if (!sending.transport) {
        (void)snprintf(told->problem, sizeof(told->problem), "%.500s", error.text);
        return true;
    }
    told->is_taken = send_all(push->merged, &sending);
    sending.transport->free(sending.transport);
    return true;
}

/* ---- in the service -------------------------------------------------------------------------- */

static void end_round(void *context, const void *result)
{
    static const struct push_result none = {.problem = "no answer in time"};
    const struct push_result *told = result ? result : &none;
    struct push *push = context;

    push->requests += told->requests;
    push->failed += !told->is_taken;
    if (!told->is_taken && (push->has_worked || !push->problem[0]))
        say(BT_LOGGING_LEVEL_WARNING, "otlp-metrics: %s: what is sent next has it all",
            told->problem);
    else if (told->is_taken && !push->has_worked)
        say(BT_LOGGING_LEVEL_INFO, "otlp-metrics: they are taken");
    push->has_worked = told->is_taken;
    (void)snprintf(push->problem, sizeof(push->problem), "%s", told->problem);
}

static void begin_round(void *context)
{
    struct push *push = context;

    timer_set(push->loop, &push->timer, PERIOD_MS);
    push->task.done = end_round;
    push->task.context = push;
    if (push->merged->to_ns == 0) /* there is nothing yet */
        return;
    if (!task_start(push->loop, &push->task, send_round, push, sizeof(struct push_result),
                    ROUND_MS))
        say(BT_LOGGING_LEVEL_WARNING, "otlp-metrics: no process to send: %s", strerror(errno));
}

bool push_open(struct push *push, struct error *error)
{
    const struct protocol protocol = metrics_protocol();
    const char *url = config_text(push->config, "otlp-metrics");
    struct transport *transport;
    struct error cause = {""};

    if (strncmp(url, "http://", 7) != 0 && strncmp(url, "https://", 8) != 0) {
        error_set(error, "otlp-metrics \"%.200s\": expected http://HOST:4318/v1/metrics", url);
        return false;
    }
    transport = open_transport(push->config, &protocol, &cause);
    if (!transport) {
        error_set(error, "otlp-metrics: %.900s", cause.text);
        return false;
    }
    if (transport->warning)
        say(BT_LOGGING_LEVEL_WARNING, "otlp-metrics: %s", transport->warning);
    transport->free(transport);
    push->timer = (struct timer){.due = begin_round, .context = push};
    timer_set(push->loop, &push->timer, 1000);
    return true;
}
