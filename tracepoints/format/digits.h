/*
 * Numbers in packed texts and logs. The character of a digit is '0' plus its value; the least
 * significant digit comes first. So a number has no zero byte, text tools can show a number, and
 * writing it takes half the instructions of hexadecimal.
 *
 * Base 64 ('0' to 'o'): words of 48 bits, and lengths. Base 16 ('0' to '?'): numbers in rare
 * records, such as links and remote sides.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DIGITS_H
#define BLKIN_DIGITS_H

#include <endian.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && !defined(BLKIN_PORTABLE)
#include <emmintrin.h>
#endif

/* Returns eight digits of base 64 for the lower 48 bits of the value. "pdep" takes two
 * instructions, shifts take about twenty. */
static inline uint64_t blkin_word_by_shifts(uint64_t value)
{
    uint64_t digits = (value & 0xffffff) | (value << 8 & UINT64_C(0x00ffffff00000000));

    digits = (digits & UINT64_C(0x00000fff00000fff)) | (digits << 4 & UINT64_C(0x0fff00000fff0000));
    digits = (digits & UINT64_C(0x003f003f003f003f)) | (digits << 2 & UINT64_C(0x3f003f003f003f00));
    return digits + UINT64_C(0x3030303030303030);
}

#if defined(__x86_64__) && !defined(BLKIN_PORTABLE)

extern __attribute__((visibility("hidden"))) bool blkin_has_pdep;

static inline uint64_t blkin_word_by_pdep(uint64_t value)
{
    uint64_t digits;

    __asm__("pdep %2, %1, %0" : "=r"(digits) : "r"(value), "r"(UINT64_C(0x3f3f3f3f3f3f3f3f)));
    return digits + UINT64_C(0x3030303030303030);
}

#else
#define blkin_has_pdep            false
#define blkin_word_by_pdep(value) blkin_word_by_shifts(value)
#endif

/* by_pdep: a constant, so that the compiler inlines only one of the two. The caller has tested
 * blkin_has_pdep. */
static inline __attribute__((always_inline)) char *blkin_put_word_by(bool by_pdep, char *at,
                                                                     uint64_t value)
{
    const uint64_t digits =
        htole64(by_pdep ? blkin_word_by_pdep(value) : blkin_word_by_shifts(value));

    memcpy(at, &digits, 8);
    return at + 8;
}

static inline char *blkin_put_word(char *at, uint64_t value)
{
    return __builtin_expect(blkin_has_pdep, 1) ? blkin_put_word_by(true, at, value)
                                               : blkin_put_word_by(false, at, value);
}

/* Puts eleven digits: 64 bits. The first eight and the last eight digits overlap. */
static inline char *blkin_put_long(char *at, uint64_t value)
{
    (void)blkin_put_word(at, value);
    return blkin_put_word(at + 3, value >> 18);
}

#if defined(__SSE2__) && !defined(BLKIN_PORTABLE)

static inline char *blkin_put_digits16(char *at, uint64_t value)
{
    const __m128i low_nibbles = _mm_set1_epi8(0x0f);
    const __m128i bytes = _mm_cvtsi64_si128((long long)value);
    const __m128i digits = _mm_unpacklo_epi8(_mm_and_si128(bytes, low_nibbles),
                                             _mm_and_si128(_mm_srli_epi64(bytes, 4), low_nibbles));

    _mm_storeu_si128((__m128i *)(void *)at, _mm_add_epi8(digits, _mm_set1_epi8('0')));
    return at + 16;
}

#else

static inline char *blkin_put_digits8(char *at, uint32_t value)
{
    uint64_t digits = value;

    /* one nibble in each byte */
    digits = (digits | digits << 16) & UINT64_C(0x0000ffff0000ffff);
    digits = (digits | digits << 8) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits | digits << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    digits = htole64(digits + UINT64_C(0x3030303030303030));
    memcpy(at, &digits, 8);
    return at + 8;
}

static inline char *blkin_put_digits16(char *at, uint64_t value)
{
    at = blkin_put_digits8(at, (uint32_t)value);
    return blkin_put_digits8(at, (uint32_t)(value >> 32));
}

#endif

/* Returns the value of `count` digits of base 64. */
static inline uint64_t blkin_number_at(const char *digits, unsigned count)
{
    uint64_t value = 0;

    while (count-- > 0)
        value = value << 6 | (uint64_t)(digits[count] - '0');
    return value;
}

/* Puts two digits of base 64. The length is less than 4096. */
static inline char *blkin_put_length(char *at, size_t length)
{
    const uint32_t digits = ((uint32_t)length & 63) + ((uint32_t)length & ~63U) * 4 + 0x3030;
    const uint16_t in_order = htole16((uint16_t)digits);

    memcpy(at, &in_order, 2);
    return at + 2;
}

/* Puts three digits of base 64: 18 bits. */
static inline char *blkin_put_short(char *at, uint32_t value)
{
    at = blkin_put_length(at, value & 4095);
    *at = (char)('0' + (value >> 12 & 63));
    return at + 1;
}

#endif
