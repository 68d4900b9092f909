/*
 * JSON primitives that write at a pointer into reserved room.
 *
 * Strings come from traces and may be any bytes. The output is valid UTF-8 and valid JSON, with
 * U+FFFD in place of invalid bytes (Unicode 15, 3.9, "substitution of maximal subparts").
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ENCODE_JSON_H
#define BLKIN_ENCODE_JSON_H

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

/* A word with this value in each of its bytes. */
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

/* ---- plain texts ----------------------------------------------------------------------------- */

/*
 * Copies texts that are nearly always plain: plain bytes are written unchanged. One test covers
 * sixteen bytes, in a few instructions of gcc and clang.
 */
/* signed: bytes beyond ASCII are less than 0 */
typedef signed char plain_bytes __attribute__((vector_size(16)));
typedef uint64_t plain_words __attribute__((vector_size(16)));

/* True if all bytes are plain. Blanks, which pad short texts, are plain. */
typedef bool plain_fn(plain_bytes bytes);

#define PLAIN_INLINE static inline __attribute__((always_inline))

PLAIN_INLINE bool plain_copy_16(char *at, const char *bytes, plain_fn *are_plain)
{
    plain_bytes block;

    memcpy(&block, bytes, sizeof(block));
    memcpy(at, &block, sizeof(block));
    return are_plain(block);
}

/* Copies 4 to 15 bytes in two overlapping halves, without a loop. */
PLAIN_INLINE bool plain_copy_short(char *at, struct text text, plain_fn *are_plain)
{
    const size_t size = text.length < 8 ? 4 : 8, second = text.length - size;
    uint64_t first8, last8;
    uint32_t first4, last4;

    if (size == 8) {
        memcpy(&first8, text.data, 8);
        memcpy(&last8, text.data + second, 8);
        memcpy(at, &first8, 8);
        memcpy(at + second, &last8, 8);
        return are_plain((plain_bytes)(plain_words){first8, last8});
    }
    memcpy(&first4, text.data, 4);
    memcpy(&last4, text.data + second, 4);
    memcpy(at, &first4, 4);
    memcpy(at + second, &last4, 4);
    first8 = first4 | (uint64_t)last4 << 32;
    return are_plain((plain_bytes)(plain_words){first8, first8});
}

/* Returns false if the text is not plain: then the output is undefined. */
PLAIN_INLINE bool plain_copy(char *at, struct text text, plain_fn *are_plain)
{
    uint64_t word = UINT64_C(0x2020202020202020);
    size_t done = 0;

    if (text.length < 4) {
        for (size_t i = 0; i < text.length; i++) {
            at[i] = text.data[i];
            word = word << 8 | (unsigned char)text.data[i];
        }
        return are_plain((plain_bytes)(plain_words){word, word});
    }
    if (text.length < 16)
        return plain_copy_short(at, text, are_plain);
    for (; text.length - done > 16; done += 16) {
        if (!plain_copy_16(at + done, text.data + done, are_plain))
            return false;
    }
    done = text.length - 16;
    return plain_copy_16(at + done, text.data + done, are_plain);
}

#endif
