/*
 * Choice of the transport by the endpoint's scheme.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

#include <strings.h>

static bool has_scheme(const char *endpoint, const char *scheme)
{
    return strncasecmp(endpoint, scheme, strlen(scheme)) == 0;
}

struct transport *transport_open(const struct transport_options *options, struct error *error)
{
    static const char file_scheme[] = "file:";
    const char *endpoint = options->endpoint;

    if (has_scheme(endpoint, "http://") || has_scheme(endpoint, "https://"))
        return http_transport_open(options, error);
    if (has_scheme(endpoint, file_scheme))
        return file_transport_open(endpoint + strlen(file_scheme), error);
    error_set(error,
              "endpoint \"%s\": expected http://HOST[:PORT]/api/v2/spans, https://... or file:PATH",
              endpoint);
    return NULL;
}
