/* SPDX-License-Identifier: BSD-2-Clause */
#include "http_client.h"

#include "utf8.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* ---- the set-up of libcurl ------------------------------------------------------------------- */

#define CONNECT_TIMEOUT_MS 5000

static bool http_is_given(const char *text)
{
    return text && *text;
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static bool http_check_file(const char *name, const char *path, struct error *error)
{
    if (!http_is_given(path) || access(path, R_OK) == 0)
        return true;
    return error_set(error, "%s \"%s\": cannot read the file: %s", name, path, strerror(errno));
}

bool http_tls_check(const struct http_tls *tls, const struct http_names *names, struct error *error)
{
    if (http_is_given(tls->key) && !http_is_given(tls->cert))
        return error_set(error, "%s needs %s", names->key, names->cert);
    return http_check_file(names->ca, tls->ca, error) &&
           http_check_file(names->cert, tls->cert, error) &&
           http_check_file(names->key, tls->key, error);
}

/* libcurl copies the text, and fails only for lack of memory. */
static bool http_set_text(CURL *curl, CURLoption option, const char *text)
{
    return !http_is_given(text) || curl_easy_setopt(curl, option, text) == CURLE_OK;
}

static bool http_set_tls(CURL *curl, const struct http_tls *tls)
{
    if (http_is_given(tls->ca))
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    return http_set_text(curl, CURLOPT_CAINFO, tls->ca) &&
           http_set_text(curl, CURLOPT_SSLCERT, tls->cert) &&
           http_set_text(curl, CURLOPT_SSLKEY, tls->key) &&
           /* without a passphrase OpenSSL would ask for one on the terminal, and wait */
           curl_easy_setopt(curl, CURLOPT_KEYPASSWD, "") == CURLE_OK;
}

/* ---- the client ------------------------------------------------------------------------------ */

bool http_client_set_token(struct http_client *client, const char *token)
{
    return curl_easy_setopt(client->curl, CURLOPT_HTTPAUTH, CURLAUTH_BEARER) == CURLE_OK &&
           curl_easy_setopt(client->curl, CURLOPT_XOAUTH2_BEARER, token) == CURLE_OK;
}

bool http_client_set_password(struct http_client *client, const char *user_and_password)
{
    return curl_easy_setopt(client->curl, CURLOPT_HTTPAUTH, CURLAUTH_BASIC) == CURLE_OK &&
           curl_easy_setopt(client->curl, CURLOPT_USERPWD, user_and_password) == CURLE_OK;
}

struct curl_slist *http_headers(const char *content_type, const char *encoding)
{
    char lines[4][128] = {
        "Expect:", /* saves a round trip before a large body */
        "b3: 0",   /* a tracing proxy on the way must not trace this request */
    };
    struct curl_slist *headers = NULL;

    (void)snprintf(lines[2], sizeof(lines[2]), "Content-Type: %s", content_type);
    if (encoding)
        (void)snprintf(lines[3], sizeof(lines[3]), "Content-Encoding: %s", encoding);
    for (int i = 0; i < 4 && lines[i][0]; i++) {
        struct curl_slist *longer = curl_slist_append(headers, lines[i]);

        if (!longer) {
            curl_slist_free_all(headers);
            return NULL;
        }
        headers = longer;
    }
    return headers;
}

bool http_client_open(struct http_client *client, const struct http_setup *setup)
{
    const int64_t limit_ms = setup->timeout_ms;
    CURL *curl = curl_easy_init();

    *client = (struct http_client){
        .curl = curl,
        .names = setup->names,
        .has_certificate = http_is_given(setup->tls.cert),
    };
    if (!curl || !http_set_text(curl, CURLOPT_URL, setup->url) || !http_set_tls(curl, &setup->tls))
        return false;
#if LIBCURL_VERSION_NUM >= 0x075500
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
#else
    curl_easy_setopt(curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP | CURLPROTO_HTTPS);
#endif
    curl_easy_setopt(curl, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_1_1);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "blkin/" BLKIN_RELEASE);
    if (setup->take_header) {
        curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, setup->take_header);
        curl_easy_setopt(curl, CURLOPT_HEADERDATA, setup->context);
    }
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, setup->take_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, setup->context);
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->reason);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L); /* the host program owns the signals */
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)limit_ms);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                     (long)(limit_ms < CONNECT_TIMEOUT_MS ? limit_ms : CONNECT_TIMEOUT_MS));
    return true;
}

void http_client_close(struct http_client *client)
{
    curl_easy_cleanup(client->curl);
    client->curl = NULL;
}

/* ---- errors ---------------------------------------------------------------------------------- */

/* A TLS 1.3 server that wants a certificate sends an alert when the request arrives. A TLS 1.2
 * server ends the handshake with an alert. */
static bool http_wants_certificate(const struct http_client *client, CURLcode code)
{
    return !client->has_certificate &&
           (code == CURLE_SSL_CLIENTCERT || strcasestr(client->reason, "certificate required") ||
            (code == CURLE_SSL_CONNECT_ERROR &&
             strcasestr(client->reason, "alert handshake failure")));
}

/* The alert of TLS 1.3 is lost if the peer resets the connection before we have read the alert. */
static bool http_may_want_certificate(const struct http_client *client, CURLcode code)
{
    long connects = 0;
    curl_off_t encrypted_us = 0;

    curl_easy_getinfo(client->curl, CURLINFO_NUM_CONNECTS, &connects);
    curl_easy_getinfo(client->curl, CURLINFO_APPCONNECT_TIME_T, &encrypted_us);
    return !client->has_certificate && connects > 0 && encrypted_us > 0 &&
           (code == CURLE_SEND_ERROR || code == CURLE_RECV_ERROR);
}

bool http_client_describe(const struct http_client *client, CURLcode code, const char *where,
                          struct error *error)
{
    const struct http_names *names = client->names;
    struct error advice = {""};

    if (http_wants_certificate(client, code))
        error_set(&advice, "; the server asks for a client certificate: set %s and %s", names->cert,
                  names->key);
    else if (http_may_want_certificate(client, code))
        error_set(&advice, "; if the server asks for a client certificate, set %s and %s",
                  names->cert, names->key);
    else if (code == CURLE_SSL_CONNECT_ERROR)
        error_set(&advice, "; if the server speaks plain HTTP, write http:// in %s", names->url);
    else if (code == CURLE_PEER_FAILED_VERIFICATION)
        error_set(&advice, "; if this is the right server, set %s to the CA of its certificate",
                  names->ca);
    else if (code == CURLE_SSL_CACERT_BADFILE)
        error_set(&advice, "; see %s", names->ca);
    else if (code == CURLE_SSL_CERTPROBLEM ||
             code == CURLE_BAD_FUNCTION_ARGUMENT) /* libcurl 8.23 reports a wrong key as
                                                     CURLE_BAD_FUNCTION_ARGUMENT */
        error_set(&advice, "; see %s and %s", names->cert, names->key);
    error_set(error, "%.400s: %s%s", where,
              client->reason[0] ? client->reason : curl_easy_strerror(code), advice.text);
    return advice.text[0] != '\0';
}

/* ---- the shown part of an endpoint ----------------------------------------------------------- */

/* Removes everything up to the last '@' before the path. */
static void remove_user(char *url)
{
    char *host = strstr(url, "//");
    char *at = NULL;

    host = host ? host + 2 : url;
    for (char *c = host; *c && *c != '/'; c++)
        if (*c == '@')
            at = c;
    if (at)
        memmove(host, at + 1, strlen(at + 1) + 1);
}

char *endpoint_shown(const char *endpoint)
{
    char *shown = strdup(endpoint);

    if (!shown)
        return NULL;
    if (strncasecmp(shown, "file:", 5) != 0) {
        shown[strcspn(shown, "?#")] = '\0';
        remove_user(shown);
    }
    string_make_plain(shown);
    if (!utf8_is_valid(text_of(shown))) {
        for (char *c = shown; *c; c++)
            if ((unsigned char)*c > 0x7f)
                *c = '?';
    }
    return shown;
}

const char *endpoint_unparsed(const char *endpoint)
{
    for (const char *c = endpoint; *c; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f || strchr("@?#", *c))
            return "(not shown)";
    }
    return endpoint;
}

/* ---- checking and completing ----------------------------------------------------------------- */

/* expected: NULL for any text that is not empty. */
static bool part_is(CURLU *parsed, CURLUPart part, const char *expected)
{
    char *text = NULL;
    const bool is = curl_url_get(parsed, part, &text, 0) == CURLUE_OK &&
                    (expected ? strcasecmp(text, expected) == 0 : text && text[0]);

    curl_free(text);
    return is;
}

static bool is_loopback(const char *host)
{
    struct in_addr address;

    return inet_pton(AF_INET, host, &address) == 1 && ntohl(address.s_addr) >> 24 == 127;
}

static bool is_local(CURLU *parsed)
{
    char *host = NULL;
    bool local = false;

    if (curl_url_get(parsed, CURLUPART_HOST, &host, 0) == CURLUE_OK)
        local =
            strcasecmp(host, "localhost") == 0 || strcmp(host, "[::1]") == 0 || is_loopback(host);
    curl_free(host);
    return local;
}

static CURLUcode http_url_complete(CURLU *parsed, const char *path, struct http_url *url)
{
    char *text = NULL;
    CURLUcode code = CURLUE_OK;

    if (*path && part_is(parsed, CURLUPART_PATH, "/") && !part_is(parsed, CURLUPART_QUERY, NULL))
        code = curl_url_set(parsed, CURLUPART_PATH, path, 0);
    if (code == CURLUE_OK)
        code = curl_url_get(parsed, CURLUPART_URL, &text, 0);
    if (code == CURLUE_OK) {
        url->text = strdup(text);
        url->shown = endpoint_shown(text);
        if (!url->text || !url->shown)
            code = CURLUE_OUT_OF_MEMORY;
    }
    curl_free(text);
    return code;
}

static const char *http_url_reason(CURLUcode code)
{
#if LIBCURL_VERSION_NUM >= 0x075000
    return curl_url_strerror(code);
#else
    return code == CURLUE_OUT_OF_MEMORY ? "out of memory" : "not a URL";
#endif
}

bool http_url_parse(struct http_url *url, const char *path, const char *endpoint,
                    struct error *error)
{
    CURLU *parsed = curl_url();
    CURLUcode code =
        parsed ? curl_url_set(parsed, CURLUPART_URL, endpoint, 0) : CURLUE_OUT_OF_MEMORY;

    *url = (struct http_url){0};
    if (code == CURLUE_OK &&
        (part_is(parsed, CURLUPART_USER, NULL) || part_is(parsed, CURLUPART_PASSWORD, NULL))) {
        /* the URL is not shown: it contains the password */
        error_set(error, "endpoint: the URL holds credentials, which all users of this machine can "
                         "see: move them to basic-auth-file or basic-auth-env");
        curl_url_cleanup(parsed);
        return false;
    }
    if (code == CURLUE_OK) {
        url->is_local = is_local(parsed);
        url->is_plain = part_is(parsed, CURLUPART_SCHEME, "http");
        code = http_url_complete(parsed, path, url);
    }
    curl_url_cleanup(parsed);
    return code == CURLUE_OK ||
           error_set(error, "endpoint \"%s\": expected http://HOST[:PORT]%s: %s",
                     endpoint_unparsed(endpoint), path, http_url_reason(code));
}

void http_url_free(struct http_url *url)
{
    free(url->text);
    free(url->shown);
    url->text = url->shown = NULL;
}
