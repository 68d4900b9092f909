/*
 * Strict parsing of log records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "log.h"

#include <endian.h>

/* Eight digits of base 16, least first, each a nibble more than '0'. */
static bool read_digits8(const char *digits, uint64_t *value)
{
    uint64_t nibbles;

    memcpy(&nibbles, digits, sizeof(nibbles));
    nibbles = le64toh(nibbles) ^ UINT64_C(0x3030303030303030);
    if (nibbles & UINT64_C(0xf0f0f0f0f0f0f0f0))
        return false;
    nibbles = (nibbles | nibbles >> 4) & UINT64_C(0x00ff00ff00ff00ff);
    nibbles = (nibbles | nibbles >> 8) & UINT64_C(0x0000ffff0000ffff);
    *value = (nibbles | nibbles >> 16) & UINT64_C(0xffffffff);
    return true;
}

static void skip(struct text *log, size_t length)
{
    log->data += length;
    log->length -= length;
}

static bool take_digits16(struct text *log, uint64_t *value)
{
    uint64_t low, high;

    if (log->length < 16 || !read_digits8(log->data, &low) || !read_digits8(log->data + 8, &high))
        return false;
    *value = high << 32 | low;
    skip(log, 16);
    return true;
}

/* Two digits of base 64. */
static bool take_length(struct text *log, size_t *length)
{
    unsigned low, high;

    if (log->length < 2)
        return false;
    low = (unsigned char)log->data[0] - (unsigned)'0';
    high = (unsigned char)log->data[1] - (unsigned)'0';
    if (low > 63 || high > 63)
        return false;
    *length = high << 6 | low;
    skip(log, 2);
    return true;
}

static bool take_text(struct text *log, size_t length, struct text *text)
{
    if (log->length < length)
        return false;
    *text = (struct text){log->data, length};
    skip(log, length);
    return true;
}

static bool take_annotation(struct text *log, struct log_record *record)
{
    const unsigned severity = log->length ? (unsigned char)log->data[0] - (unsigned)'0' : 8;
    uint64_t offset_and_length;

    if (severity > 7)
        return false;
    skip(log, 1);
    if (!take_digits16(log, &offset_and_length))
        return false;
    record->severity = (int)severity;
    record->offset_ns = (int64_t)offset_and_length >> 16;
    return take_text(log, offset_and_length & 0xffff, &record->value);
}

static bool take_tag(struct text *log, struct log_record *record)
{
    size_t key_length, value_length;

    return take_length(log, &key_length) && take_length(log, &value_length) &&
           take_text(log, key_length, &record->key) && take_text(log, value_length, &record->value);
}

static bool take_number(struct text *log, struct log_record *record)
{
    size_t key_length;

    return take_length(log, &key_length) && take_digits16(log, &record->bits) &&
           take_text(log, key_length, &record->key);
}

static bool take_remote(struct text *log, struct log_record *record)
{
    uint64_t port;
    size_t ip_length, name_length;

    if (!take_digits16(log, &port) || port > UINT16_MAX || !take_length(log, &ip_length) ||
        !take_length(log, &name_length))
        return false;
    record->port = (uint16_t)port;
    return take_text(log, ip_length, &record->key) && take_text(log, name_length, &record->value);
}

bool log_next(struct text *log, struct log_record *record)
{
    struct text rest;
    bool taken = false;

    if (log->length == 0)
        return false;
    *record = (struct log_record){.type = log->data[0]};
    rest = (struct text){log->data + 1, log->length - 1};
    switch (record->type) {
    case 'a':
        taken = take_annotation(&rest, record);
        break;
    case 's':
        taken = take_tag(&rest, record);
        break;
    case 'i':
    case 'u':
    case 'd':
    case 'b':
        taken = take_number(&rest, record);
        break;
    case 'r':
        taken = take_remote(&rest, record);
        break;
    default:
        break;
    }
    if (taken)
        *log = rest;
    return taken;
}
