/*
 * Reads protobuf, one field of a message after another. The input is untrusted: no field exceeds
 * its message.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_PROTOBUF_READ_H
#define BLKIN_OUTPUT_PROTOBUF_READ_H

#include "babeltrace-plugin/base/text.h"

#include <endian.h>
#include <stdbool.h>
#include <stdint.h>

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
