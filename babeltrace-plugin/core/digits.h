/*
 * Reading the numbers of packed texts and logs: tracepoints/events.h tells their form.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_DIGITS_H
#define BLKIN_CORE_DIGITS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/*
 * Of base 64: eight digits, as loaded, into 48 bits. *wrong gets bits that are not 0 where one is
 * no digit, and is otherwise left alone, so that many numbers are checked at once.
 */
static inline uint64_t digits_value(uint64_t digits, uint64_t *wrong)
{
    /* of bytes below '0' the first one borrows, and shows it in its own upper bits */
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

/* The last so many digits before end, 1 to 7; there are eight bytes before it. */
static inline uint64_t digits_last(const char *end, unsigned count, uint64_t *wrong)
{
    const unsigned unused = 64 - 8 * count;
    uint64_t digits;

    memcpy(&digits, end - sizeof(digits), sizeof(digits));
    digits = le64toh(digits) >> unused | UINT64_C(0x3030303030303030) << (64 - unused);
    return digits_value(digits, wrong);
}

/* Two digits: 12 bits. */
static inline unsigned digits_two(const char *at, uint64_t *wrong)
{
    uint16_t digits;
    unsigned value;

    memcpy(&digits, at, sizeof(digits));
    value = (le16toh(digits) - 0x3030U) & 0xffff;
    *wrong |= value & 0xc0c0;
    return (value & 63) | (value >> 2 & 0xfc0);
}

/* 64 bits in eleven digits, of which the last one has four: the first eight and the last three. */
static inline uint64_t digits_long(const char *at, uint64_t *wrong)
{
    const uint64_t low = digits_word(at, wrong);
    const uint64_t high = digits_last(at + 11, 3, wrong);

    *wrong |= high >> 16;
    return high << 48 | low;
}

/* 48 bits of two's complement. */
static inline int64_t digits_signed(uint64_t word)
{
    return (int64_t)(word << 16) >> 16;
}

#endif
