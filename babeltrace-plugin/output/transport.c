/*
 * Choice of the transport by the endpoint's scheme.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "transport.h"

struct transport *transport_open(const char *endpoint, struct error *error)
{
    static const char file_scheme[] = "file:";

    if (strncmp(endpoint, "http://", 7) == 0 || strncmp(endpoint, "https://", 8) == 0)
        return http_transport_open(endpoint, error);
    if (strncmp(endpoint, file_scheme, sizeof(file_scheme) - 1) == 0)
        return file_transport_open(endpoint + sizeof(file_scheme) - 1, error);
    error_set(error,
              "endpoint \"%s\": expected http://HOST[:PORT]/api/v2/spans, https://... or file:PATH",
              endpoint);
    return NULL;
}
