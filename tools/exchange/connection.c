/*
 * The way to the hub: two transfers of libcurl, one that waits for messages and one that posts
 * them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/http_url.h"
#include "exchange_parts.h"
#include "tools/base/say.h"

#define POLL_LIMIT_MS 20000
#define POST_LIMIT_MS 10000
#define DENIED_MS     5000 /* a retry that only somebody's work can make succeed */
#define ANSWER_MAX    (16U << 20)

static const struct http_names connection_keys = {"hub", "hub-ca-file", "hub-cert-file",
                                                  "hub-key-file"};

/* ---- how it is ------------------------------------------------------------------------------- */

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

static void connection_describe_answer(const struct exchange *exchange,
                                       const struct transfer *transfer, long status,
                                       struct error *problem)
{
    json_t *json = json_loadb(transfer->answer.data ? transfer->answer.data : "",
                              transfer->answer.length, 0, NULL);
    const char *cause = text_in(json, "error");

    error_set(problem, "%.200s: it answers %ld%s%.200s", exchange->url, status, *cause ? ": " : "",
              *cause || status != 200 ? cause : ", but not with the answer of a hub");
    json_decref(json);
}

void exchange_fail(struct exchange *exchange, struct transfer *transfer, CURLcode code, long status)
{
    const bool is_denied = code == CURLE_OK && status >= 400 && status < 500;
    struct error problem = {""};

    if (code == CURLE_OK)
        connection_describe_answer(exchange, transfer, status, &problem);
    else if (!http_client_describe(&transfer->client, code, exchange->url, &problem) &&
             (code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR))
        strcat(problem.text, "; if that lasts, try https://");
    exchange_state(exchange, problem.text);
    transfer_retry(transfer, is_denied ? DENIED_MS : 0);
}

void exchange_start(struct exchange *exchange, struct transfer *transfer, const char *url)
{
    if (curl_easy_setopt(transfer->client.curl, CURLOPT_URL, url) != CURLE_OK ||
        !transfer_start(transfer))
        exchange_fail(exchange, transfer, CURLE_OUT_OF_MEMORY, 0);
}

/* ---- opening --------------------------------------------------------------------------------- */

/* The URL of a hub is a scheme and a host, no more. *is_open: all on the way can read what is sent.
 */
static bool connection_set_url(struct exchange *exchange, const char *text, bool *is_open,
                               struct error *error)
{
    struct http_url url;
    size_t length = strlen(text);

    if ((strncmp(text, "http://", 7) != 0 && strncmp(text, "https://", 8) != 0) ||
        !http_url_parse(&url, "", text, error))
        return error_set(error, "hub \"%s\": expected http://HOST:PORT or https://HOST:PORT",
                         endpoint_unparsed(text));
    *is_open = url.is_plain && !url.is_local;
    http_url_free(&url);
    while (length && text[length - 1] == '/')
        length--;
    if (length >= sizeof(exchange->url) || strcspn(text, "?#") < length)
        return error_set(error,
                         "hub: expected http://HOST:PORT or https://HOST:PORT, without a query");
    (void)snprintf(exchange->url, sizeof(exchange->url), "%.*s", (int)length, text);
    return true;
}

static bool connection_check_files(const struct http_tls *tls, struct error *error)
{
    const bool has_cert = tls->cert && *tls->cert, has_key = tls->key && *tls->key;

    if (has_cert == has_key)
        return http_tls_check(tls, &connection_keys, error);
    return error_set(error, "hub-cert-file and hub-key-file: expected both, or none");
}

static bool connection_open_transfer(struct exchange *exchange, struct transfer *transfer,
                                     struct http_setup setup, const struct token *token,
                                     int64_t timeout_ms)
{
    setup.timeout_ms = timeout_ms;
    transfer->context = transfer->retry.context = exchange;
    return transfer_open(transfer, &exchange->transfers, setup, ANSWER_MAX) &&
           (!token->text[0] || http_client_set_token(&transfer->client, token->text)) &&
           curl_easy_setopt(transfer->client.curl, CURLOPT_HTTPHEADER, exchange->headers) ==
               CURLE_OK;
}

static bool connection_open_transfers(struct exchange *exchange, const struct http_tls *tls,
                                      const struct token *token)
{
    const struct http_setup setup = {.names = &connection_keys, .tls = *tls};

    exchange->headers = http_headers("application/json", NULL);
    return exchange->headers && transfers_open(&exchange->transfers, exchange->loop) &&
           connection_open_transfer(exchange, &exchange->poll, setup, token, POLL_LIMIT_MS) &&
           connection_open_transfer(exchange, &exchange->post, setup, token, POST_LIMIT_MS) &&
           curl_easy_setopt(exchange->post.client.curl, CURLOPT_POST, 1L) == CURLE_OK;
}

bool exchange_connect(struct exchange *exchange, const struct config *config, struct error *error)
{
    const char *token_file = config_text(config, "hub-token-file");
    const struct http_tls tls = {config_text(config, "hub-ca-file"),
                                 config_text(config, "hub-cert-file"),
                                 config_text(config, "hub-key-file")};
    struct token token = {""};
    bool is_open = false, is_done;

    if (!connection_set_url(exchange, config_text(config, "hub"), &is_open, error) ||
        !connection_check_files(&tls, error) ||
        (token_file && *token_file && !token_read(&token, token_file, error)))
        return false;
    if (token.text[0] && is_open)
        say(BK4067, "the token goes over http://, where everyone on the network path can read it: "
                    "use https://");
    error_set(error, "cannot set up an HTTP client: out of memory");
    is_done = connection_open_transfers(exchange, &tls, &token);
    explicit_bzero(&token, sizeof(token));
    return is_done;
}
