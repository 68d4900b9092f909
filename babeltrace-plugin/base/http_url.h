/*
 * The URL of a collector, from what a user gives.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_HTTP_URL_H
#define BLKIN_OUTPUT_HTTP_URL_H

#include "error.h"

#include <stdbool.h>

struct http_url {
    char *text;    /* with the path if it came without one */
    char *shown;   /* for messages: see endpoint_shown() */
    bool is_local; /* the host is this machine: no network in between */
    bool is_plain; /* no TLS */
};

/* path is for one that has none: "/api/v2/spans"; "": it stays so. Returns false with error set. */
bool http_url_parse(struct http_url *url, const char *path, const char *endpoint,
                    struct error *error);

void http_url_free(struct http_url *url);

/*
 * A copy of an endpoint, of whatever scheme, that messages and everybody may see: valid UTF-8
 * without control characters, and without what may hold a secret in a URL: user, password, query,
 * fragment. Returns NULL when out of memory; free() it.
 */
char *endpoint_shown(const char *endpoint);

/* One that cannot be parsed may hold a secret anywhere: for messages, itself or "(not shown)". */
const char *endpoint_unparsed(const char *endpoint);

#endif
