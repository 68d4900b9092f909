/*
 * Protobuf primitives that write at a pointer into room that the caller has reserved.
 *
 * The length of a message is written before it and known after it: a byte is left free for it, and
 * what was written moves up where a byte is not enough. Texts are any bytes; what is written is
 * valid UTF-8 without NUL.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PROTOBUF_H
#define BLKIN_OUTPUT_PROTOBUF_H

#include "plain.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

/* A field's tag, of one byte: numbers below 16. */
#define PB_VARINT(number)  ((char)((number) << 3))
#define PB_FIXED64(number) ((char)((number) << 3 | 1))
#define PB_BYTES(number)   ((char)((number) << 3 | 2)) /* texts and messages, too */

#define PB_VARINT_MAX 10

/* Room for a text: tag, length, U+FFFD for each byte, a note of what was cut off, and what storing
 * whole words writes past the end. */
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

/* Half a trace id, or a span's. */
static inline char *pb_put_id(char *at, uint64_t id)
{
    id = htobe64(id);
    memcpy(at, &id, sizeof(id));
    return at + sizeof(id);
}

/* Makes room for a longer length than one byte. */
char *pb_end_long(char *length, char *at);

/*
 * Ends a message, or whatever has a length: `length` is the byte that was left free for it, `at`
 * where it ends. Returns where that is now: up to 4 bytes further on.
 */
static inline char *pb_end(char *length, char *at)
{
    const size_t size = (size_t)(at - length) - 1;

    if (size >= 128)
        return pb_end_long(length, at);
    *length = (char)size;
    return at;
}

/* A length of just so many bytes, longer than it needs to be: decoders take that. */
static inline void pb_put_padded(char *at, uint32_t value, int bytes)
{
    for (; bytes > 1; bytes--, value >>= 7)
        *at++ = (char)(value | 128);
    *at = (char)(value & 127);
}

#define PB_PADDED 4 /* bytes of one, below 2^28 */

/* None is NUL or beyond ASCII. */
static inline bool pb_is_plain_16(plain_bytes bytes)
{
    const plain_words others = (plain_words)(bytes <= 0);

    return (others[0] | others[1]) == 0;
}

/* Any text, at most limit bytes of it. */
char *pb_put_mixed(char *at, struct text text, size_t limit, bool *cut);

/*
 * The text's characters, without a length. Of one longer than limit bytes the beginning is written,
 * and a note that says how much of it that is; *cut is set then, and left alone otherwise.
 */
static inline char *pb_put_characters(char *at, struct text text, size_t limit, bool *cut)
{
    if (text.length <= limit && plain_copy(at, text, pb_is_plain_16))
        return at + text.length;
    return pb_put_mixed(at, text, limit, cut);
}

/* The same with its length before it, of a field whose tag is written. */
static inline char *pb_put_text(char *at, struct text text, size_t limit, bool *cut)
{
    return pb_end(at, pb_put_characters(at + 1, text, limit, cut));
}

/* A text field of ours: plain ASCII of less than 128 bytes. */
static inline char *pb_put_literal(char *at, char tag, const char *literal, size_t length)
{
    *at++ = tag;
    *at++ = (char)length;
    memcpy(at, literal, length);
    return at + length;
}

#define PB_PUT_LITERAL(at, tag, literal) pb_put_literal((at), (tag), (literal), sizeof(literal) - 1)

#endif
