/*
 * Finds the protocol of an endpoint.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "protocol.h"

#include <string.h>
#include <strings.h>

char protocol_first_byte(struct text body)
{
    for (size_t i = 0; i < body.length; i++) {
        const char c = body.data[i];

        if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
            return c;
    }
    return 0;
}

bool protocol_is_page(struct text type)
{
    return type.length >= 5 && strncasecmp(type.data, "text/", 5) == 0;
}

/* Returns true if the URL's path ends with `path`. */
static bool has_path(const char *endpoint, const char *path)
{
    const size_t length = strcspn(endpoint, "?#"), size = strlen(path);
    const size_t end = length && endpoint[length - 1] == '/' ? length - 1 : length;

    return end >= size && memcmp(endpoint + end - size, path, size) == 0;
}

static const struct protocol *const protocols[] = {&zipkin_protocol, &otlp_protocol};
#define PROTOCOLS (sizeof(protocols) / sizeof(protocols[0]))

const struct protocol *protocol_of(enum protocol_format format, const char *endpoint)
{
    for (size_t i = 0; i < PROTOCOLS; i++) {
        if (format == FORMAT_AUTO ? endpoint && has_path(endpoint, protocols[i]->path)
                                  : protocols[i]->format == format)
            return protocols[i];
    }
    return &zipkin_protocol;
}

const struct protocol *protocol_named(const char *name)
{
    for (size_t i = 0; name && i < PROTOCOLS; i++) {
        if (strcmp(protocols[i]->name, name) == 0)
            return protocols[i];
    }
    return &zipkin_protocol;
}
