/*
 * The set-up of libcurl, the same for every HTTP client of the project: protocols, TLS,
 * credentials, time-outs, headers, error messages. A caller only runs transfers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_HTTP_CLIENT_H
#define BLKIN_BASE_HTTP_CLIENT_H

#include "error.h"

#include <curl/curl.h>
#include <stdbool.h>
#include <stdint.h>

/* The names of a client's settings, for messages. */
struct http_names {
    const char *url, *ca, *cert, *key;
};

/* The paths of PEM files; NULL or "": none. */
struct http_tls {
    const char *ca;   /* authorities to trust, in place of the system's authorities */
    const char *cert; /* our certificate; the same file may have the key */
    const char *key;
};

/* The client copies all texts. */
struct http_setup {
    const struct http_names *names; /* static */
    const char *url;                /* NULL: each transfer sets a URL */
    int64_t timeout_ms;             /* of a whole transfer; connecting may take 5 s of this time */
    struct http_tls tls;
    curl_write_callback take_header; /* NULL: headers are ignored */
    curl_write_callback take_body;
    void *context; /* passed to both callbacks */
};

/* Zeros are a closed client. An open client must not move. */
struct http_client {
    CURL *curl;
    const struct http_names *names;
    bool has_certificate;
    char reason[CURL_ERROR_SIZE]; /* libcurl's message about the last transfer; "": none */
};

/* Checks that all files can be read, and that a key has a certificate. Returns false with error
 * set. */
bool http_tls_check(const struct http_tls *tls, const struct http_names *names,
                    struct error *error);

/* Returns false when out of memory: then the caller closes the client, too. */
bool http_client_open(struct http_client *client, const struct http_setup *setup);
void http_client_close(struct http_client *client);

/* Sets the token, or "user:password", of all later requests. Returns false when out of memory. */
bool http_client_set_token(struct http_client *client, const char *token);
bool http_client_set_password(struct http_client *client, const char *user_and_password);

/* Returns the headers of requests with a body; NULL when out of memory. encoding: "gzip", or
 * NULL. */
struct curl_slist *http_headers(const char *content_type, const char *encoding);

/* Sets error to the reason why the last transfer failed. where: the URL as messages may show it.
 * Returns true if the message tells the operator how to mend the problem. */
bool http_client_describe(const struct http_client *client, CURLcode code, const char *where,
                          struct error *error);

/* ---- URLs of collectors ---------------------------------------------------------------------- */

struct http_url {
    char *text;    /* with the default path if the user gave no path */
    char *shown;   /* for messages: see endpoint_shown() */
    bool is_local; /* true: the host is this machine, with no network in between */
    bool is_plain; /* no TLS */
};

/* path: the default path, such as "/api/v2/spans"; "": no default. Returns false with error set. */
bool http_url_parse(struct http_url *url, const char *path, const char *endpoint,
                    struct error *error);

void http_url_free(struct http_url *url);

/*
 * Copies an endpoint of any scheme for messages: valid UTF-8, without control characters. Except
 * for file:, user, password, query and fragment are removed, because they may be secrets. Returns
 * NULL when out of memory; the caller frees the copy.
 */
char *endpoint_shown(const char *endpoint);

/* Returns the endpoint, or "(not shown)" if it may contain a secret: for an endpoint that has no
 * valid form. */
const char *endpoint_unparsed(const char *endpoint);

#endif
