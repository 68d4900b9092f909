/*
 * Reads the base-64 numbers of packed texts and logs. doc/format.md describes their form.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_DIGITS_H
#define BLKIN_CORE_DIGITS_H

#include <endian.h>
#include <stdint.h>
#include <string.h>
#ifdef __x86_64__
#include <emmintrin.h>
#endif

/* Reads eight digits of base 64, as loaded from memory, into 48 bits. Sets bits of *wrong if a byte
 * is no digit; else *wrong keeps its value, so that one test covers many numbers. */
static inline uint64_t digits_value(uint64_t digits, uint64_t *wrong)
{
    /* a byte below '0' borrows from the next byte, and its own upper bits show that */
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

#endif
