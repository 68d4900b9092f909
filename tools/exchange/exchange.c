/*
 * The exchange: opening, closing, posting, and its status.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "exchange.h"

#include "exchange_parts.h"
#include "tools/base/say.h"

#include <inttypes.h>
#include <sys/random.h>

/* ---- posting --------------------------------------------------------------------------------- */

static char *exchange_text_of(struct exchange *exchange, const json_t *message, struct error *error)
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

    if (!exchange->url[0])
        return;
    text = exchange_text_of(exchange, message, &error);
    length = text ? strlen(text) : 0;
    if (length > MESSAGE_MAX - HELD_ROOM - 2) { /* with the brackets around it */
        error_set(&error, "it has %zu bytes, expected at most %u", length,
                  MESSAGE_MAX - HELD_ROOM - 2);
        free(text);
        text = NULL;
    }
    if (text) {
        exchange_queue(exchange, text, length);
        return;
    }
    exchange->dropped++;
    say(BK4060, "a message for other hosts is not posted: %s", error.text);
}

/* ---- the exchange ---------------------------------------------------------------------------- */

static bool exchange_open_hub(struct exchange *exchange, const struct config *config,
                              struct error *error)
{
    const char *url = config_text(config, "hub");

    if (!url || !*url)
        return true;
    exchange->poll.done = exchange_poll_done;
    exchange->poll.retry.due = exchange_poll_next;
    exchange->post.done = exchange_post_done;
    exchange->post.retry.due = exchange_post_next;
    if (!exchange_connect(exchange, config, error))
        return false;
    exchange_poll_next(exchange);
    return true;
}

struct exchange *exchange_open(struct loop *loop, const struct config *config, const char *host,
                               const struct exchange_callbacks *callbacks, struct error *error)
{
    struct exchange *exchange;
    uint64_t agent = 0;

    if (!message_is_host(host))
        return error_null(
            error,
            "host \"%.64s\": expected a name of letters, digits, '.', '-' and '_' for other "
            "hosts to know this one by",
            host);
    error_set(error, "out of memory");
    exchange = calloc(1, sizeof(*exchange));
    if (!exchange || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(exchange);
        return NULL;
    }
    exchange->loop = loop;
    exchange->callbacks = *callbacks;
    exchange->seen.keep_ms = 2 * EXCHANGE_KEEP_MS;
    exchange->since_ns = wall_clock_ns();
    (void)snprintf(exchange->host, sizeof(exchange->host), "%s", host);
    if (getrandom(&agent, sizeof(agent), 0) < 0)
        agent = (uint64_t)wall_clock_ns();
    (void)snprintf(exchange->agent, sizeof(exchange->agent), "%016" PRIx64, agent);
    exchange_set_hosts(exchange, NULL);
    if (exchange->hosts && exchange_open_hub(exchange, config, error))
        return exchange;
    exchange_close(exchange);
    return NULL;
}

void exchange_close(struct exchange *exchange)
{
    if (!exchange)
        return;
    transfer_close(&exchange->poll);
    transfer_close(&exchange->post);
    transfers_close(&exchange->transfers);
    curl_slist_free_all(exchange->headers);
    (void)items_drop(&exchange->waiting, INT64_MAX, 0);
    (void)items_drop(&exchange->sending, INT64_MAX, 0);
    (void)items_drop(&exchange->sent, INT64_MAX, 0);
    buffer_free(&exchange->body);
    seen_clear(&exchange->seen);
    json_decref(exchange->hosts);
    json_decref(exchange->told);
    json_decref(exchange->former);
    free(exchange);
    curl_global_cleanup();
}

bool exchange_is_posting(const struct exchange *exchange)
{
    return exchange->is_connected && (exchange->waiting.first || exchange->sending.first);
}

json_t *exchange_json(const struct exchange *exchange)
{
    return json_pack("{ss, ss, so, ss, sO, sI, sI, sI, sI, sI, sI}", "url", exchange->url, "state",
                     !exchange->url[0] || exchange->is_connected ? "connected" : "away", "since",
                     json_time(exchange->since_ns), "error", exchange->problem, "hosts",
                     exchange->hosts, "posted", (json_int_t)exchange->posted, "received",
                     (json_int_t)exchange->received, "dropped", (json_int_t)exchange->dropped,
                     "dropped_traces", (json_int_t)exchange->dropped_traces, "refused",
                     (json_int_t)exchange->refused, "malformed", (json_int_t)exchange->malformed);
}
