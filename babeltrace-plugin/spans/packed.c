/*
 * Strict reading of packed texts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "tracepoints/format/events.h"

#include <endian.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

/* ---- numbers of base 64 ---------------------------------------------------------------------- */

/* Reads eight digits of base 64, as loaded from memory, into 48 bits. Sets bits of *wrong if a byte
 * is no digit; else *wrong keeps its value, so that one test covers many numbers. */
static inline uint64_t digits_value(uint64_t digits, uint64_t *wrong)
{
    /* a byte below '0' borrows from the next byte, and its own upper bits show the borrow */
    uint64_t value = digits - UINT64_C(0x3030303030303030);

    *wrong |= value & UINT64_C(0xc0c0c0c0c0c0c0c0);
    value = (value & UINT64_C(0x003f003f003f003f)) | (value & UINT64_C(0x3f003f003f003f00)) >> 2;
    value = (value & UINT64_C(0x00000fff00000fff)) | (value & UINT64_C(0x0fff00000fff0000)) >> 4;
    return (value & 0xffffff) | (value & UINT64_C(0x00ffffff00000000)) >> 8;
}

static inline uint64_t digits_word(const char *at, uint64_t *wrong)
{
    uint64_t digits;

    memcpy(&digits, at, sizeof(digits));
    return digits_value(le64toh(digits), wrong);
}

/* Reads two words of eight digits, one after the other. SSE2 halves the instructions. */
static inline void digits_two_words(const char *at, uint64_t *first, uint64_t *second,
                                    uint64_t *wrong)
{
#ifdef __x86_64__
    __m128i value =
        _mm_sub_epi8(_mm_loadu_si128((const __m128i *)(const void *)at), _mm_set1_epi8('0'));

    /* bits 6 and 7 of each byte */
    *wrong |= (uint64_t)_mm_movemask_epi8(_mm_or_si128(value, _mm_slli_epi16(value, 1)));
    value = _mm_or_si128(_mm_and_si128(value, _mm_set1_epi16(0x003f)),
                         _mm_and_si128(_mm_srli_epi16(value, 2), _mm_set1_epi16(0x0fc0)));
    value = _mm_madd_epi16(value, _mm_set1_epi32(1 | 4096 << 16));
    value =
        _mm_or_si128(_mm_and_si128(value, _mm_set1_epi64x(0xffffff)),
                     _mm_srli_epi64(_mm_and_si128(value, _mm_set1_epi64x(0xffffff00000000)), 8));
    *first = (uint64_t)_mm_cvtsi128_si64(value);
    *second = (uint64_t)_mm_cvtsi128_si64(_mm_unpackhi_epi64(value, value));
#else
    *first = digits_word(at, wrong);
    *second = digits_word(at + 8, wrong);
#endif
}

/* Reads the last `count` digits before end. count is 1 to 7, and at least eight bytes lie before
 * end. */
static inline uint64_t digits_last(const char *end, unsigned count, uint64_t *wrong)
{
    const unsigned unused = 64 - 8 * count;
    uint64_t digits;

    memcpy(&digits, end - sizeof(digits), sizeof(digits));
    digits = le64toh(digits) >> unused | UINT64_C(0x3030303030303030) << (64 - unused);
    return digits_value(digits, wrong);
}

/* Reads two digits: 12 bits. */
static inline unsigned digits_two(const char *at, uint64_t *wrong)
{
    uint16_t digits;
    unsigned value;

    memcpy(&digits, at, sizeof(digits));
    value = (le16toh(digits) - 0x3030U) & 0xffff;
    *wrong |= value & 0xc0c0;
    return (value & 63) | (value >> 2 & 0xfc0);
}

/* Reads 64 bits from eleven digits: eight digits, then three digits with the upper 16 bits. */
static inline uint64_t digits_long(const char *at, uint64_t *wrong)
{
    const uint64_t low = digits_word(at, wrong);
    const uint64_t high = digits_last(at + 11, 3, wrong);

    *wrong |= high >> 16;
    return high << 48 | low;
}

/* Extends the sign of 48 bits in two's complement. */
static inline int64_t digits_signed(uint64_t word)
{
    return (int64_t)(word << 16) >> 16;
}

/* ---- heads ----------------------------------------------------------------------------------- */

static inline bool read_tail(struct event *event, struct text rest)
{
    const char *const digits = rest.data + rest.length - BLKIN_TAIL_SIZE;
    uint64_t wrong = 0;
    const uint64_t numbers = digits_last(digits + BLKIN_TAIL_SIZE, BLKIN_TAIL_SIZE, &wrong);
    const uint64_t port = numbers & 0x3ffff;
    const size_t ip_length = numbers >> 18;

    if (wrong || port > UINT16_MAX || ip_length > rest.length - BLKIN_TAIL_SIZE)
        return false;
    event->port = (int64_t)port;
    event->ip = (struct text){digits - ip_length, ip_length};
    event->log = (struct text){rest.data, rest.length - BLKIN_TAIL_SIZE - ip_length};
    return event->kind == EVENT_SPAN || event->log.length == 0;
}

/* Reads the version and the thread. Another version sets *wrong. */
static inline uint64_t read_thread(const char *at, uint64_t *wrong)
{
    const uint64_t low = digits_word(at + 1, wrong);

    *wrong |= (uint64_t)(*at ^ ('0' + BLKIN_FORMAT_VERSION));
    return (uint64_t)digits_two(at + 9, wrong) << 48 | low;
}

static bool read_whole(struct event *event, struct text packed)
{
    const char *const at = packed.data + BLKIN_THREAD_SIZE;
    uint64_t wrong = 0, low, high;

    if (packed.length < BLKIN_HEAD_SIZE + BLKIN_TAIL_SIZE)
        return false;
    event->thread = read_thread(packed.data, &wrong);
    digits_two_words(at, &low, &high, &wrong);
    event->trace_id_high = high << 48 | low;
    event->sequence = high >> 16;
    digits_two_words(at + 16, &low, &high, &wrong);
    event->span_id = high << 48 | low;
    event->dropped = high >> 36;
    event->age_ns = (int64_t)digits_word(at + 32, &wrong);
    return !wrong && read_tail(event, text_after(packed, BLKIN_HEAD_SIZE));
}

static bool read_detail(struct event *event, struct text packed)
{
    const char *const at = packed.data + BLKIN_THREAD_SIZE;
    uint64_t wrong = 0, low, high;

    if (packed.length < BLKIN_DETAIL_HEAD_SIZE)
        return false;
    event->thread = read_thread(packed.data, &wrong);
    digits_two_words(at, &low, &high, &wrong);
    event->span_id = high << 48 | low;
    event->sequence = high >> 16;
    event->age_ns = (int64_t)digits_word(at + 16, &wrong);
    if (wrong)
        return false;
    event->log = text_after(packed, BLKIN_DETAIL_HEAD_SIZE);
    return event->kind == EVENT_TAG || event->log.length == 0;
}

unsigned packed_newer(struct text packed)
{
    const unsigned version = packed.length ? (unsigned char)packed.data[0] - (unsigned)'0' : 0;

    return version > BLKIN_FORMAT_VERSION && version < 64 ? version : 0;
}

bool packed_read(struct event *event, struct text packed)
{
    return event->kind == EVENT_SPAN || event->kind == EVENT_BEGIN ? read_whole(event, packed)
                                                                   : read_detail(event, packed);
}

enum decoded packed_decode(struct event *event)
{
    const struct text packed = event->log;

    if (packed_read(event, packed))
        return DECODED;
    return packed_newer(packed) ? DECODED_NEWER : DECODED_UNREADABLE;
}

/* The highest age that makes sense (doc/format.md). An event with a higher one gets the age 0. */
#define OLDEST_NS (INT64_C(24) * 3600 * 1000000000)

bool moment_age(uint64_t now, uint64_t moment, unsigned bits, int64_t *age_ns)
{
    *age_ns = (int64_t)((now - moment) << (64 - bits)) >> (64 - bits);
    return *age_ns >= -EVENT_AHEAD_NS && *age_ns <= OLDEST_NS;
}

/* ---- records of a log ------------------------------------------------------------------------ */

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

/* Reads a text and its moment. A step's name has its length in the lower 7 bits of the first
 * number; the upper bits are the step's kind. */
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

/* Skips a record of a newer libblkin: each such record begins with its length. */
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
