/*
 * The exchange: what becomes of messages on their way to the hub, and of those from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "exchange.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "exchange_parts.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define HOSTS_MAX 16384
#define FORMER_MS 30000

/* ---- posting --------------------------------------------------------------------------------- */

static char *text_of(struct exchange *exchange, const json_t *message, struct error *error)
{
    json_t *copy = json_copy((json_t *)(uintptr_t)message);
    char post[POST_MAX + 1];
    char *text = NULL;

    (void)snprintf(post, sizeof(post), "%s:%s:%" PRIu64, exchange->host, exchange->agent,
                   ++exchange->last_post);
    error_set(error, "out of memory");
    if (copy && json_object_set_new(copy, "post", json_string(post)) == 0 &&
        message_check(copy, error))
        text = json_dumps(copy, JSON_COMPACT);
    json_decref(copy);
    return text;
}

void exchange_post(struct exchange *exchange, const json_t *message)
{
    struct error error = {""};
    size_t length;
    char *text;

    if (!exchange->http)
        return;
    text = text_of(exchange, message, &error);
    length = text ? strlen(text) : 0;
    if (length > MESSAGE_MAX - HELD_ROOM - 2) { /* with the brackets around it */
        error_set(&error, "it has %zu bytes, more than %u", length, MESSAGE_MAX - HELD_ROOM - 2);
        free(text);
        text = NULL;
    }
    if (text) {
        exchange_http_post(exchange->http, text, length);
        return;
    }
    exchange->dropped++;
    say(BK4060, "a message for other hosts is not posted: %s", error.text);
}

/* ---- what the client tells ------------------------------------------------------------------- */

static bool is_for_us(const struct exchange *exchange, const json_t *message)
{
    const char *to = message_text(message, "to");

    return strcmp(message_text(message, "host"), exchange->host) != 0 &&
           (!*to || strcmp(to, exchange->host) == 0);
}

void exchange_received(struct exchange *exchange, const json_t *message)
{
    struct error error;

    if (!message_check(message, &error)) {
        if (exchange->malformed++ == 0)
            say(BK4061, "%s: a message of a wrong form: %s", exchange->url, error.text);
        return;
    }
    if (is_for_us(exchange, message) &&
        !message_seen_before(&exchange->seen, message, clock_ms())) {
        exchange->received++;
        exchange->callbacks.message(exchange->callbacks.context, message);
    }
}

void exchange_capped(struct exchange *exchange, const json_t *request, const json_t *traces)
{
    json_t *message =
        json_pack("{ss, ss, ss, sO}", "type", "dropped", "id", message_text(request, "id"), "host",
                  exchange->host, "traces", (json_t *)(uintptr_t)traces);

    exchange->dropped_traces += json_array_size(traces);
    if (message)
        exchange->callbacks.message(exchange->callbacks.context, message);
    json_decref(message);
}

void exchange_state(struct exchange *exchange, const char *problem)
{
    const bool is_connected = problem == NULL;

    if (is_connected == exchange->is_connected &&
        (is_connected || strcmp(problem, exchange->problem) == 0))
        return;
    if (is_connected != exchange->is_connected)
        exchange->since_ns = wall_clock_ns();
    exchange->is_connected = is_connected;
    (void)snprintf(exchange->problem, sizeof(exchange->problem), "%s", problem ? problem : "");
    if (is_connected)
        say(BK4062, "%s: connected", exchange->url);
    else
        say(BK4063, "other hosts are not reached: %s", problem);
}

static bool has_host(const json_t *hosts, const json_t *host)
{
    const json_t *one;
    size_t i;

    json_array_foreach(hosts, i, one)
    {
        if (json_equal(one, host))
            return true;
    }
    return false;
}

static void add_hosts(const struct exchange *exchange, json_t *known, const json_t *hosts)
{
    json_t *host;
    size_t i;

    json_array_foreach(hosts, i, host)
    {
        const char *name = json_string_value(host);

        if (name && message_is_host(name) && strcmp(name, exchange->host) != 0 &&
            json_array_size(known) < HOSTS_MAX)
            (void)json_array_append(known, host);
    }
}

static void make_hosts(struct exchange *exchange)
{
    json_t *known = json_pack("[s]", exchange->host);
    json_t *host;
    size_t i;

    if (!known)
        return;
    add_hosts(exchange, known, exchange->told);
    json_array_foreach(exchange->former, i, host)
    {
        if (!has_host(exchange->told, host) && i > 0) /* the first is our own */
            (void)json_array_append(known, host);
    }
    json_decref(exchange->hosts);
    exchange->hosts = known;
}

void exchange_hosts(struct exchange *exchange, const json_t *hosts)
{
    json_decref(exchange->told);
    exchange->told = json_incref((json_t *)(uintptr_t)hosts);
    make_hosts(exchange);
}

void exchange_hosts_may_change(struct exchange *exchange)
{
    json_decref(exchange->former);
    exchange->former = json_incref(exchange->hosts);
    exchange->former_until_ms = clock_ms() + FORMER_MS;
}

bool exchange_hosts_are_back(struct exchange *exchange)
{
    const json_t *host;
    size_t i;

    if (clock_ms() < exchange->former_until_ms) {
        json_array_foreach(exchange->former, i, host)
        {
            if (i > 0 && !has_host(exchange->told, host))
                return false;
        }
    }
    if (exchange->former) {
        json_decref(exchange->former);
        exchange->former = NULL;
        make_hosts(exchange);
    }
    return true;
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static bool open_hub(struct exchange *exchange, const struct config *config, struct error *error)
{
    const char *url = config_text(config, "hub");

    if (!url || !*url)
        return true;
    if (strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0)
        exchange->http = exchange_http_open(exchange, config, error);
    else
        error_set(error, "hub: expected http://HOST:PORT or https://HOST:PORT");
    return exchange->http != NULL;
}

struct exchange *exchange_open(struct loop *loop, const struct config *config, const char *host,
                               const struct exchange_callbacks *callbacks, struct error *error)
{
    struct exchange *exchange;
    uint64_t agent = 0;

    if (!message_is_host(host)) {
        error_set(error,
                  "host \"%.64s\": expected a name of letters, digits, '.', '-' and '_' for other "
                  "hosts to know this one by",
                  host);
        return NULL;
    }
    error_set(error, "out of memory");
    exchange = calloc(1, sizeof(*exchange));
    if (!exchange)
        return NULL;
    exchange->loop = loop;
    exchange->callbacks = *callbacks;
    exchange->seen.keep_ms = 2 * EXCHANGE_KEEP_MS;
    exchange->since_ns = wall_clock_ns();
    (void)snprintf(exchange->host, sizeof(exchange->host), "%s", host);
    if (getrandom(&agent, sizeof(agent), 0) < 0)
        agent = (uint64_t)wall_clock_ns();
    (void)snprintf(exchange->agent, sizeof(exchange->agent), "%016" PRIx64, agent);
    exchange_hosts(exchange, NULL);
    if (exchange->hosts && open_hub(exchange, config, error))
        return exchange;
    exchange_close(exchange);
    return NULL;
}

void exchange_close(struct exchange *exchange)
{
    if (!exchange)
        return;
    if (exchange->http)
        exchange_http_close(exchange->http);
    seen_clear(&exchange->seen);
    json_decref(exchange->hosts);
    json_decref(exchange->told);
    json_decref(exchange->former);
    free(exchange);
}

json_t *exchange_json(const struct exchange *exchange)
{
    return json_pack("{ss, ss, so, ss, sO, sI, sI, sI, sI, sI, sI}", "url", exchange->url, "state",
                     !exchange->http || exchange->is_connected ? "connected" : "away", "since",
                     json_time(exchange->since_ns), "error", exchange->problem, "hosts",
                     exchange->hosts, "posted", (json_int_t)exchange->posted, "received",
                     (json_int_t)exchange->received, "dropped", (json_int_t)exchange->dropped,
                     "dropped_traces", (json_int_t)exchange->dropped_traces, "refused",
                     (json_int_t)exchange->refused, "malformed", (json_int_t)exchange->malformed);
}
