/*
 * Protobuf primitives that write at a pointer into reserved room.
 *
 * The length of a message stands before the message, and is known after it. So one byte is
 * reserved, and the message moves up if the length needs two bytes. Texts may be any bytes; the
 * output is valid UTF-8 without NUL.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PROTOBUF_H
#define BLKIN_OUTPUT_PROTOBUF_H

#include "plain.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

/* A field's tag of one byte, for numbers below 16. */
#define PB_VARINT(number)  ((char)((number) << 3))
#define PB_FIXED64(number) ((char)((number) << 3 | 1))
#define PB_BYTES(number)   ((char)((number) << 3 | 2)) /* texts and messages */

#define PB_VARINT_MAX 10

/* The room for a text: tag, length, U+FFFD for each byte, the note of a cut, and whole words that
 * end behind the text. */
#define PB_TEXT_MAX(length) ((length)*3 + 96)

static inline char *pb_put_varint(char *at, uint64_t value)
{
    for (; value >= 128; value >>= 7)
        *at++ = (char)(value | 128);
    *at++ = (char)value;
    return at;
}

static inline char *pb_put_fixed32(char *at, uint32_t value)
{
    value = htole32(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

static inline char *pb_put_fixed64(char *at, uint64_t value)
{
    value = htole64(value);
    memcpy(at, &value, sizeof(value));
    return at + sizeof(value);
}

/* Writes half a trace id, or a span id. */
static inline char *pb_put_id(char *at, uint64_t id)
{
    id = htobe64(id);
    memcpy(at, &id, sizeof(id));
    return at + sizeof(id);
}

/* Makes room for a length of two bytes or more. */
char *pb_end_long(char *length, char *at);

/* Ends a message or another field with a length. `length` is the reserved byte, `at` the end.
 * Returns the new end, up to 4 bytes further on. */
static inline char *pb_end(char *length, char *at)
{
    const size_t size = (size_t)(at - length) - 1;

    if (size >= 128)
        return pb_end_long(length, at);
    *length = (char)size;
    return at;
}

/* Writes a length in a fixed number of bytes, with padding that decoders accept. */
static inline void pb_put_padded(char *at, uint32_t value, int bytes)
{
    for (; bytes > 1; bytes--, value >>= 7)
        *at++ = (char)(value | 128);
    *at = (char)(value & 127);
}

#define PB_PADDED 4 /* bytes of a padded length, below 2^28 */

/* Returns true if no byte is NUL or beyond ASCII. */
static inline bool pb_is_plain_16(plain_bytes bytes)
{
    const plain_words others = (plain_words)(bytes <= 0);

    return (others[0] | others[1]) == 0;
}

/* Writes at most limit bytes of any text. */
char *pb_put_mixed(char *at, struct text text, size_t limit, bool *cut);

/* Writes the text's characters without a length. A text of more than limit bytes is cut, with a
 * note of its length; then *cut is set. */
static inline char *pb_put_characters(char *at, struct text text, size_t limit, bool *cut)
{
    if (text.length <= limit && plain_copy(at, text, pb_is_plain_16))
        return at + text.length;
    return pb_put_mixed(at, text, limit, cut);
}

/* Same, with the length, for a field whose tag is written. */
static inline char *pb_put_text(char *at, struct text text, size_t limit, bool *cut)
{
    return pb_end(at, pb_put_characters(at + 1, text, limit, cut));
}

/* Writes a constant text field: plain ASCII of less than 128 bytes. */
static inline char *pb_put_literal(char *at, char tag, const char *literal, size_t length)
{
    *at++ = tag;
    *at++ = (char)length;
    memcpy(at, literal, length);
    return at + length;
}

#define PB_PUT_LITERAL(at, tag, literal) pb_put_literal((at), (tag), (literal), sizeof(literal) - 1)

#endif
