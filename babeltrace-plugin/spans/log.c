/*
 * Strict parsing of log records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "babeltrace-plugin/base/digits.h"

/* Reads eight digits of base 16, least first. Each digit is '0' plus a nibble. */
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

static bool read_digits16(const char *digits, uint64_t *value)
{
    uint64_t low, high;

    if (!read_digits8(digits, &low) || !read_digits8(digits + 8, &high))
        return false;
    *value = high << 32 | low;
    return true;
}

/* Reads two digits of base 64. */
static bool read_length(const char *digits, size_t *length)
{
    uint64_t wrong = 0;

    *length = digits_two(digits, &wrong);
    return !wrong;
}

/* Each of these functions reads the record after its type: a head of fixed size with lengths, then
 * the texts. They return the end of the record, or NULL if the record is invalid. */
#define STAMPED_HEAD     10
#define LOG_MOMENT_SIZE  8
#define STEP_NUMBER_SIZE 4
#define TAG_HEAD         4
#define NUMBER_HEAD      13
#define ENDPOINT_HEAD    20
#define NAME_HEAD        2
#define LOG_START_SIZE   16
#define LOG_LINK_SIZE    48

/* Reads a text and its moment. In the length of a step's name, the upper digits are the step's
 * kind. */
static const char *read_stamped(const char *at, size_t length, bool is_step,
                                struct log_record *record)
{
    uint64_t wrong = 0;
    size_t text_length;

    if (length < STAMPED_HEAD)
        return NULL;
    text_length = digits_two(at, &wrong);
    record->offset_ns = digits_signed(digits_word(at + 2, &wrong));
    if (is_step) {
        record->bits = text_length >> 7;
        text_length &= 127;
    }
    if (wrong || length - STAMPED_HEAD < text_length)
        return NULL;
    record->value = (struct text){at + STAMPED_HEAD, text_length};
    return at + STAMPED_HEAD + text_length;
}

static const char *read_moment(const char *at, size_t length, struct log_record *record)
{
    uint64_t wrong = 0;

    if (length < LOG_MOMENT_SIZE)
        return NULL;
    record->offset_ns = digits_signed(digits_word(at, &wrong));
    return wrong ? NULL : at + LOG_MOMENT_SIZE;
}

static const char *read_step_number(const char *at, size_t length, struct log_record *record)
{
    uint64_t wrong = 0;

    if (length < STEP_NUMBER_SIZE)
        return NULL;
    record->bits = digits_two(at, &wrong) | digits_two(at + 2, &wrong) << 12;
    return wrong ? NULL : at + STEP_NUMBER_SIZE;
}

/* Reads the two texts of a record, whose lengths are the digits before `at`. */
static const char *read_texts(const char *at, const char *end, struct text *first,
                              struct text *second)
{
    if (!read_length(at - 4, &first->length) || !read_length(at - 2, &second->length) ||
        (size_t)(end - at) < first->length + second->length)
        return NULL;
    first->data = at;
    second->data = at + first->length;
    return second->data + second->length;
}

static const char *read_number(const char *at, size_t length, struct log_record *record)
{
    uint64_t wrong = 0, key_length;

    if (length < NUMBER_HEAD)
        return NULL;
    key_length = digits_two(at, &wrong);
    record->bits = digits_long(at + 2, &wrong);
    if (wrong || length - NUMBER_HEAD < key_length)
        return NULL;
    record->key = (struct text){at + NUMBER_HEAD, key_length};
    return at + NUMBER_HEAD + key_length;
}

static const char *read_endpoint(const char *at, size_t length, struct log_record *record)
{
    uint64_t port;

    if (length < ENDPOINT_HEAD || !read_digits16(at, &port) || port > UINT16_MAX)
        return NULL;
    record->port = (uint16_t)port;
    return read_texts(at + ENDPOINT_HEAD, at + length, &record->key, &record->value);
}

static const char *read_name(const char *at, size_t length, struct log_record *record)
{
    size_t name_length;

    if (length < NAME_HEAD || !read_length(at, &name_length) || length - NAME_HEAD < name_length)
        return NULL;
    record->value = (struct text){at + NAME_HEAD, name_length};
    return at + NAME_HEAD + name_length;
}

static const char *read_start(const char *at, size_t length, struct log_record *record)
{
    uint64_t offset_ns;

    if (length < LOG_START_SIZE || !read_digits16(at, &offset_ns))
        return NULL;
    record->offset_ns = (int64_t)offset_ns;
    return at + LOG_START_SIZE;
}

static const char *read_link(const char *at, size_t length, struct log_record *record)
{
    if (length < LOG_LINK_SIZE || !read_digits16(at, &record->link.trace_id_high) ||
        !read_digits16(at + 16, &record->link.trace_id) ||
        !read_digits16(at + 32, &record->link.span_id))
        return NULL;
    return at + LOG_LINK_SIZE;
}

/* Skips a record of a newer libblkin: all begin with their length. */
static const char *read_unknown(char type, const char *at, size_t length)
{
    const bool is_letter = (type >= 'A' && type <= 'Z') || (type >= 'a' && type <= 'z');
    size_t body;

    if (!is_letter || length < NAME_HEAD || !read_length(at, &body) || length - NAME_HEAD < body)
        return NULL;
    return at + NAME_HEAD + body;
}

bool log_next(struct text *log, struct log_record *record)
{
    static const struct text severities[8] = {{"emerg", 5}, {"alert", 5},   {"crit", 4},
                                              {"err", 3},   {"warning", 7}, {"notice", 6},
                                              {"", 0},      {"debug", 5}};
    const char *const at = log->data + 1;
    const char *end = NULL;
    size_t length;

    if (log->length == 0)
        return false;
    length = log->length - 1;
    record->type = log->data[0];
    switch (record->type) {
    case '0':
    case '1':
    case '2':
    case '3':
    case '4':
    case '5':
    case '6':
    case '7':
        record->key = severities[record->type - '0'];
        record->type = 'a';
        end = read_stamped(at, length, false, record);
        break;
    case '(':
        end = read_stamped(at, length, true, record);
        break;
    case ')':
    case 'T':
        end = read_moment(at, length, record);
        break;
    case '#':
        end = read_step_number(at, length, record);
        break;
    case 'o':
        end = at;
        break;
    case 's':
        end = length < TAG_HEAD
                  ? NULL
                  : read_texts(at + TAG_HEAD, at + length, &record->key, &record->value);
        break;
    case 'I':
    case 'U':
    case 'D':
    case 'B':
        record->type = (char)(record->type | 0x20);
        end = read_number(at, length, record);
        break;
    case 'l':
        end = read_link(at, length, record);
        break;
    case 'r':
    case 'e':
        end = read_endpoint(at, length, record);
        break;
    case 'n':
        end = read_name(at, length, record);
        break;
    case 't':
        end = read_start(at, length, record);
        break;
    default:
        record->type = '?';
        end = read_unknown(log->data[0], at, length);
    }
    if (!end)
        return false;
    *log = (struct text){end, length - (size_t)(end - at)};
    return true;
}
