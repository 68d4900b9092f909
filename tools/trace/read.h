/*
 * The bytes of a file or of a server's answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_READ_H
#define BLKIN_TOOLS_READ_H

#include <stdbool.h>
#include <stddef.h>

struct bytes {
    char *data; /* free(3) it, whether reading worked or not */
    size_t length;
    size_t room;
};

bool is_url(const char *source);

/* How messages name it. */
static inline const char *source_text(const char *source)
{
    return source[0] == '-' && !source[1] ? "standard input" : source;
}

/* Reports by itself what went wrong. */
bool read_source(const char *source, struct bytes *bytes);

#endif
