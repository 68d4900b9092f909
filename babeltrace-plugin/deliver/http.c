/*
 * The HTTP transport: one POST per batch over one kept connection.
 *
 * A collector answers when it has decoded a batch, before it is stored: "accepted" means no more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

#include "babeltrace-plugin/base/http_url.h"
#include "compress.h"
#include "http_reply.h"

#include <curl/curl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define CONNECT_TIMEOUT_MS 5000L
#define UPLOAD_BUFFER      (512L << 10) /* fewer and larger writes than libcurl's default */

struct http_transport {
    struct transport base;
    CURL *curl;
    CURLM *multi; /* so that cancel() can wake what waits for the network */
    atomic_bool is_cancelled;
    struct http_url url;
    const struct protocol *protocol;
    bool has_certificate; /* tls-cert */
    struct curl_slist *plain_headers;
    struct curl_slist *compressed_headers;
    enum compression compression; /* not COMPRESSION_AUTO */
    struct compressor compressor;
    struct credential_sources sources; /* copies */
    struct credential credential;
    bool has_advice; /* the last message tells what to do */
    char curl_error[CURL_ERROR_SIZE];
    struct http_reply answer;
};

/* ---- one request ----------------------------------------------------------------------------- */

static size_t take_header(char *data, size_t size, size_t count, void *context)
{
    struct http_transport *http = context;

    return http_reply_header(&http->answer, data, size * count) ? size * count : 0;
}

static size_t take_body(char *data, size_t size, size_t count, void *context)
{
    struct http_transport *http = context;

    return http_reply_body(&http->answer, data, size * count) ? size * count : 0;
}

static bool compress_body(struct http_transport *http, struct text *body)
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

static void set_body(struct http_transport *http, struct text body)
{
    const bool is_compressed = compress_body(http, &body);

    curl_easy_setopt(http->curl, CURLOPT_HTTPHEADER,
                     is_compressed ? http->compressed_headers : http->plain_headers);
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDS, body.data);
    curl_easy_setopt(http->curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)body.length);
}

/* curl_easy_perform(), but cancel() ends it. */
static CURLcode perform(struct http_transport *http)
{
    CURLcode result = CURLE_OK;
    int running = 1, queued;
    CURLMcode code = curl_multi_add_handle(http->multi, http->curl);
    const CURLMsg *message;

    while (code == CURLM_OK && running) {
        if (atomic_load(&http->is_cancelled)) {
#if LIBCURL_VERSION_NUM >= 0x075700
            /* do not wait for a name server that does not answer */
            curl_easy_setopt(http->curl, CURLOPT_QUICK_EXIT, 1L);
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
    curl_multi_remove_handle(http->multi, http->curl);
    return code == CURLM_OK ? result : CURLE_OUT_OF_MEMORY;
}

/* TLS 1.3 has an alert for it, which comes when the request is sent; TLS 1.2 just ends. */
static bool wants_certificate(const struct http_transport *http, CURLcode code)
{
    return !http->has_certificate &&
           (code == CURLE_SSL_CLIENTCERT || strcasestr(http->curl_error, "certificate required") ||
            (code == CURLE_SSL_CONNECT_ERROR &&
             strcasestr(http->curl_error, "alert handshake failure")));
}

static const char *transfer_advice(const struct http_transport *http, CURLcode code)
{
    if (wants_certificate(http, code))
        return "; it asks for a certificate of ours: name it with tls-cert and tls-key";
    switch (code) {
    case CURLE_SSL_CONNECT_ERROR:
        return "; if it speaks plain HTTP, write http:// in the parameter endpoint";
    case CURLE_PEER_FAILED_VERIFICATION:
        return "; if it is the right one, name the CA of its certificate with tls-ca";
    case CURLE_SSL_CACERT_BADFILE:
        return "; see tls-ca";
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_BAD_FUNCTION_ARGUMENT: /* the same of libcurl 8.23 */
        return "; see tls-cert and tls-key";
    default:
        return "";
    }
}

static void judge_failure(struct http_transport *http, CURLcode code, struct reply *reply)
{
    curl_off_t sent_bytes = 0;
    long proxy_status = 0;

    http->has_advice = transfer_advice(http, code)[0] != '\0';
    /* libcurl 8.23 has times of a transfer even where there was no connection */
    curl_easy_getinfo(http->curl, CURLINFO_SIZE_UPLOAD_T, &sent_bytes);
    curl_easy_getinfo(http->curl, CURLINFO_HTTP_CONNECTCODE, &proxy_status);
    *reply = (struct reply){
        .delivery = DELIVERY_RETRY,
        .may_be_batch = sent_bytes > 0, /* it was being sent, or answered */
    };
    if (atomic_load(&http->is_cancelled))
        error_set(&reply->error, "%s: no answer in time", http->url.shown);
    else if (proxy_status >= 300)
        error_set(&reply->error, "%s: the proxy answered %ld", http->url.shown, proxy_status);
    else
        error_set(&reply->error, "%s: %s%s", http->url.shown,
                  http->curl_error[0] ? http->curl_error : curl_easy_strerror(code),
                  transfer_advice(http, code));
}

/* A whole head decides, whatever happens to the body. Returns the final status, or 0. */
static long request(struct http_transport *http, struct text body, struct reply *reply)
{
    long status = 0;
    curl_off_t retry_after_s = 0;
    CURLcode code;

    http_reply_begin(&http->answer);
    http->curl_error[0] = '\0';
    set_body(http, body);
    code = perform(http);
    curl_easy_getinfo(http->curl, CURLINFO_RESPONSE_CODE, &status);
    if (status < 200 || !http->answer.is_head_complete) {
        judge_failure(http, code == CURLE_OK ? CURLE_WEIRD_SERVER_REPLY : code, reply);
        return 0;
    }
    http->has_advice = status == 401 || status == 403;
    curl_easy_getinfo(http->curl, CURLINFO_RETRY_AFTER, &retry_after_s);
    http_reply_judge(&http->answer, http->protocol, http->url.shown, status, retry_after_s, reply);
    return status;
}

/* ---- the transport --------------------------------------------------------------------------- */

static void use_credential(struct http_transport *http)
{
    switch (http->credential.kind) {
    case CREDENTIAL_NONE:
        break;
    case CREDENTIAL_BEARER:
        curl_easy_setopt(http->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER);
        curl_easy_setopt(http->curl, CURLOPT_XOAUTH2_BEARER, http->credential.secret);
        break;
    case CREDENTIAL_BASIC:
        curl_easy_setopt(http->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC);
        curl_easy_setopt(http->curl, CURLOPT_USERPWD, http->credential.secret);
        break;
    }
}

/* Tokens are renewed while we run. Returns whether there is another one now. */
static bool renew_credential(struct http_transport *http)
{
    struct credential renewed;
    struct error ignored;
    bool is_new;

    if (http->credential.kind == CREDENTIAL_NONE ||
        !credential_read(&renewed, &http->sources, &ignored))
        return false;
    is_new = strcmp(renewed.secret, http->credential.secret) != 0;
    http->credential = renewed;
    use_credential(http);
    credential_wipe(&renewed);
    return is_new;
}

/* Returns the final status, or 0. */
static long request_twice(struct http_transport *http, struct text body, struct reply *reply)
{
    long status = request(http, body, reply);

    if (status == 401 && renew_credential(http)) {
        status = request(http, body, reply);
    } else if (status == 415 && http->compression != COMPRESSION_NONE) {
        http->compression = COMPRESSION_NONE;
        status = request(http, body, reply);
    }
    return status;
}

static void http_send(struct transport *transport, const struct payload *payload,
                      struct reply *reply)
{
    (void)request_twice((struct http_transport *)transport, payload->text, reply);
}

/* An empty batch is legal, and many a collector has no other health check. */
static void http_probe(struct transport *transport, struct reply *reply)
{
    struct http_transport *http = (struct http_transport *)transport;
    const long status = request_twice(http, http->protocol->empty_batch, reply);
    struct error cause;

    if (reply->delivery == DELIVERY_ACCEPTED || http->has_advice)
        return;
    cause = reply->error;
    if (reply->delivery != DELIVERY_RETRY)
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

static void free_sources(struct credential_sources *sources)
{
    free((char *)(uintptr_t)sources->bearer_file);
    free((char *)(uintptr_t)sources->bearer_env);
    free((char *)(uintptr_t)sources->basic_file);
    free((char *)(uintptr_t)sources->basic_env);
}

static void http_free(struct transport *transport)
{
    struct http_transport *http = (struct http_transport *)transport;

    curl_easy_cleanup(http->curl);
    if (http->multi)
        curl_multi_cleanup(http->multi);
    curl_slist_free_all(http->plain_headers);
    curl_slist_free_all(http->compressed_headers);
    compressor_free(&http->compressor);
    http_url_free(&http->url);
    credential_wipe(&http->credential);
    free_sources(&http->sources);
    free(http);
    curl_global_cleanup();
}

/* ---- setting it up --------------------------------------------------------------------------- */

static bool copy_text(const char **to, const char *text)
{
    *to = text ? strdup(text) : NULL;
    return !text || *to;
}

static bool copy_sources(struct credential_sources *to, const struct credential_sources *from)
{
    return copy_text(&to->bearer_file, from->bearer_file) &&
           copy_text(&to->bearer_env, from->bearer_env) &&
           copy_text(&to->basic_file, from->basic_file) &&
           copy_text(&to->basic_env, from->basic_env);
}

static bool add_header(struct curl_slist **headers, const char *header)
{
    struct curl_slist *longer = curl_slist_append(*headers, header);

    if (longer)
        *headers = longer;
    return longer != NULL;
}

static bool add_headers(struct curl_slist **headers, const char *content_type)
{
    char type[128];

    snprintf(type, sizeof(type), "Content-Type: %s", content_type);
    return add_header(headers, type) &&
           add_header(headers, "Expect:") && /* no round trip before a large body */
           add_header(headers, "b3: 0");     /* a tracing proxy on the way must not trace this */
}

/* libcurl copies texts, and fails for lack of memory only. */
static CURLcode set_tls(CURL *curl, const struct transport_options *options)
{
    CURLcode code = CURLE_OK;

    if (options->tls_ca)
        code = curl_easy_setopt(curl, CURLOPT_CAINFO, options->tls_ca);
    if (code == CURLE_OK && options->tls_ca)
        code = curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    if (code == CURLE_OK && options->tls_cert)
        code = curl_easy_setopt(curl, CURLOPT_SSLCERT, options->tls_cert);
    if (code == CURLE_OK && options->tls_key)
        code = curl_easy_setopt(curl, CURLOPT_SSLKEY, options->tls_key);
    if (code == CURLE_OK) /* or OpenSSL asks on the terminal, and waits */
        code = curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "");
    return code;
}

static bool set_options(struct http_transport *http, const struct transport_options *options)
{
    CURL *curl = http->curl;
    const long timeout_ms = (long)options->request_timeout_ms;

    if (curl_easy_setopt(curl, CURLOPT_URL, http->url.text) != CURLE_OK ||
        set_tls(curl, options) != CURLE_OK)
        return false;
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_POST, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "blkin/" BLKIN_RELEASE);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, http);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, http);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, http->curl_error);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* the sender's thread blocks all signals */
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, timeout_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     timeout_ms < CONNECT_TIMEOUT_MS ? timeout_ms : CONNECT_TIMEOUT_MS);
    use_credential(http);
    return true;
}

static bool set_up(struct http_transport *http, const struct transport_options *options)
{
    http->curl = curl_easy_init();
    http->multi = curl_multi_init();
    return http->curl && http->multi && copy_sources(&http->sources, &options->credentials) &&
           add_headers(&http->plain_headers, http->protocol->content_type) &&
           add_headers(&http->compressed_headers, http->protocol->content_type) &&
           add_header(&http->compressed_headers, http->compression == COMPRESSION_ZSTD
                                                     ? "Content-Encoding: zstd"
                                                     : "Content-Encoding: gzip") &&
           set_options(http, options);
}

static bool check_file(const char *parameter, const char *path, struct error *error)
{
    FILE *file = path ? fopen(path, "re") : NULL;

    if (path && !file) {
        error_set(error, "%s \"%s\": cannot read it", parameter, path);
        return false;
    }
    if (file)
        fclose(file);
    return true;
}

static bool check(const struct transport_options *options, struct error *error)
{
    if (!options->tls_cert != !options->tls_key && !options->tls_cert) {
        error_set(error, "tls-key: expected tls-cert with it");
        return false;
    }
    return check_file("tls-ca", options->tls_ca, error) &&
           check_file("tls-cert", options->tls_cert, error) &&
           check_file("tls-key", options->tls_key, error);
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
        !check(options, error) ||
        !credential_read(&http->credential, &options->credentials, error)) {
        http_free(&http->base);
        return NULL;
    }
    if (http->credential.kind != CREDENTIAL_NONE && http->url.is_plain && !http->url.is_local)
        http->base.warning = "the credential goes over http://, where all on the way can read it: "
                             "use https://, or a tunnel to this host";
    http->has_certificate = options->tls_cert != NULL;
    http->compression = options->compression;
    if (http->compression == COMPRESSION_AUTO)
        http->compression = http->url.is_local ? COMPRESSION_NONE : COMPRESSION_GZIP;
    if (!set_up(http, options)) {
        error_set(error, "%s: cannot set up an HTTP client: out of memory", http->url.shown);
        http_free(&http->base);
        return NULL;
    }
    return &http->base;
}
