/*
 * Protobuf primitives that write at a pointer into reserved room.
 *
 * The length of a message stands before the message, and is known only after the message is
 * written. So one byte is reserved, and the message moves up if the length needs more bytes. Texts
 * may be any bytes; the output is valid UTF-8 without NUL.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ENCODE_PROTOBUF_H
#define BLKIN_ENCODE_PROTOBUF_H

#include "babeltrace-plugin/base/text.h"
#include "json.h"

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

/* pb_end() for a length of two bytes or more: moves the message up. */
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

/* As pb_put_characters(), for a text that is too long, or not plain ASCII. */
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

/* ---- reading --------------------------------------------------------------------------------- */

/*
 * Reads protobuf, one field of a message after another. The input is untrusted: no field exceeds
 * its message.
 */
enum pb_type { PB_TYPE_VARINT, PB_TYPE_FIXED64, PB_TYPE_BYTES, PB_TYPE_FIXED32 = 5 };

/* Number and type of a field. */
#define PB_TAG(number, type) ((uint32_t)(number) << 3 | (uint32_t)(type))

struct pb_reader {
    const unsigned char *at; /* NULL: invalid bytes */
    const unsigned char *end;
    bool is_cut; /* the message may end too early: a text beyond the end is cut */
};

struct pb_member {
    uint32_t tag;
    uint64_t value;    /* of PB_TYPE_BYTES: the length */
    const char *bytes; /* of PB_TYPE_BYTES only */
};

static inline struct pb_reader pb_reader_of(struct text message)
{
    static const unsigned char nothing;
    const unsigned char *at =
        message.length ? (const unsigned char *)message.data : &nothing; /* never NULL */

    return (struct pb_reader){at, at + message.length, false};
}

static inline struct text pb_text(const struct pb_member *field)
{
    return (struct text){field->bytes, (size_t)field->value};
}

/* Returns the end of the number, or NULL. */
static inline const unsigned char *pb_get_varint(const unsigned char *at, const unsigned char *end,
                                                 uint64_t *value)
{
    if (at < end && *at < 128) {
        *value = *at;
        return at + 1;
    }
    *value = 0;
    for (unsigned shift = 0; shift < 70 && at < end; shift += 7) {
        const unsigned char byte = *at++;

        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return at;
    }
    return NULL;
}

static inline const unsigned char *pb_get_fixed64(const unsigned char *at, const unsigned char *end,
                                                  uint64_t *value)
{
    if ((size_t)(end - at) < sizeof(*value))
        return NULL;
    memcpy(value, at, sizeof(*value));
    *value = le64toh(*value);
    return at + sizeof(*value);
}

static inline const unsigned char *pb_get_fixed32(const unsigned char *at, const unsigned char *end,
                                                  uint64_t *value)
{
    uint32_t word;

    if ((size_t)(end - at) < sizeof(word))
        return NULL;
    memcpy(&word, at, sizeof(word));
    *value = le32toh(word);
    return at + sizeof(word);
}

/* Reads the next field. Returns false at the end, and at invalid bytes: then reader->at is NULL.
 * Groups, which no OpenTelemetry message has, are invalid. */
static inline bool pb_next(struct pb_reader *reader, struct pb_member *field)
{
    const unsigned char *at = reader->at, *const end = reader->end;
    uint64_t tag;

    if (at == end || !at)
        return false;
    at = pb_get_varint(at, end, &tag);
    if (!at || tag < 8 || tag > UINT32_MAX) {
        reader->at = NULL;
        return false;
    }
    *field = (struct pb_member){.tag = (uint32_t)tag};
    switch (tag & 7) {
    case PB_TYPE_VARINT:
        at = pb_get_varint(at, end, &field->value);
        break;
    case PB_TYPE_FIXED64:
        at = pb_get_fixed64(at, end, &field->value);
        break;
    case PB_TYPE_BYTES:
        at = pb_get_varint(at, end, &field->value);
        if (at && reader->is_cut && field->value > (uint64_t)(end - at))
            field->value = (uint64_t)(end - at);
        if (at && field->value <= (uint64_t)(end - at)) {
            field->bytes = (const char *)at;
            at += field->value;
        } else {
            at = NULL;
        }
        break;
    case PB_TYPE_FIXED32:
        at = pb_get_fixed32(at, end, &field->value);
        break;
    default:
        at = NULL;
    }
    reader->at = at;
    return at != NULL;
}

static inline bool pb_is_broken(const struct pb_reader *reader)
{
    return reader->at == NULL;
}

/* Reads half a trace id, or a span id: eight bytes. */
static inline uint64_t pb_id(const char *bytes)
{
    uint64_t id;

    memcpy(&id, bytes, sizeof(id));
    return be64toh(id);
}

static inline double pb_double(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

#endif
