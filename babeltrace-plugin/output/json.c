/*
 * JSON primitives.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "json.h"

static const char hex_digits[] = "0123456789abcdef";

char *json_integer(char *at, int64_t value)
{
    char digits[JSON_INTEGER_MAX];
    char *first = digits + sizeof(digits);
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    do {
        *--first = (char)('0' + rest % 10);
        rest /= 10;
    } while (rest);
    if (value < 0)
        *at++ = '-';
    return json_bytes(at, first, (size_t)(digits + sizeof(digits) - first));
}

char *json_hex(char *at, uint64_t value)
{
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = hex_digits[(value >> shift) & 15];
    return at;
}

/* 1 for the bytes that a JSON string may hold as they are: printable ASCII but '"' and '\\'. */
static inline int is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\';
}

static char *escape(char *at, unsigned char byte)
{
    switch (byte) {
    case '"':
        return JSON_LITERAL(at, "\\\"");
    case '\\':
        return JSON_LITERAL(at, "\\\\");
    case '\n':
        return JSON_LITERAL(at, "\\n");
    case '\t':
        return JSON_LITERAL(at, "\\t");
    default:
        at = JSON_LITERAL(at, "\\u00");
        *at++ = hex_digits[byte >> 4];
        *at++ = hex_digits[byte & 15];
        return at;
    }
}

/* The range of a sequence's second byte; the third and fourth are 80..BF (Unicode, table 3-7). */
struct utf8_lead {
    unsigned length; /* of the sequence; 0: not a lead byte */
    unsigned char low;
    unsigned char high;
};

static struct utf8_lead utf8_lead(unsigned char byte)
{
    if (byte >= 0xc2 && byte <= 0xdf)
        return (struct utf8_lead){2, 0x80, 0xbf};
    if (byte == 0xe0)
        return (struct utf8_lead){3, 0xa0, 0xbf};
    if (byte == 0xed)
        return (struct utf8_lead){3, 0x80, 0x9f};
    if (byte >= 0xe1 && byte <= 0xef)
        return (struct utf8_lead){3, 0x80, 0xbf};
    if (byte == 0xf0)
        return (struct utf8_lead){4, 0x90, 0xbf};
    if (byte >= 0xf1 && byte <= 0xf3)
        return (struct utf8_lead){4, 0x80, 0xbf};
    if (byte == 0xf4)
        return (struct utf8_lead){4, 0x80, 0x8f};
    return (struct utf8_lead){0, 0, 0};
}

/* Writes one sequence, or U+FFFD for as much of it as is there, and returns the bytes it took. */
static size_t utf8_sequence(char **at, const unsigned char *bytes, size_t length)
{
    const struct utf8_lead lead = utf8_lead(bytes[0]);
    unsigned char low = lead.low;
    unsigned char high = lead.high;
    size_t taken = 1;

    while (taken < lead.length && taken < length && bytes[taken] >= low && bytes[taken] <= high) {
        taken++;
        low = 0x80;
        high = 0xbf;
    }
    if (lead.length && taken == lead.length)
        *at = json_bytes(*at, (const char *)bytes, taken);
    else
        *at = JSON_LITERAL(*at, "\xef\xbf\xbd");
    return taken;
}

/*
 * Zipkin's HTTP collector takes a body in which the bytes yAnnotations" occur for the old v1 format
 * and refuses all of it (ZipkinHttpCollector, 3.6): the last letter is written as an escape.
 */
static char *hide_v1_marker(char *start, char *at)
{
    static const char marker[] = "yAnnotations";
    const size_t length = sizeof(marker) - 1;

    if ((size_t)(at - start) < length || memcmp(at - length, marker, length) != 0)
        return at;
    return JSON_LITERAL(at - 1, "\\u0073");
}

char *json_string(char *at, struct text text, char pipe)
{
    const unsigned char *bytes = (const unsigned char *)text.data;
    size_t length = text.length;
    char *start;

    *at++ = '"';
    start = at;
    while (length) {
        size_t taken = 1;

        if (*bytes == '|')
            *at++ = pipe;
        else if (is_plain(*bytes))
            *at++ = (char)*bytes;
        else if (*bytes < 0x80)
            at = escape(at, *bytes);
        else
            taken = utf8_sequence(&at, bytes, length);
        bytes += taken;
        length -= taken;
    }
    at = hide_v1_marker(start, at);
    *at++ = '"';
    return at;
}
