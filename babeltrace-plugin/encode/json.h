/*
 * JSON primitives that write at a pointer into reserved room.
 *
 * Strings come from traces and may be any bytes. The output is valid UTF-8 and valid JSON, with
 * U+FFFD in place of invalid bytes (Unicode 15, 3.9, "substitution of maximal subparts").
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_JSON_H
#define BLKIN_OUTPUT_JSON_H

#include "babeltrace-plugin/base/text.h"

#include <endian.h>
#include <stdint.h>

/*
 * The room for each primitive. A string needs \u00XX for every byte, the note of a cut, and two
 * quotes. Two more parts are the escape of json_put_string()'s last byte, and whole words that end
 * behind the string.
 */
#define JSON_STRING_MAX(length) ((length)*6 + 72)
#define JSON_INTEGER_MAX        28

/* Writes a literal without its NUL. */
#define JSON_PUT_LITERAL(at, literal) json_put_bytes((at), (literal), sizeof(literal) - 1)

static inline char *json_put_bytes(char *at, const char *bytes, size_t length)
{
    memcpy(at, bytes, length);
    return at + length;
}

char *json_put_integer(char *at, int64_t value);

/* The last time written: near times have the same first eight digits. */
struct json_time {
    uint64_t upper;
    uint64_t digits;
};

/* Same as json_put_integer(), but faster. `last` begins as {0}. */
char *json_put_time(char *at, struct json_time *last, int64_t us);

/* The byte in each byte of a word. */
#define JSON_REPEAT(byte) (UINT64_C(0x0101010101010101) * (byte))

/* Returns eight digits: spreads the nibbles to one per byte, then adds '0'..'9' or 'a'..'f'. */
static inline uint64_t json_hex_word(uint32_t value)
{
    uint64_t word = value;
    uint64_t is_letter;

    word = (word << 16 | word) & UINT64_C(0x0000ffff0000ffff);
    word = (word << 8 | word) & UINT64_C(0x00ff00ff00ff00ff);
    word = (word << 4 | word) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    is_letter = (word + JSON_REPEAT(6)) >> 4 & JSON_REPEAT(1);
    return htobe64(word + JSON_REPEAT('0') + is_letter * ('a' - '0' - 10));
}

/* Writes 16 lower-case hexadecimal digits. */
static inline char *json_put_hex(char *at, uint64_t value)
{
    const uint64_t words[2] = {json_hex_word((uint32_t)(value >> 32)),
                               json_hex_word((uint32_t)value)};

    return json_put_bytes(at, (const char *)words, sizeof(words));
}

/* Writes the text in quotes. A text of more than limit bytes is cut, with a note of its length;
 * then *cut is set. `pipe` is written for '|' (see zipkin_json.c), and may be '|'. */
char *json_put_string(char *at, struct text text, size_t limit, char pipe, bool *cut);

#endif
