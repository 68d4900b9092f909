/* SPDX-License-Identifier: BSD-2-Clause */
#include "json.h"

#include "babeltrace-plugin/base/utf8.h"

static const char hex_digits[] = "0123456789abcdef";

#define TEN_TO_8  UINT64_C(100000000)
#define TEN_TO_16 (TEN_TO_8 * TEN_TO_8)

/*
 * Splits a value below 10^8 into eight decimal digits: bytes 0 to 9, the first digit in the lowest
 * byte. The steps split the value into numbers of four, two and one digits, all of a word at once.
 * The products with 10486 / 2^20 and 103 / 2^10 divide by 100 and 10 in these ranges.
 */
static inline uint64_t decimal_digits(uint64_t value)
{
    const uint64_t fours = value / 10000 | value % 10000 << 32;
    const uint64_t upper_twos = (fours * 10486 >> 20) & UINT64_C(0x0000007f0000007f);
    const uint64_t twos = upper_twos | (fours - upper_twos * 100) << 16;
    const uint64_t tens = (twos * 103 >> 10) & UINT64_C(0x000f000f000f000f);

    return tens | (twos - tens * 10) << 8;
}

static inline char *write_digits(char *at, uint64_t digits, unsigned count)
{
    const uint64_t word = htole64((digits + JSON_REPEAT('0')) >> (8 - count) * 8);

    memcpy(at, &word, sizeof(word));
    return at + count;
}

/* Writes without leading zeros. Predicted branches count the digits, so the processor continues
 * with the text after the number before the digits are known. */
static inline char *write_first_digits(char *at, uint64_t value)
{
    unsigned count = 8;

    if (value < 10000000) {
        count = 1;
        for (uint64_t power = 10; value >= power; power *= 10)
            count++;
    }
    return write_digits(at, decimal_digits(value), count);
}

char *json_put_integer(char *at, int64_t value)
{
    uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

    if (value < 0)
        *at++ = '-';
    if (rest < TEN_TO_8)
        return write_first_digits(at, rest);
    if (rest < TEN_TO_16) {
        at = write_first_digits(at, rest / TEN_TO_8);
    } else {
        at = write_first_digits(at, rest / TEN_TO_16);
        rest %= TEN_TO_16;
        at = write_digits(at, decimal_digits(rest / TEN_TO_8), 8);
    }
    return write_digits(at, decimal_digits(rest % TEN_TO_8), 8);
}

char *json_put_time(char *at, struct json_time *last, int64_t us)
{
    const uint64_t upper = (uint64_t)us / TEN_TO_8;

    if (us < (int64_t)(TEN_TO_16 / 10) || us >= (int64_t)TEN_TO_16)
        return json_put_integer(at, us);
    if (upper != last->upper) {
        last->upper = upper;
        last->digits = decimal_digits(upper);
    }
    at = write_digits(at, last->digits, 8);
    return write_digits(at, decimal_digits((uint64_t)us % TEN_TO_8), 8);
}

/* Returns 1 for bytes that are written unchanged: printable ASCII except '"', '\\' and '|'. */
static inline int is_plain(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f && byte != '"' && byte != '\\' && byte != '|';
}

/* Returns true if is_plain() is 1 for all sixteen bytes. */
static inline bool is_plain_16(plain_bytes bytes)
{
    const plain_words others = (plain_words)((bytes < 0x20) | (bytes == 0x7f) | (bytes == '"') |
                                             (bytes == '\\') | (bytes == '|'));

    return (others[0] | others[1]) == 0;
}

static char *escape(char *at, unsigned char byte)
{
    switch (byte) {
    case '\0': /* legal, but many parsers and databases refuse this byte */
        return JSON_PUT_LITERAL(at, UTF8_REPLACEMENT);
    case '"':
        return JSON_PUT_LITERAL(at, "\\\"");
    case '\\':
        return JSON_PUT_LITERAL(at, "\\\\");
    case '\n':
        return JSON_PUT_LITERAL(at, "\\n");
    case '\t':
        return JSON_PUT_LITERAL(at, "\\t");
    default:
        at = JSON_PUT_LITERAL(at, "\\u00");
        *at++ = hex_digits[byte >> 4];
        *at++ = hex_digits[byte & 15];
        return at;
    }
}

/* Writes one character, and returns the number of bytes read. */
static size_t write_character(char **at, const unsigned char *bytes, size_t length, char pipe)
{
    if (*bytes == '|')
        *(*at)++ = pipe;
    else if (is_plain(*bytes))
        *(*at)++ = (char)*bytes;
    else if (*bytes < 0x80)
        *at = escape(*at, *bytes);
    else
        return utf8_put(at, (const char *)bytes, length);
    return 1;
}

/* Writes any text; copies plain stretches in steps of sixteen bytes. */
static char *write_mixed(char *at, struct text text, char pipe)
{
    const unsigned char *bytes = (const unsigned char *)text.data;
    size_t length = text.length;

    while (length) {
        size_t taken = sizeof(plain_bytes);

        if (length >= taken && plain_copy_16(at, (const char *)bytes, is_plain_16))
            at += taken;
        else
            taken = write_character(&at, bytes, length, pipe);
        bytes += taken;
        length -= taken;
    }
    return at;
}

/* Writes the last letter of a string that ends in yAnnotations as an escape. Zipkin's HTTP
 * collector takes a body with such a string for the old v1 format, and refuses the body
 * (ZipkinHttpCollector, 3.6). */
static char *hide_v1_marker(char *start, char *at)
{
    static const char marker[] = "yAnnotations";
    const size_t length = sizeof(marker) - 1;

    if ((size_t)(at - start) < length || memcmp(at - length, marker, length) != 0)
        return at;
    return JSON_PUT_LITERAL(at - 1, "\\u0073");
}

static char *write_beginning(char *at, struct text text, size_t limit, char pipe)
{
    const struct text first = utf8_beginning(text, limit);

    at = write_mixed(at, first, pipe);
    at = JSON_PUT_LITERAL(at, "...[");
    at = json_put_integer(at, (int64_t)first.length);
    at = JSON_PUT_LITERAL(at, " of ");
    at = json_put_integer(at, (int64_t)text.length);
    return JSON_PUT_LITERAL(at, " bytes]");
}

char *json_put_string(char *at, struct text text, size_t limit, char pipe, bool *cut)
{
    char *start;

    *at++ = '"';
    start = at;
    if (text.length > limit) {
        at = write_beginning(at, text, limit, pipe);
        *cut = true;
    } else {
        at = plain_copy(at, text, is_plain_16) ? at + text.length : write_mixed(at, text, pipe);
        if (at[-1] == 's')
            at = hide_v1_marker(start, at);
    }
    *at++ = '"';
    return at;
}
