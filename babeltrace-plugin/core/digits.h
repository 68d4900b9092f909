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
 * Of base 64: 48 bits in eight digits. *wrong gets bits that are not 0 where one is no digit, and
 * is otherwise left alone, so that many words are checked at once.
 */
static inline uint64_t digits_word(const char *digits, uint64_t *wrong)
{
    uint64_t value;

    memcpy(&value, digits, sizeof(value));
    /* of bytes below '0' the first one borrows, and shows it in its own upper bits */
    value = le64toh(value) - UINT64_C(0x3030303030303030);
    *wrong |= value & UINT64_C(0xc0c0c0c0c0c0c0c0);
    value = (value & UINT64_C(0x003f003f003f003f)) | (value & UINT64_C(0x3f003f003f003f00)) >> 2;
    value = (value & UINT64_C(0x00000fff00000fff)) | (value & UINT64_C(0x0fff00000fff0000)) >> 4;
    return (value & 0xffffff) | (value & UINT64_C(0x00ffffff00000000)) >> 8;
}

/* The same of up to five digits. */
static inline uint32_t digits_few(const char *digits, unsigned count, uint64_t *wrong)
{
    uint32_t value = 0;

    while (count--) {
        const unsigned digit = (unsigned char)digits[count] - (unsigned)'0';

        *wrong |= digit & ~63U;
        value = value << 6 | (digit & 63);
    }
    return value;
}

/* 64 bits in a word and three digits, of which the last one has four bits. */
static inline uint64_t digits_long(const char *digits, uint64_t *wrong)
{
    const uint64_t low = digits_word(digits, wrong);
    const uint32_t high = digits_few(digits + 8, 3, wrong);

    *wrong |= high >> 16;
    return (uint64_t)high << 48 | low;
}

/* 48 bits of two's complement. */
static inline int64_t digits_signed(uint64_t word)
{
    return (int64_t)(word << 16) >> 16;
}

#endif
