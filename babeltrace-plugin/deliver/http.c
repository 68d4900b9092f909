/*
 * The HTTP transport: one POST per batch over one connection.
 *
 * A collector answers when it has decoded a batch, before it stores the batch: "accepted" means no
 * more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

#include "babeltrace-plugin/base/http_client.h"
#include "http_reply.h"

#include <libdeflate.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <zstd.h>

/* Spans are repetitive: level 6 takes twice the time, and saves only a tenth of the bytes. */
#define COMPRESSION_LEVEL 1
#define UPLOAD_BUFFER     (512L << 10) /* fewer and larger writes than libcurl's default */

static const struct http_names http_parameters = {"the parameter endpoint", "tls-ca", "tls-cert",
                                                  "tls-key"};

/* State for all batches. Begins as {0}. */
struct compressor {
    struct libdeflate_compressor *deflate; /* NULL: not used yet */
    ZSTD_CCtx *zstd;
    struct buffer output;
};

struct http_transport {
    struct transport base;
    struct http_client client;
    CURLM *multi; /* for cancel(), which wakes libcurl */
    atomic_bool is_cancelled;
    struct http_url url;
    const struct protocol *protocol;
    struct curl_slist *plain_headers;
    struct curl_slist *compressed_headers;
    enum compression compression; /* not COMPRESSION_AUTO */
    struct compressor compressor;
    struct credential credential;
    bool has_advice; /* the last message tells the operator what to do */
    struct http_reply answer;
};

/* ---- compression ----------------------------------------------------------------------------- */

/* Sets *output, which is valid until the next call. Returns false when out of memory. libdeflate
 * needs the whole input in memory, and takes half of zlib's time. */
static bool compress_gzip(struct compressor *compressor, struct text input, struct text *output)
{
    struct buffer *room = &compressor->output;
    size_t bound, length;

    if (!compressor->deflate)
        compressor->deflate = libdeflate_alloc_compressor(COMPRESSION_LEVEL);
    if (!compressor->deflate)
        return false;
    bound = libdeflate_gzip_compress_bound(compressor->deflate, input.length);
    room->length = 0;
    if (!buffer_reserve(room, bound))
        return false;
    length =
        libdeflate_gzip_compress(compressor->deflate, input.data, input.length, room->data, bound);
    *output = (struct text){room->data, length};
    return length > 0;
}

/* Same as compress_gzip(), for zstd. */
static bool compress_zstd(struct compressor *compressor, struct text input, struct text *output)
{
    struct buffer *room = &compressor->output;
    const size_t bound = ZSTD_compressBound(input.length);
    size_t length;

    if (!compressor->zstd)
        compressor->zstd = ZSTD_createCCtx();
    room->length = 0;
    if (!compressor->zstd || !buffer_reserve(room, bound))
        return false;
    length = ZSTD_compressCCtx(compressor->zstd, room->data, bound, input.data, input.length,
                               COMPRESSION_LEVEL);
    if (ZSTD_isError(length))
        return false;
    *output = (struct text){room->data, length};
    return true;
}

static void compressor_free(struct compressor *compressor)
{
    libdeflate_free_compressor(compressor->deflate);
    ZSTD_freeCCtx(compressor->zstd);
    buffer_free(&compressor->output);
    *compressor = (struct compressor){.output = {0}};
}

/* ---- one request ----------------------------------------------------------------------------- */

static bool http_compress_body(struct http_transport *http, struct text *body)
{
    switch (http->compression) {
    case COMPRESSION_GZIP:
        return compress_gzip(&http->compressor, *body, body);
    case COMPRESSION_ZSTD:
        return compress_zstd(&http->compressor, *body, body);
    default:
        return false;
    }
}

static void http_set_body(struct http_transport *http, struct text body)
{
    const bool is_compressed = http_compress_body(http, &body);

    curl_easy_setopt(http->client.curl, CURLOPT_HTTPHEADER,
                     is_compressed ? http->compressed_headers : http->plain_headers);
    curl_easy_setopt(http->client.curl, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(http->client.curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.length);
}

/* Same as curl_easy_perform(), but cancel() ends the request. */
static CURLcode http_perform(struct http_transport *http)
{
    CURLcode result = CURLE_OK;
    int running = 1, queued;
    CURLMcode code = curl_multi_add_handle(http->multi, http->client.curl);
    const CURLMsg *message;

    while (code == CURLM_OK && running) {
        if (atomic_load(&http->is_cancelled)) {
#if LIBCURL_VERSION_NUM >= 0x075700
            /* without a wait for a name server that does not answer */
            curl_easy_setopt(http->client.curl, CURLOPT_QUICK_EXIT, 1L);
#endif
            result = CURLE_ABORTED_BY_CALLBACK;
            break;
        }
        code = curl_multi_perform(http->multi, &running);
        if (code == CURLM_OK && running)
            code = curl_multi_poll(http->multi, NULL, 0, 1000, NULL);
    }
    while ((message = curl_multi_info_read(http->multi, &queued)))
        result = message->data.result;
    curl_multi_remove_handle(http->multi, http->client.curl);
    return code == CURLM_OK ? result : CURLE_OUT_OF_MEMORY;
}

static void http_judge_failure(struct http_transport *http, CURLcode code,
                               struct transport_reply *reply)
{
    curl_off_t sent_bytes = 0;
    long proxy_status = 0;

    /* bytes, not times: libcurl 8.23 reports times even without a connection */
    curl_easy_getinfo(http->client.curl, CURLINFO_SIZE_UPLOAD_T, &sent_bytes);
    curl_easy_getinfo(http->client.curl, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    *reply = (struct transport_reply){
        .outcome = OUTCOME_AGAIN,
        .may_be_batch = sent_bytes > 0, /* the batch was sent, at least in part */
    };
    http->has_advice = http_client_describe(&http->client, code, http->url.shown, &reply->error);
    if (atomic_load(&http->is_cancelled))
        error_set(&reply->error, "%s: no answer in time", http->url.shown);
    else if (proxy_status >= 300)
        error_set(&reply->error, "%s: the proxy answered %ld", http->url.shown, proxy_status);
}

/* The status counts as soon as the head is complete, even if the body fails. Returns the final
 * status, or 0. */
static long http_request(struct http_transport *http, struct text body,
                         struct transport_reply *reply)
{
    long status = 0;
    curl_off_t retry_after_s = 0;
    CURLcode code;

    http_reply_begin(&http->answer);
    http->client.reason[0] = '\0';
    http_set_body(http, body);
    code = http_perform(http);
    curl_easy_getinfo(http->client.curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || !http->answer.is_head_complete) {
        http_judge_failure(http, code == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : code, reply);
        return 0;
    }
    http->has_advice = status == 401 || status == 403;
    curl_easy_getinfo(http->client.curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    curl_easy_getinfo(http->client.curl, CURLINFO_CONTENT_TYPE, &http->answer.type);
    http_reply_judge(&http->answer, http->protocol, http->url.shown, status, retry_after_s, reply);
    return status;
}

/* ---- the transport --------------------------------------------------------------------------- */

static bool http_use_credential(struct http_transport *http)
{
    const struct credential *credential = &http->credential;

    return credential->kind == CREDENTIAL_NONE ||
           (credential->kind == CREDENTIAL_BEARER
                ? http_client_set_token(&http->client, credential->secret)
                : http_client_set_password(&http->client, credential->secret));
}

/* Retries once after status 401 if the source of the credential has changed, or after status 415
 * without compression. Returns the final status, or 0. */
static long http_request_twice(struct http_transport *http, struct text body,
                               struct transport_reply *reply)
{
    long status = http_request(http, body, reply);

    if (status == 401 && credential_renew(&http->credential) && http_use_credential(http)) {
        status = http_request(http, body, reply);
    } else if (status == 415 && http->compression != COMPRESSION_NONE) {
        http->compression = COMPRESSION_NONE;
        status = http_request(http, body, reply);
    }
    return status;
}

static void http_send(struct transport *transport, const struct payload *payload,
                      struct transport_reply *reply)
{
    (void)http_request_twice((struct http_transport *)transport, payload->text, reply);
}

/* An empty batch is legal, and many collectors have no other health check. */
static void http_probe(struct transport *transport, struct transport_reply *reply)
{
    struct http_transport *http = (struct http_transport *)transport;
    const long status = http_request_twice(http, http->protocol->empty_batch, reply);
    struct error cause;

    if (reply->outcome == OUTCOME_ACCEPTED || http->has_advice)
        return;
    cause = reply->error;
    if (reply->outcome != OUTCOME_AGAIN)
        error_set(&reply->error, "not %s: %s: correct the parameter endpoint", http->protocol->peer,
                  cause.text);
    else if (status)
        error_set(&reply->error, "the collector does not work: %s", cause.text);
    else
        error_set(&reply->error,
                  "no collector is there: %s: start it, or correct the parameter endpoint",
                  cause.text);
}

static void http_cancel(struct transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;

    atomic_store(&http->is_cancelled, true);
    curl_multi_wakeup(http->multi);
}

static void http_free(struct transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;

    http_client_close(&http->client);
    curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->plain_headers);
    curl_slist_free_all(http->compressed_headers);
    compressor_free(&http->compressor);
    http_url_free(&http->url);
    credential_close(&http->credential);
    free(http);
    curl_global_cleanup();
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool http_set_up(struct http_transport *http, const struct transport_options *options)
{
    const char *type = http->protocol->content_type;
    const struct http_setup setup = {
        .names = &http_parameters,
        .url = http->url.text,
        .timeout_ms = options->request_timeout_ms,
        .tls = {options->tls_ca, options->tls_cert, options->tls_key},
        .take_header = http_reply_header,
        .take_body = http_reply_body,
        .context = &http->answer,
    };

    http->multi = curl_multi_init();
    http->plain_headers = http_headers(type, NULL);
    http->compressed_headers =
        http_headers(type, http->compression == COMPRESSION_ZSTD ? "zstd" : "gzip");
    if (!http->multi || !http->plain_headers || !http->compressed_headers ||
        !http_client_open(&http->client, &setup) || !http_use_credential(http))
        return false;
    curl_easy_setopt(http->client.curl, CURLOPT_POST, 1L);
    curl_easy_setopt(http->client.curl, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
    return true;
}

struct transport *http_transport_open(const struct transport_options *options, struct error *error)
{
    struct http_transport *http = calloc(1, sizeof(*http));

    if (!http || curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK) {
        error_set(error, "cannot set up an HTTP client: out of memory");
        free(http);
        return NULL;
    }
    http->protocol = options->protocol;
    http->base = (struct transport){
        .probe = http_probe, .send = http_send, .cancel = http_cancel, .free = http_free};
    if (!http_url_parse(&http->url, http->protocol->path, options->endpoint, error) ||
        !http_tls_check(&(struct http_tls){options->tls_ca, options->tls_cert, options->tls_key},
                        &http_parameters, error) ||
        !credential_open(&http->credential, &options->credentials, error)) {
        http_free(&http->base);
        return NULL;
    }
    if (http->credential.kind != CREDENTIAL_NONE && http->url.is_plain && !http->url.is_local)
        http->base.warning = "the credential goes over http://, where everyone on the network path "
                             "can read it: use https://, or a tunnel to this host";
    http->compression = options->compression;
    if (http->compression == COMPRESSION_AUTO)
        http->compression = http->url.is_local ? COMPRESSION_NONE : COMPRESSION_GZIP;
    if (!http_set_up(http, options)) {
        error_set(error, "%s: cannot set up an HTTP client: out of memory", http->url.shown);
        http_free(&http->base);
        return NULL;
    }
    return &http->base;
}
