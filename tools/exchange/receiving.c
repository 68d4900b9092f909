/*
 * What comes from the hub: messages of other hosts, and the names of the hosts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "exchange_parts.h"
#include "tools/base/say.h"

#include <inttypes.h>

#define WAIT_MS   10000 /* the hub answers after this at the latest */
#define HOSTS_MAX 16384
#define FORMER_MS 30000

/* ---- hosts ----------------------------------------------------------------------------------- */

static bool receiving_has_host(const json_t *hosts, const json_t *host)
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

static void receiving_make_hosts(struct exchange *exchange)
{
    json_t *known = json_pack("[s]", exchange->host);
    json_t *host;
    size_t i;

    if (!known)
        return;
    json_array_foreach(exchange->told, i, host)
    {
        const char *name = json_string_value(host);

        if (name && message_is_host(name) && strcmp(name, exchange->host) != 0 &&
            json_array_size(known) < HOSTS_MAX)
            (void)json_array_append(known, host);
    }
    json_array_foreach(exchange->former, i, host)
    {
        if (!receiving_has_host(exchange->told, host) && i > 0) /* the first is our own */
            (void)json_array_append(known, host);
    }
    json_decref(exchange->hosts);
    exchange->hosts = known;
}

void exchange_set_hosts(struct exchange *exchange, const json_t *hosts)
{
    json_decref(exchange->told);
    exchange->told = json_incref((json_t *)(uintptr_t)hosts);
    receiving_make_hosts(exchange);
}

/* Another hub is there: hosts that have not come to it yet are still there for a while. */
static void receiving_keep_hosts(struct exchange *exchange)
{
    json_decref(exchange->former);
    exchange->former = json_incref(exchange->hosts);
    exchange->former_until_ms = clock_ms() + FORMER_MS;
}

/* Have all former hosts come, or had the time? */
static bool receiving_hosts_are_back(struct exchange *exchange)
{
    const json_t *host;
    size_t i;

    if (clock_ms() < exchange->former_until_ms) {
        json_array_foreach(exchange->former, i, host)
        {
            if (i > 0 && !receiving_has_host(exchange->told, host))
                return false;
        }
    }
    if (exchange->former) {
        json_decref(exchange->former);
        exchange->former = NULL;
        receiving_make_hosts(exchange);
    }
    return true;
}

/* ---- messages -------------------------------------------------------------------------------- */

static bool receiving_is_for_us(const struct exchange *exchange, const json_t *message)
{
    const char *to = text_in(message, "to");

    return strcmp(text_in(message, "host"), exchange->host) != 0 &&
           (!*to || strcmp(to, exchange->host) == 0);
}

static void receiving_take(struct exchange *exchange, const json_t *message)
{
    struct error error = {""};

    if (!message_check(message, &error)) {
        if (exchange->malformed++ == 0)
            say(BK4061, "%s: a message of a wrong form: %s", exchange->url, error.text);
        return;
    }
    if (receiving_is_for_us(exchange, message) &&
        !message_seen_before(&exchange->seen, message, clock_ms())) {
        exchange->received++;
        exchange->callbacks.message(exchange->callbacks.context, message);
    }
}

/* ---- polling --------------------------------------------------------------------------------- */

void exchange_poll_next(void *context)
{
    struct exchange *exchange = context;
    char url[EXCHANGE_URL_MAX];

    if (exchange->poll.is_running)
        return;
    (void)snprintf(url, sizeof(url),
                   "%s/v1/messages?host=%s&agent=%s&boot=%s&after=%" PRIu64
                   "&wait=%d&hosts=%" PRIu64,
                   exchange->url, exchange->host, exchange->agent, exchange->boot, exchange->after,
                   WAIT_MS, exchange->hosts_version);
    exchange_start(exchange, &exchange->poll, url);
}

/* It becomes part of a URL. */
static bool receiving_is_boot(const char *boot)
{
    const size_t length = strlen(boot);

    return length > 0 && length <= BOOT_MAX && strspn(boot, "0123456789abcdef") == length;
}

static bool receiving_take_position(struct exchange *exchange, const json_t *news)
{
    const char *boot = text_in(news, "boot");
    const json_t *next = json_object_get(news, "next");
    const json_t *version = json_object_get(news, "hosts_version");

    if (!receiving_is_boot(boot) || !json_is_integer(next) ||
        !json_is_array(json_object_get(news, "messages")))
        return false;
    if (exchange->boot[0] && strcmp(exchange->boot, boot) != 0)
        receiving_keep_hosts(exchange);
    (void)snprintf(exchange->boot, sizeof(exchange->boot), "%s", boot);
    exchange->after = (uint64_t)json_integer_value(next);
    exchange->hosts_version = (uint64_t)json_integer_value(version);
    return true;
}

static void receiving_take_news(struct exchange *exchange, const json_t *news)
{
    const json_t *hosts = json_object_get(news, "hosts");
    const json_t *message;
    size_t i;

    exchange->poll.failures = 0;
    exchange_state(exchange, NULL);
    if (json_is_array(hosts))
        exchange_set_hosts(exchange, hosts);
    if (receiving_hosts_are_back(exchange))
        items_settle(&exchange->sent, exchange->boot,
                     (uint64_t)json_integer_value(json_object_get(news, "settled")));
    exchange_repost(exchange);
    exchange_poll_next(exchange); /* before the service works with the messages */
    json_array_foreach(json_object_get(news, "messages"), i, message)
        receiving_take(exchange, message);
}

void exchange_poll_done(void *context, CURLcode code, long status)
{
    struct exchange *exchange = context;
    struct transfer *poll = &exchange->poll;
    json_t *news = NULL;

    if (code == CURLE_OK && status == 200 && poll->answer.length)
        news = json_loadb(poll->answer.data, poll->answer.length, 0, NULL);
    if (receiving_take_position(exchange, news))
        receiving_take_news(exchange, news);
    else
        exchange_fail(exchange, poll, code, status);
    json_decref(news);
}
