/*
 * First bytes of a request, as a tag.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "payload.h"

#include "config_text.h"

#include <stdbool.h>
#include <string.h>

static bool payload_is_printable(unsigned char byte)
{
    return byte >= ' ' && byte < 0x7f && byte != '\\';
}

/* Control characters are in no text, but for these. */
static bool payload_is_text(const char *first, size_t length)
{
    bool is_text = true;

    for (size_t i = 0; i < length && is_text; i++)
        is_text = (unsigned char)first[i] >= ' ' ? first[i] != 0x7f
                                                 : first[i] && strchr("\t\r\n", first[i]);
    return is_text;
}

void payload_tag(struct blkin_span *span, const char *first, size_t length)
{
    char text[4 * PRELOAD_PAYLOAD_MAX];
    size_t used = 0;

    if (payload_is_text(first, length)) {
        blkin_span_tag_string_n(span, "payload", first, length);
        return;
    }
    for (size_t i = 0; i < length; i++) {
        const unsigned char byte = (unsigned char)first[i];

        if (payload_is_printable(byte)) {
            text[used++] = first[i];
            continue;
        }
        text[used++] = '\\';
        text[used++] = 'x';
        text[used++] = "0123456789abcdef"[byte >> 4];
        text[used++] = "0123456789abcdef"[byte & 15];
    }
    blkin_span_tag_string_n(span, "payload", text, used);
}
