/* SPDX-License-Identifier: BSD-2-Clause */
#include "utf8.h"

#define UTF8_BYTES_MAX 4 /* of a sequence */

/* The range of a sequence's second byte. The third and fourth bytes are 80..BF (Unicode, table
 * 3-7). */
struct lead {
    unsigned length; /* of the sequence; 0: not a lead byte */
    unsigned char low;
    unsigned char high;
};

static struct lead lead_of(unsigned char byte)
{
    if (byte < 0x80)
        return (struct lead){1, 0, 0};
    if (byte >= 0xc2 && byte <= 0xdf)
        return (struct lead){2, 0x80, 0xbf};
    if (byte == 0xe0)
        return (struct lead){3, 0xa0, 0xbf};
    if (byte == 0xed)
        return (struct lead){3, 0x80, 0x9f};
    if (byte >= 0xe1 && byte <= 0xef)
        return (struct lead){3, 0x80, 0xbf};
    if (byte == 0xf0)
        return (struct lead){4, 0x90, 0xbf};
    if (byte >= 0xf1 && byte <= 0xf3)
        return (struct lead){4, 0x80, 0xbf};
    if (byte == 0xf4)
        return (struct lead){4, 0x80, 0x8f};
    return (struct lead){0, 0, 0};
}

/* Returns how many bytes of the first sequence are valid. *is_whole: the sequence is complete. */
static size_t utf8_sequence(const char *bytes, size_t length, bool *is_whole)
{
    const unsigned char *from = (const unsigned char *)bytes;
    const struct lead lead = lead_of(from[0]);
    unsigned char low = lead.low;
    unsigned char high = lead.high;
    size_t taken = 1;

    while (taken < lead.length && taken < length && from[taken] >= low && from[taken] <= high) {
        taken++;
        low = 0x80;
        high = 0xbf;
    }
    *is_whole = taken == lead.length;
    return taken;
}

size_t utf8_put(char **at, const char *bytes, size_t length)
{
    bool is_whole;
    const size_t taken = utf8_sequence(bytes, length, &is_whole);

    *at = text_copy(*at, is_whole ? (struct text){bytes, taken} : text_of(UTF8_REPLACEMENT));
    return taken;
}

bool utf8_is_valid(struct text text)
{
    bool is_valid = true;

    for (size_t at = 0; at < text.length && is_valid;)
        at += utf8_sequence(text.data + at, text.length - at, &is_valid);
    return is_valid;
}

struct text utf8_beginning(struct text text, size_t limit)
{
    size_t length = limit;

    while (length && limit - length < 3 && ((unsigned char)text.data[length] & 0xc0) == 0x80)
        length--;
    return (struct text){text.data, length};
}

size_t utf8_decode(const char *string, uint32_t *code)
{
    bool is_whole;
    const size_t length = utf8_sequence(string, strnlen(string, UTF8_BYTES_MAX), &is_whole);

    *code = (unsigned char)string[0];
    if (!is_whole)
        return 0;
    if (length > 1)
        *code &= 0xffu >> (length + 1);
    for (size_t i = 1; i < length; i++)
        *code = *code << 6 | ((unsigned char)string[i] & 0x3f);
    return length;
}
