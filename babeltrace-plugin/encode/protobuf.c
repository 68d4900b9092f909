/* SPDX-License-Identifier: BSD-2-Clause */
#include "protobuf.h"

#include "babeltrace-plugin/base/utf8.h"

char *pb_end_long(char *length, char *at)
{
    const size_t size = (size_t)(at - length) - 1;
    char bytes[PB_VARINT_MAX];
    const size_t more = (size_t)(pb_put_varint(bytes, size) - bytes) - 1;

    memmove(length + 1 + more, length + 1, size);
    memcpy(length, bytes, more + 1);
    return at + more;
}

/* Writes any bytes; copies plain stretches in steps of sixteen bytes. */
static char *put_bytes(char *at, struct text text)
{
    const char *const end = text.data + text.length;
    const char *from = text.data;

    while (from < end) {
        if (end - from >= 16 && plain_copy_16(at, from, pb_is_plain_16)) {
            from += 16;
            at += 16;
        } else if (*from == '\0') { /* legal, but many databases refuse this byte */
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
