/*
 * The set-up of libcurl, the same for every HTTP client of the project: protocols, TLS,
 * credentials, time-outs, headers, and the words for what went wrong. A caller only runs its
 * transfers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_HTTP_CLIENT_H
#define BLKIN_BASE_HTTP_CLIENT_H

#include "error.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

/* How messages call the settings of a client. */
struct http_names {
    const char *url, *ca, *cert, *key;
};

/* The paths of PEM files; NULL or "": none. */
struct http_tls {
    const char *ca;   /* whom to trust, in place of the system's authorities */
    const char *cert; /* our certificate; the key may be in the same file */
    const char *key;
};

/* All texts are copied. */
struct http_setup {
    const struct http_names *names; /* static */
    const char *url;                /* NULL: each transfer sets its own */
    int64_t timeout_ms;             /* for a whole transfer; the connection gets 5 s of it */
    struct http_tls tls;
    curl_write_callback take_header; /* NULL: nobody looks at headers */
    curl_write_callback take_body;
    void *context; /* of both callbacks */
};

/* Zeros are a closed one. It must not move while it is open. */
struct http_client {
    CURL *curl;
    const struct http_names *names;
    bool has_certificate;
    char reason[CURL_ERROR_SIZE]; /* libcurl's words about the last transfer; "": none */
};

/* Can all files be read, and does a key have its certificate? Returns false with error set. */
bool http_tls_check(const struct http_tls *tls, const struct http_names *names,
                    struct error *error);

/* Returns false when out of memory; close it then, too. */
bool http_client_open(struct http_client *client, const struct http_setup *setup);
void http_client_close(struct http_client *client);

/* Each request shows a token, or a "user:password", from now on. Return false when out of memory.
 */
bool http_client_set_token(struct http_client *client, const char *token);
bool http_client_set_password(struct http_client *client, const char *user_and_password);

/* The headers of requests with a body; encoding: "gzip", or NULL. Returns NULL when out of memory.
 */
struct curl_slist *http_headers(const char *content_type, const char *encoding);

/* Sets error to why the last transfer failed; where is its URL as messages may show it. Returns
 * whether the message tells the operator what to do. */
bool http_client_describe(const struct http_client *client, CURLcode code, const char *where,
                          struct error *error);

#endif
