/*
 * Messages on their way to the hub: those that wait, those of the request that runs, and those that
 * the hub has and could lose.
 *
 * A post that failed may have arrived: it is posted again, and the hub knows it by its "post". What
 * the hub has taken is kept until the hub has given it to all hosts ("settled"), for a while at
 * most: a hub that was restarted (another "boot") gets it once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "exchange_parts.h"
#include "tools/base/say.h"

#define BATCH_BYTES (256U << 10)
#define BATCH_MAX   4096 /* a hub takes no more */

/* ---- sending --------------------------------------------------------------------------------- */

static bool posting_make_body(struct exchange *exchange)
{
    struct buffer *body = &exchange->body;

    body->length = 0;
    for (const struct item *item = exchange->sending.first; item; item = item->next) {
        if (!buffer_reserve(body, item->length + HELD_ROOM + 2))
            return false;
        body->data[body->length++] = item == exchange->sending.first ? '[' : ',';
        body->length += message_held(body->data + body->length, item->text, item->length,
                                     clock_ms() - item->at_ms);
    }
    body->data[body->length++] = ']'; /* there is room: see above */
    return true;
}

static void posting_drop_old(struct exchange *exchange)
{
    const int64_t oldest_ms = clock_ms() - EXCHANGE_KEEP_MS;
    const size_t dropped = items_drop(&exchange->waiting, oldest_ms, EXCHANGE_KEEP_BYTES);

    if (dropped && exchange->dropped == 0)
        say(BK4064, "messages for other hosts are dropped: the hub has been away for too long");
    exchange->dropped += dropped;
    (void)items_drop(&exchange->sent, oldest_ms, EXCHANGE_KEEP_BYTES);
}

void exchange_post_next(void *context)
{
    struct exchange *exchange = context;
    struct items *waiting = &exchange->waiting, *sending = &exchange->sending;
    CURL *const curl = exchange->post.client.curl;
    char url[EXCHANGE_URL_MAX];

    if (exchange->post.is_running)
        return;
    posting_drop_old(exchange);
    while (waiting->first && sending->count < BATCH_MAX &&
           (!sending->first || sending->bytes + waiting->first->length < BATCH_BYTES))
        items_put(sending, items_take(waiting));
    if (!sending->first) {
        exchange->post.failures = 0;
        return;
    }
    if (!posting_make_body(exchange)) {
        items_put_before(waiting, sending);
        exchange_fail(exchange, &exchange->post, CURLE_OUT_OF_MEMORY, 0);
        return;
    }
    (void)snprintf(url, sizeof(url), "%s/v1/messages?host=%s", exchange->url, exchange->host);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, exchange->body.data);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)exchange->body.length);
    exchange_start(exchange, &exchange->post, url);
}

void exchange_queue(struct exchange *exchange, char *text, size_t length)
{
    struct item *item = calloc(1, sizeof(*item));

    if (!item) {
        free(text);
        exchange->dropped++;
        return;
    }
    item->at_ms = clock_ms();
    item->text = text;
    item->length = length;
    items_put(&exchange->waiting, item);
    posting_drop_old(exchange);
    if (exchange->post.failures == 0)
        exchange_post_next(exchange);
}

void exchange_repost(struct exchange *exchange)
{
    struct items lost = {NULL, NULL, 0, 0};

    items_move_foreign(&exchange->sent, exchange->boot, &lost);
    items_put_before(&exchange->waiting, &lost);
    exchange->post.failures = 0;
    timer_clear(exchange->loop, &exchange->post.retry);
    exchange_post_next(exchange);
}

/* ---- what the hub says of it ----------------------------------------------------------------- */

static const char *posting_find_text(const struct items *items, const char *post)
{
    char member[POST_MAX + 16];

    (void)snprintf(member, sizeof(member), "\"post\":\"%s\"", post);
    for (const struct item *item = items->first; item; item = item->next) {
        if (strstr(item->text, member))
            return item->text;
    }
    return NULL;
}

/* The hub's cap has dropped these traces of a request of ours. */
static void posting_tell_dropped(struct exchange *exchange, const json_t *report)
{
    const char *text = posting_find_text(&exchange->sending, text_in(report, "post"));
    json_t *const traces = json_object_get(report, "traces");
    json_t *request = text ? json_loads(text, 0, NULL) : NULL;
    json_t *message =
        request ? json_pack("{ss, ss, ss, sO}", "type", "dropped", "id", text_in(request, "id"),
                            "host", exchange->host, "traces", traces)
                : NULL;

    if (request)
        exchange->dropped_traces += json_array_size(traces);
    if (message)
        exchange->callbacks.message(exchange->callbacks.context, message);
    json_decref(message);
    json_decref(request);
}

static void posting_take_report(struct exchange *exchange, const json_t *report)
{
    const char *boot = text_in(report, "boot");
    const uint64_t last = (uint64_t)json_integer_value(json_object_get(report, "last"));
    const json_t *one;
    struct item *item;
    size_t i;

    json_array_foreach(json_object_get(report, "refused"), i, one)
    {
        exchange->refused++;
        say(BK4065, "%s: refused a message: %s", exchange->url, text_in(one, "error"));
    }
    json_array_foreach(json_object_get(report, "dropped"), i, one)
        posting_tell_dropped(exchange, one);
    exchange->posted += exchange->sending.count;
    while ((item = items_take(&exchange->sending))) {
        (void)snprintf(item->boot, sizeof(item->boot), "%s", boot);
        item->number = last;
        items_put(&exchange->sent, item);
    }
    exchange->post.failures = 0;
}

void exchange_post_done(void *context, CURLcode code, long status)
{
    struct exchange *exchange = context;
    struct transfer *post = &exchange->post;
    json_t *report = NULL;

    if (code == CURLE_OK && (status == 200 || status == 429))
        report = json_loadb(post->answer.data, post->answer.length, 0, NULL);
    if (json_is_string(json_object_get(report, "boot"))) {
        posting_take_report(exchange, report);
        exchange_post_next(exchange);
    } else if (code == CURLE_OK && (status == 400 || status == 413)) { /* it would be so again */
        exchange->refused += exchange->sending.count;
        say(BK4066, "%s: refused %zu messages: status %ld", exchange->url, exchange->sending.count,
            status);
        (void)items_drop(&exchange->sending, INT64_MAX, 0);
        exchange_post_next(exchange);
    } else {
        items_put_before(&exchange->waiting, &exchange->sending);
        exchange_fail(exchange, post, code, status);
    }
    json_decref(report);
}
