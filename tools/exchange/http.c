/*
 * The exchange through a hub: libcurl in our loop, with two transfers: one that waits for messages,
 * and one that posts them. Each has its connection, which is kept.
 *
 * A post that failed may have arrived: it is posted again, and the hub knows it by its "post". What
 * a hub has taken is kept until it has given it to all ("settled"), for a while at most: one that
 * is started anew ("boot") gets it once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "exchange_parts.h"
#include "queue.h"
#include "token.h"
#include "tools/base/say.h"

#include <curl/curl.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>
#include <unistd.h>

#define WAIT_MS          10000 /* a hub that has gone without a word is noticed after this */
#define POLL_LIMIT_MS    20000L
#define POST_LIMIT_MS    10000L
#define CONNECT_LIMIT_MS 5000L
#define RETRY_MIN_MS     100
#define RETRY_MAX_MS     2000
#define DENIED_MS        5000 /* a retry that only somebody's work can make succeed */
#define BATCH_BYTES      (256U << 10)
#define BATCH_MAX        4096 /* a hub takes no more */
#define ANSWER_MAX       (16U << 20)
#define URL_MAX          2048

struct http;

struct transfer {
    struct http *http;
    CURL *curl;
    struct buffer answer;
    struct timer retry;
    unsigned failures; /* in a row */
    bool is_running;
    char error[CURL_ERROR_SIZE];
    void (*finish)(struct http *http, long status);
};

/* A socket of libcurl's. */
struct link {
    struct watched watched;
    struct http *http;
};

struct http {
    struct exchange *exchange;
    struct loop *loop;
    CURLM *multi;
    struct timer timer; /* libcurl's */
    struct transfer poll, post;
    struct curl_slist *headers;
    struct token token;
    char url[URL_MAX - 1024]; /* without a / at its end */
    char boot[BOOT_MAX + 1];  /* of the hub, as of the last poll; "": none yet */
    uint64_t after, hosts_version;
    struct items waiting, sending, sent;
    struct buffer body;
};

/* ---- libcurl in the loop --------------------------------------------------------------------- */

static void perform(struct http *http, curl_socket_t fd, int events);

static void link_ready(void *context, short events)
{
    const struct link *link = context;

    perform(link->http, link->watched.fd,
            (events & POLLIN ? CURL_CSELECT_IN : 0) | (events & POLLOUT ? CURL_CSELECT_OUT : 0) |
                (events & (POLLERR | POLLHUP | POLLNVAL) ? CURL_CSELECT_ERR : 0));
}

/* libcurl says what it waits for. */
static int set_link(CURL *curl, curl_socket_t fd, int what, void *context, void *place)
{
    struct http *http = context;
    struct link *link = place;

    (void)curl;
    if (what == CURL_POLL_REMOVE) {
        if (link)
            loop_unwatch(http->loop, &link->watched);
        free(link);
        return 0;
    }
    if (!link) {
        link = calloc(1, sizeof(*link));
        if (!link || curl_multi_assign(http->multi, fd, link) != CURLM_OK) {
            free(link);
            return -1;
        }
        link->http = http;
        link->watched = (struct watched){fd, 0, link_ready, link, NULL};
        loop_watch(http->loop, &link->watched);
    }
    link->watched.events =
        (short)((what & CURL_POLL_IN ? POLLIN : 0) | (what & CURL_POLL_OUT ? POLLOUT : 0));
    return 0;
}

static void timer_due(void *context)
{
    perform(context, CURL_SOCKET_TIMEOUT, 0);
}

static int set_timer(CURLM *multi, long in_ms, void *context)
{
    struct http *http = context;

    (void)multi;
    if (in_ms < 0)
        timer_clear(http->loop, &http->timer);
    else
        timer_set(http->loop, &http->timer, in_ms);
    return 0;
}

/* ---- transfers ------------------------------------------------------------------------------- */

static size_t take_answer(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;

    if (!buffer_reserve(&transfer->answer, size * count))
        return 0;
    memcpy(transfer->answer.data + transfer->answer.length, data, size * count);
    transfer->answer.length += size * count;
    return size * count;
}

/* Some time before that, by chance: not all hosts come at once. */
static int64_t some_time(int64_t most_ms)
{
    uint16_t chance = 0;

    if (getrandom(&chance, sizeof(chance), GRND_NONBLOCK) < 0)
        return most_ms;
    return most_ms / 2 + most_ms * chance / 2 / UINT16_MAX;
}

static void fail(struct transfer *transfer, const char *problem, int64_t most_ms)
{
    const int64_t delay_ms = backoff_ms(++transfer->failures, RETRY_MIN_MS, RETRY_MAX_MS);

    exchange_state(transfer->http->exchange, problem);
    timer_set(transfer->http->loop, &transfer->retry, some_time(most_ms ? most_ms : delay_ms));
}

static void start(struct transfer *transfer)
{
    transfer->answer.length = 0;
    transfer->error[0] = '\0';
    transfer->is_running = curl_multi_add_handle(transfer->http->multi, transfer->curl) == CURLM_OK;
    if (!transfer->is_running)
        fail(transfer, "out of memory", 0);
}

static const char *advice(CURLcode code)
{
    switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
        return "; if it speaks plain HTTP, hub is http://";
    case CURLE_GOT_NOTHING:
    case CURLE_RECV_ERROR:
        return "; if that lasts: does it speak HTTPS?";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "; if it is the right one, name the CA of its certificate with hub-ca-file";
    case CURLE_SSL_CACERT_BADFILE:
        return "; see hub-ca-file";
    case CURLE_SSL_CERTPROBLEM:
        return "; see hub-cert-file and hub-key-file";
    default:
        return "";
    }
}

static void finish(struct transfer *transfer, CURLcode code)
{
    struct http *http = transfer->http;
    char problem[512];
    long status = 0;

    curl_easy_getinfo(transfer->curl, CURLINFO_RESPONSE_CODE, &status);
    (void)curl_multi_remove_handle(http->multi, transfer->curl);
    transfer->is_running = false;
    if (code != CURLE_OK) {
        (void)snprintf(problem, sizeof(problem), "%.200s: %.200s%s", http->exchange->url,
                       transfer->error[0] ? transfer->error : curl_easy_strerror(code),
                       advice(code));
        transfer->finish(http, 0);
        fail(transfer, problem, 0);
        return;
    }
    transfer->finish(http, status);
}

static void perform(struct http *http, curl_socket_t fd, int events)
{
    int running, left;
    const CURLMsg *message;

    (void)curl_multi_socket_action(http->multi, fd, events, &running);
    while ((message = curl_multi_info_read(http->multi, &left))) {
        const CURLcode code = message->data.result;

        if (message->msg == CURLMSG_DONE)
            finish(message->easy_handle == http->poll.curl ? &http->poll : &http->post, code);
    }
}

/* An answer that is no good. */
static void fail_by_answer(struct transfer *transfer, long status)
{
    json_t *json = json_loadb(transfer->answer.data ? transfer->answer.data : "",
                              transfer->answer.length, 0, NULL);
    const char *cause = message_text(json, "error");
    const bool is_denied = status >= 400 && status < 500;
    char problem[512];

    (void)snprintf(problem, sizeof(problem), "%.200s: it answers %ld%s%.200s",
                   transfer->http->exchange->url, status, *cause ? ": " : "",
                   *cause          ? cause
                   : status == 200 ? ", but not as a hub does"
                                   : "");
    json_decref(json);
    fail(transfer, problem, is_denied ? DENIED_MS : 0);
}

/* ---- posting --------------------------------------------------------------------------------- */

static bool make_body(struct http *http)
{
    struct buffer *body = &http->body;

    body->length = 0;
    for (const struct item *item = http->sending.first; item; item = item->next) {
        if (!buffer_reserve(body, item->length + HELD_ROOM + 2))
            return false;
        body->data[body->length++] = item == http->sending.first ? '[' : ',';
        body->length += message_held(body->data + body->length, item->text, item->length,
                                     clock_ms() - item->at_ms);
    }
    if (!buffer_reserve(body, 1))
        return false;
    body->data[body->length++] = ']';
    return true;
}

static void drop_old(struct http *http)
{
    const int64_t oldest_ms = clock_ms() - EXCHANGE_KEEP_MS;
    const size_t dropped = items_drop(&http->waiting, oldest_ms, EXCHANGE_KEEP_BYTES);

    if (dropped && http->exchange->dropped == 0)
        say(BK4064, "messages for other hosts are dropped: the hub has been away for too long");
    http->exchange->dropped += dropped;
    (void)items_drop(&http->sent, oldest_ms, EXCHANGE_KEEP_BYTES);
}

static void post_next(struct http *http)
{
    char url[URL_MAX];

    if (http->post.is_running)
        return;
    drop_old(http);
    while (
        http->waiting.first && http->sending.count < BATCH_MAX &&
        (!http->sending.first || http->sending.bytes + http->waiting.first->length < BATCH_BYTES))
        items_put(&http->sending, items_take(&http->waiting));
    if (!http->sending.first) {
        http->post.failures = 0;
        return;
    }
    if (!make_body(http)) {
        items_put_before(&http->waiting, &http->sending);
        fail(&http->post, "out of memory", 0);
        return;
    }
    (void)snprintf(url, sizeof(url), "%s/v1/messages?host=%s", http->url, http->exchange->host);
    curl_easy_setopt(http->post.curl, CURLOPT_URL, url);
    curl_easy_setopt(http->post.curl, CURLOPT_POSTFIELDS, http->body.data);
    curl_easy_setopt(http->post.curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)http->body.length);
    start(&http->post);
}

static const char *text_of_post(const struct items *items, const char *post)
{
    char member[POST_MAX + 16];

    (void)snprintf(member, sizeof(member), "\"post\":\"%s\"", post);
    for (const struct item *item = items->first; item; item = item->next) {
        if (strstr(item->text, member))
            return item->text;
    }
    return NULL;
}

/* What the hub says of single messages. */
static void take_report(struct http *http, const json_t *report)
{
    const json_t *refused = json_object_get(report, "refused");
    const json_t *dropped = json_object_get(report, "dropped");
    const json_t *one;
    size_t i;

    json_array_foreach(refused, i, one)
    {
        http->exchange->refused++;
        say(BK4065, "%s: refused a message: %s", http->exchange->url, message_text(one, "error"));
    }
    json_array_foreach(dropped, i, one)
    {
        const char *text = text_of_post(&http->sending, message_text(one, "post"));

        json_t *request = text ? json_loads(text, 0, NULL) : NULL;

        if (request)
            exchange_capped(http->exchange, request, json_object_get(one, "traces"));
        json_decref(request);
    }
}

static void repost_lost(struct http *http)
{
    struct items lost = {NULL, NULL, 0, 0};

    items_move_foreign(&http->sent, http->boot, &lost);
    items_put_before(&http->waiting, &lost);
}

static void posted(struct http *http, const json_t *report)
{
    const char *boot = message_text(report, "boot");
    const uint64_t last = (uint64_t)json_integer_value(json_object_get(report, "last"));
    struct item *item;

    take_report(http, report);
    http->exchange->posted += http->sending.count;
    while ((item = items_take(&http->sending))) {
        (void)snprintf(item->boot, sizeof(item->boot), "%s", boot);
        item->number = last;
        items_put(&http->sent, item);
    }
    http->post.failures = 0;
    post_next(http);
}

/* status is 0: it has failed. */
static void finish_post(struct http *http, long status)
{
    json_t *report = NULL;

    if (status == 200 || status == 429)
        report = json_loadb(http->post.answer.data, http->post.answer.length, 0, NULL);
    if (json_is_string(json_object_get(report, "boot"))) {
        posted(http, report);
    } else if (status == 400 || status == 413) { /* it would be no better the next time */
        http->exchange->refused += http->sending.count;
        say(BK4066, "%s: refused %zu messages: status %ld", http->exchange->url,
            http->sending.count, status);
        while (http->sending.first)
            item_free(items_take(&http->sending));
        post_next(http);
    } else {
        items_put_before(&http->waiting, &http->sending);
        if (status)
            fail_by_answer(&http->post, status);
    }
    json_decref(report);
}

static void retry_post(void *context)
{
    post_next(context);
}

void exchange_http_post(struct http *http, char *text, size_t length)
{
    struct item *item = calloc(1, sizeof(*item));

    if (!item) {
        free(text);
        http->exchange->dropped++;
        return;
    }
    item->at_ms = clock_ms();
    item->text = text;
    item->length = length;
    items_put(&http->waiting, item);
    drop_old(http);
    if (http->post.failures == 0)
        post_next(http);
}

/* ---- receiving ------------------------------------------------------------------------------- */

static void poll_next(void *context)
{
    struct http *http = context;
    char url[URL_MAX];

    if (http->poll.is_running)
        return;
    (void)snprintf(url, sizeof(url),
                   "%s/v1/messages?host=%s&agent=%s&boot=%s&after=%" PRIu64
                   "&wait=%d&hosts=%" PRIu64,
                   http->url, http->exchange->host, http->exchange->agent, http->boot, http->after,
                   WAIT_MS, http->hosts_version);
    curl_easy_setopt(http->poll.curl, CURLOPT_URL, url);
    start(&http->poll);
}

/* It is part of a URL. */
static bool is_boot(const char *boot)
{
    const size_t length = strlen(boot);

    return length > 0 && length <= BOOT_MAX && strspn(boot, "0123456789abcdef") == length;
}

static bool take_position(struct http *http, const json_t *news)
{
    const char *boot = message_text(news, "boot");
    const json_t *next = json_object_get(news, "next");
    const json_t *version = json_object_get(news, "hosts_version");

    if (!is_boot(boot) || !json_is_integer(next) ||
        !json_is_array(json_object_get(news, "messages")))
        return false;
    if (http->boot[0] && strcmp(http->boot, boot) != 0)
        exchange_hosts_may_change(http->exchange);
    (void)snprintf(http->boot, sizeof(http->boot), "%s", boot);
    http->after = (uint64_t)json_integer_value(next);
    http->hosts_version = (uint64_t)json_integer_value(version);
    return true;
}

static void take_news(struct http *http, const json_t *news)
{
    const json_t *hosts = json_object_get(news, "hosts");
    const json_t *message;
    size_t i;

    http->poll.failures = http->post.failures = 0;
    timer_clear(http->loop, &http->post.retry);
    exchange_state(http->exchange, NULL);
    if (json_is_array(hosts))
        exchange_hosts(http->exchange, hosts);
    if (exchange_hosts_are_back(http->exchange))
        items_settle(&http->sent, http->boot,
                     (uint64_t)json_integer_value(json_object_get(news, "settled")));
    repost_lost(http);
    post_next(http);
    poll_next(http); /* before those who get the messages work with them */
    json_array_foreach(json_object_get(news, "messages"), i, message)
        exchange_received(http->exchange, message);
}

static void finish_poll(struct http *http, long status)
{
    json_t *news = NULL;

    if (status == 0)
        return;
    if (status == 200)
        news = json_loadb(http->poll.answer.data ? http->poll.answer.data : "",
                          http->poll.answer.length, 0, NULL);
    if (take_position(http, news))
        take_news(http, news);
    else
        fail_by_answer(&http->poll, status);
    json_decref(news);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The URL of a hub: a scheme and a host, no more. */
static bool parse_url(struct http *http, const char *text, struct error *error)
{
    struct http_url url;
    size_t length = strlen(text);

    if (!http_url_parse(&url, "", text, error)) {
        error_set(error, "hub \"%s\": expected http://HOST:PORT or https://HOST:PORT",
                  endpoint_unparsed(text));
        return false;
    }
    http_url_free(&url);
    while (length && text[length - 1] == '/')
        length--;
    if (length >= sizeof(http->url) || strcspn(text, "?#") < length) {
        error_set(error, "hub: expected http://HOST:PORT or https://HOST:PORT, without a query");
        return false;
    }
    memcpy(http->url, text, length);
    http->url[length] = '\0';
    (void)snprintf(http->exchange->url, sizeof(http->exchange->url), "%s", http->url);
    return true;
}

static const char *given(const struct config *config, const char *key)
{
    const char *text = config_text(config, key);

    return text && *text ? text : NULL;
}

static bool check_files(const struct config *config, struct error *error)
{
    static const char *const keys[] = {"hub-ca-file", "hub-cert-file", "hub-key-file"};

    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
        const char *path = given(config, keys[i]);

        if (path && access(path, R_OK) != 0) {
            error_set(error, "%s \"%s\": cannot read it: %s", keys[i], path, strerror(errno));
            return false;
        }
    }
    if (!given(config, "hub-cert-file") == !given(config, "hub-key-file"))
        return true;
    error_set(error, "hub-cert-file and hub-key-file: expected both, or none");
    return false;
}

/* libcurl copies texts, and fails for lack of memory only. */
static bool set_tls(CURL *curl, const struct config *config)
{
    const char *ca = given(config, "hub-ca-file"), *cert = given(config, "hub-cert-file");
    const char *key = given(config, "hub-key-file");

    return (!ca || (curl_easy_setopt(curl, CURLOPT_CAINFO, ca) == CURLE_OK &&
                    curl_easy_setopt(curl, CURLOPT_CAPATH, NULL) == CURLE_OK)) &&
           (!cert || curl_easy_setopt(curl, CURLOPT_SSLCERT, cert) == CURLE_OK) &&
           (!key || curl_easy_setopt(curl, CURLOPT_SSLKEY, key) == CURLE_OK) &&
           curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "") == CURLE_OK; /* nobody is asked for it */
}

static bool set_token(const struct http *http, CURL *curl)
{
    return !http->token.text[0] ||
           (curl_easy_setopt(curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
            curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, http->token.text) == CURLE_OK);
}

static bool open_transfer(struct http *http, struct transfer *transfer, const struct config *config,
                          long limit_ms)
{
    CURL *curl = curl_easy_init();

    transfer->http = http;
    transfer->curl = curl;
    transfer->answer.limit = ANSWER_MAX;
    if (!curl || !set_tls(curl, config) || !set_token(http, curl))
        return false;
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "blkin/" BLKIN_RELEASE);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, http->headers);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_answer);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, transfer);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, transfer->error);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, limit_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_LIMIT_MS);
    return true;
}

static bool add_header(struct http *http, const char *header)
{
    struct curl_slist *longer = curl_slist_append(http->headers, header);

    if (longer)
        http->headers = longer;
    return longer != NULL;
}

static bool set_up(struct http *http, const struct config *config)
{
    http->multi = curl_multi_init();
    http->timer = (struct timer){.due = timer_due, .context = http};
    http->poll.retry = (struct timer){.due = poll_next, .context = http};
    http->post.retry = (struct timer){.due = retry_post, .context = http};
    http->poll.finish = finish_poll;
    http->post.finish = finish_post;
    return http->multi && add_header(http, "Content-Type: application/json") &&
           add_header(http, "Expect:") &&
           curl_multi_setopt(http->multi, CURLMOPT_SOCKETFUNCTION, set_link) == CURLM_OK &&
           curl_multi_setopt(http->multi, CURLMOPT_SOCKETDATA, http) == CURLM_OK &&
           curl_multi_setopt(http->multi, CURLMOPT_TIMERFUNCTION, set_timer) == CURLM_OK &&
           curl_multi_setopt(http->multi, CURLMOPT_TIMERDATA, http) == CURLM_OK &&
           open_transfer(http, &http->poll, config, POLL_LIMIT_MS) &&
           open_transfer(http, &http->post, config, POST_LIMIT_MS) &&
           curl_easy_setopt(http->post.curl, CURLOPT_POST, 1L) == CURLE_OK;
}

static void close_transfer(struct transfer *transfer)
{
    if (transfer->is_running)
        (void)curl_multi_remove_handle(transfer->http->multi, transfer->curl);
    if (transfer->http)
        timer_clear(transfer->http->loop, &transfer->retry);
    curl_easy_cleanup(transfer->curl);
    buffer_free(&transfer->answer);
}

void exchange_http_close(struct http *http)
{
    close_transfer(&http->poll);
    close_transfer(&http->post);
    if (http->multi)
        (void)curl_multi_cleanup(http->multi);
    timer_clear(http->loop, &http->timer);
    curl_slist_free_all(http->headers);
    (void)items_drop(&http->waiting, INT64_MAX, 0);
    (void)items_drop(&http->sending, INT64_MAX, 0);
    (void)items_drop(&http->sent, INT64_MAX, 0);
    buffer_free(&http->body);
    explicit_bzero(&http->token, sizeof(http->token));
    free(http);
    curl_global_cleanup();
}

static bool is_plain_beyond_us(const char *text)
{
    struct http_url url;
    struct error ignored;
    bool is_so;

    if (!http_url_parse(&url, "", text, &ignored))
        return false;
    is_so = url.is_plain && !url.is_local;
    http_url_free(&url);
    return is_so;
}

struct http *exchange_http_open(struct exchange *exchange, const struct config *config,
                                struct error *error)
{
    struct http *http = calloc(1, sizeof(*http));

    error_set(error, "cannot set up an HTTP client: out of memory");
    if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        free(http);
        return NULL;
    }
    http->exchange = exchange;
    http->loop = exchange->loop;
    if (!parse_url(http, config_text(config, "hub"), error) || !check_files(config, error) ||
        (given(config, "hub-token-file") &&
         !token_read(&http->token, given(config, "hub-token-file"), error)) ||
        !set_up(http, config)) {
        exchange_http_close(http);
        return NULL;
    }
    if (http->token.text[0] && is_plain_beyond_us(http->url))
        say(BK4067, "the token goes over http://, where all on the way can read it: use https://");
    poll_next(http);
    return http;
}
