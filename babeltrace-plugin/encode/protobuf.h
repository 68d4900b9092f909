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

#include "babeltrace-plugin/base/text.h"

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

#define PB_PADDED     4 /* bytes of one, up to PB_PADDED_MAX */
#define PB_PADDED_MAX ((UINT32_C(1) << 28) - 1)

/* Eight bytes of which none is NUL or beyond ASCII. */
static inline bool pb_is_plain(uint64_t word)
{
    const uint64_t ones = UINT64_C(0x0101010101010101);

    return ((word | (word - ones)) & ones * 0x80) == 0;
}

/* Sixteen bytes, of which gcc and clang look at all at once on any processor that can. */
static inline bool pb_copy_16(char *at, const char *bytes)
{
    typedef signed char bytes16 __attribute__((vector_size(16)));
    typedef uint64_t words2 __attribute__((vector_size(16)));
    bytes16 block;
    words2 others;

    memcpy(&block, bytes, sizeof(block));
    memcpy(at, &block, sizeof(block));
    others = (words2)(block <= 0);
    return (others[0] | others[1]) == 0;
}

/*
 * Copies a text and tells whether it is plain: nearly all are. The pieces overlap, so that no
 * length needs a loop of bytes.
 */
static inline bool pb_copy_plain(char *at, struct text text)
{
    const char *const last = text.data + text.length;
    char *const end = at + text.length;
    uint64_t first8, last8;
    uint32_t first4, last4;
    bool is_plain = true;

    if (text.length >= 16) {
        for (const char *from = text.data; last - from > 16; from += 16, at += 16)
            is_plain &= pb_copy_16(at, from);
        return pb_copy_16(end - 16, last - 16) && is_plain;
    }
    if (text.length >= 8) {
        memcpy(&first8, text.data, 8);
        memcpy(&last8, last - 8, 8);
        memcpy(at, &first8, 8);
        memcpy(end - 8, &last8, 8);
        return pb_is_plain(first8) && pb_is_plain(last8);
    }
    if (text.length >= 4) {
        memcpy(&first4, text.data, 4);
        memcpy(&last4, last - 4, 4);
        memcpy(at, &first4, 4);
        memcpy(end - 4, &last4, 4);
        return pb_is_plain(first4 | (uint64_t)last4 << 32);
    }
    for (size_t i = 0; i < text.length; i++) {
        at[i] = text.data[i];
        is_plain &= text.data[i] > 0;
    }
    return is_plain;
}

/* Any text, at most limit bytes of it. */
char *pb_put_mixed(char *at, struct text text, size_t limit, bool *cut);

/*
 * The text's characters, without a length. Of one longer than limit bytes the beginning is written,
 * and a note that says how much of it that is; *cut is set then, and left alone otherwise.
 */
static inline char *pb_put_characters(char *at, struct text text, size_t limit, bool *cut)
{
    if (text.length <= limit && pb_copy_plain(at, text))
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
