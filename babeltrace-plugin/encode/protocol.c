/*
 * Which protocol it is.
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

/* Does the URL's path end with this? */
static bool has_path(const char *endpoint, const char *path)
{
    const size_t length = strcspn(endpoint, "?#"), size = strlen(path);
    const size_t end = length && endpoint[length - 1] == '/' ? length - 1 : length;

    return end >= size && memcmp(endpoint + end - size, path, size) == 0;
}

const struct protocol *protocol_of(enum format format, const char *endpoint)
{
    if (format == FORMAT_AUTO && endpoint && has_path(endpoint, otlp_protocol.path))
        return &otlp_protocol;
    return format == FORMAT_OTLP ? &otlp_protocol : &zipkin_protocol;
}
