/*
 * Protobuf primitives.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "protobuf.h"

#include "json.h"
#include "utf8.h"

/* ---- writing --------------------------------------------------------------------------------- */

char *pb_end_long(char *length, char *at)
{
    const size_t size = (size_t)(at - length) - 1;
    char bytes[PB_VARINT_MAX];
    const size_t more = (size_t)(pb_put_varint(bytes, size) - bytes) - 1;

    memmove(length + 1 + more, length + 1, size);
    memcpy(length, bytes, more + 1);
    return at + more;
}

/* Any bytes, the plain stretches of them sixteen at a step. */
static char *put_bytes(char *at, struct text text)
{
    const char *const end = text.data + text.length;
    const char *from = text.data;

    while (from < end) {
        if (end - from >= 16 && pb_copy_16(at, from)) {
            from += 16;
            at += 16;
        } else if (*from == '\0') { /* legal, but many a data base has no room for it */
            from++;
            at = text_copy(at, text_of(UTF8_REPLACEMENT));
        } else {
            from += utf8_put(&at, from, (size_t)(end - from));
        }
    }
    return at;
}

char *pb_put_mixed(char *at, struct text text, size_t limit, bool *cut)
{
    const struct text first = text.length > limit ? utf8_beginning(text, limit) : text;

    at = put_bytes(at, first);
    if (first.length == text.length)
        return at;
    *cut = true;
    at = text_copy(at, text_of("...["));
    at = json_put_integer(at, (int64_t)first.length);
    at = text_copy(at, text_of(" of "));
    at = json_put_integer(at, (int64_t)text.length);
    return text_copy(at, text_of(" bytes]"));
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_varint(const char **at, const char *end, uint64_t *value)
{
    *value = 0;
    for (unsigned shift = 0; *at < end && shift < 64; shift += 7) {
        const unsigned char byte = (unsigned char)*(*at)++;

        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128)
            return true;
    }
    return false;
}

static bool read_fixed(const char **at, const char *end, unsigned size, uint64_t *value)
{
    *value = 0;
    if (end - *at < (ptrdiff_t)size)
        return false;
    memcpy(value, *at, size);
    *value = le64toh(*value);
    *at += size;
    return true;
}

static bool read_bytes(const char **at, const char *end, struct text *bytes)
{
    uint64_t length;

    if (!read_varint(at, end, &length))
        return false;
    if (length > (uint64_t)(end - *at))
        length = (uint64_t)(end - *at);
    *bytes = (struct text){*at, length};
    *at += length;
    return true;
}

bool pb_read(const char **at, const char *end, struct pb_field *field)
{
    uint64_t tag;

    if (!read_varint(at, end, &tag) || tag >> 3 == 0 || tag >> 32)
        return false;
    *field = (struct pb_field){.number = (uint32_t)(tag >> 3), .type = tag & 7};
    switch (field->type) {
    case 0:
        return read_varint(at, end, &field->value);
    case 1:
        return read_fixed(at, end, 8, &field->value);
    case 2:
        return read_bytes(at, end, &field->bytes);
    case 5:
        return read_fixed(at, end, 4, &field->value);
    default:
        return false;
    }
}
