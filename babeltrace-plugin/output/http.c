/*
 * The HTTP transport: one POST per batch over one kept connection.
 *
 * Zipkin answers 202 when it has decoded a batch, before it is stored: "accepted" means no more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

#include <curl/curl.h>
#include <stdlib.h>

#define CONNECT_TIMEOUT_MS 5000L
#define REQUEST_TIMEOUT_MS 15000L /* Zipkin itself gives up after 11 s */
#define DEFAULT_PATH       "/api/v2/spans"

struct http_transport {
    struct transport base;
    CURL *curl;
    struct curl_slist *headers;
    char *url;
    char curl_error[CURL_ERROR_SIZE];
    char reply[256]; /* the first bytes of the body, for messages */
    size_t reply_length;
};

static size_t keep_reply(char *data, size_t size, size_t count, void *context)
{
    struct http_transport *http = context;
    size_t room = sizeof(http->reply) - 1 - http->reply_length;
    size_t length = size * count < room ? size * count : room;

    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)data[i];

        /* a terminal shows this: no control characters from the network */
        http->reply[http->reply_length++] = byte < 0x20 || byte >= 0x7f ? ' ' : (char)byte;
    }
    http->reply[http->reply_length] = '\0';
    return size * count;
}

static enum delivery judge(long status)
{
    if (status >= 200 && status < 300)
        return DELIVERY_ACCEPTED;
    /* 500 too: the OpenTelemetry collector answers it when its queue is full */
    if (status == 408 || status == 429 || status == 500 || (status >= 502 && status <= 504))
        return DELIVERY_RETRY;
    return DELIVERY_REFUSED;
}

static const char *advice(long status)
{
    switch (status) {
    case 401:
    case 403:
        return "; it wants credentials";
    case 404:
    case 405:
        return "; no collector at this path? Zipkin's is " DEFAULT_PATH;
    case 413:
        return "; the batch is too large for it: lower batch-spans";
    default:
        return status >= 300 && status < 400 ? "; redirects are not followed: give the final URL"
                                             : "";
    }
}

static enum delivery http_send(struct transport *transport, struct text batch, struct error *error)
{
    struct http_transport *http = (struct http_transport *)transport;
    enum delivery delivery;
    long status = 0;
    CURLcode code;

    http->reply_length = 0;
    http->reply[0] = '\0';
    http->curl_error[0] = '\0';
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, batch.data);
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)batch.length);
    code = curl_easy_perform(http->curl);
    if (code != CURLE_OK) {
        error_set(error, "%s: %s", http->url,
                  http->curl_error[0] ? http->curl_error : curl_easy_strerror(code));
        return DELIVERY_RETRY;
    }
    curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
    delivery = judge(status);
    if (delivery != DELIVERY_ACCEPTED)
        error_set(error, "%s: answered %ld%s%s%s", http->url, status, advice(status),
                  http->reply_length ? ": " : "", http->reply);
    return delivery;
}

static void http_free(struct http_transport *http)
{
    curl_easy_cleanup(http->curl);
    curl_slist_free_all(http->headers);
    free(http->url);
    free(http);
    curl_global_cleanup();
}

static bool http_close(struct transport *transport, struct error *error)
{
    (void)error;
    http_free((struct http_transport *)transport);
    return true;
}

static bool add_header(struct http_transport *http, const char *header)
{
    struct curl_slist *headers = curl_slist_append(http->headers, header);

    if (headers)
        http->headers = headers;
    return headers != NULL;
}

/* http://host:9411 and http://host:9411/ mean Zipkin's own path. */
static char *full_url(const char *url)
{
    const char *host = strstr(url, "://") + 3;
    const char *path = strchr(host, '/');
    const bool is_bare = !path || path[1] == '\0';
    const size_t base = path ? (size_t)(path - url) : strlen(url);
    char *full = malloc(strlen(url) + sizeof(DEFAULT_PATH));

    if (!full)
        return NULL;
    strcpy(full, url);
    if (is_bare)
        strcpy(full + base, DEFAULT_PATH);
    return full;
}

static bool set_up(struct http_transport *http)
{
    if (!http->curl || !http->url || !add_header(http, "Content-Type: application/json") ||
        !add_header(http, "Expect:") || /* no round trip before a large body */
        !add_header(http, "b3: 0"))     /* a tracing proxy on the way must not trace this */
        return false;
    curl_easy_setopt(http->curl, CURLOPT_URL, http->url);
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(http->curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(http->curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(http->curl, CURLOPT_POST, 1L);
    curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER, http->headers);
    curl_easy_setopt(http->curl, CURLOPT_USERAGENT, "blkin/" BLKIN_VERSION);
    curl_easy_setopt(http->curl, CURLOPT_WRITEFUNCTION, keep_reply);
    curl_easy_setopt(http->curl, CURLOPT_WRITEDATA, http);
    curl_easy_setopt(http->curl, CURLOPT_ERRORBUFFER, http->curl_error);
    curl_easy_setopt(http->curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(http->curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_TIMEOUT_MS);
    curl_easy_setopt(http->curl, CURLOPT_TIMEOUT_MS, REQUEST_TIMEOUT_MS);
    return true;
}

/* An empty list is a legal batch, and many a collector has no other health check. */
static bool probe(struct http_transport *http, struct error *error)
{
    struct error cause;

    switch (http_send(&http->base, text_of("[]"), &cause)) {
    case DELIVERY_ACCEPTED:
        return true;
    case DELIVERY_RETRY:
        error_set(error, "no collector is there: %s: start it, or correct the parameter endpoint",
                  cause.text);
        return false;
    case DELIVERY_REFUSED:
        break;
    }
    error_set(error, "not a Zipkin collector: %s: correct the parameter endpoint", cause.text);
    return false;
}

struct transport *http_transport_open(const char *url, struct error *error)
{
    struct http_transport *http = calloc(1, sizeof(*http));

    if (!http) {
        error_set(error, "%s: out of memory", url);
        return NULL;
    }
    curl_global_init(CURL_GLOBAL_DEFAULT);
    http->base.send = http_send;
    http->base.close = http_close;
    http->curl = curl_easy_init();
    http->url = full_url(url);
    if (!set_up(http)) {
        error_set(error, "%s: cannot set up an HTTP client: out of memory", url);
        http_free(http);
        return NULL;
    }
    if (!probe(http, error)) {
        http_free(http);
        return NULL;
    }
    return &http->base;
}
