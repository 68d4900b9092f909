/*
 * Strict parsing of log records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "log.h"

/* The value of each lower-case hexadecimal digit plus one; 0 for all other bytes. */
static const unsigned char digit_values[256] = {
    ['0'] = 1, ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9, ['9'] = 10, ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

static bool take_hex(struct text *log, unsigned digits, uint64_t *value)
{
    if (log->length < digits)
        return false;
    *value = 0;
    for (unsigned i = 0; i < digits; i++) {
        const unsigned char digit = digit_values[(unsigned char)log->data[i]];

        if (!digit)
            return false;
        *value = *value << 4 | (digit - 1U);
    }
    log->data += digits;
    log->length -= digits;
    return true;
}

static bool take_text(struct text *log, uint64_t length, struct text *text)
{
    if (log->length < length)
        return false;
    *text = (struct text){log->data, (size_t)length};
    log->data += length;
    log->length -= (size_t)length;
    return true;
}

static bool take_annotation(struct text *log, struct log_record *record)
{
    uint64_t severity, offset, length;

    if (!take_hex(log, 1, &severity) || severity > 7 || !take_hex(log, 12, &offset) ||
        !take_hex(log, 4, &length))
        return false;
    record->severity = (int)severity;
    record->offset_ns = (int64_t)(offset << 16) >> 16;
    return take_text(log, length, &record->value);
}

static bool take_tag(struct text *log, struct log_record *record)
{
    uint64_t key_length, value_length;

    return take_hex(log, 4, &key_length) && take_hex(log, 4, &value_length) &&
           take_text(log, key_length, &record->key) && take_text(log, value_length, &record->value);
}

static bool take_number(struct text *log, struct log_record *record)
{
    uint64_t key_length;

    return take_hex(log, 4, &key_length) && take_hex(log, 16, &record->bits) &&
           take_text(log, key_length, &record->key);
}

static bool take_remote(struct text *log, struct log_record *record)
{
    uint64_t port, ip_length, name_length;

    if (!take_hex(log, 4, &port) || !take_hex(log, 2, &ip_length) ||
        !take_hex(log, 2, &name_length))
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
