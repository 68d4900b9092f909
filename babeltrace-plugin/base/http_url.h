/*
 * The URL of a collector.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_HTTP_URL_H
#define BLKIN_OUTPUT_HTTP_URL_H

#include "error.h"

#include <stdbool.h>

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
 * Copies an endpoint of any scheme for messages: valid UTF-8, without control characters. User,
 * password, query and fragment are removed, because they may be secrets. Returns NULL when out of
 * memory; the caller frees the copy.
 */
char *endpoint_shown(const char *endpoint);

/* Returns the endpoint, or "(not shown)" if it may contain a secret: for an endpoint that has no
 * valid form. */
const char *endpoint_unparsed(const char *endpoint);

#endif
