/*
 * Hexadecimal digits, eight or sixteen at a time and without a table: for the log of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HEX_H
#define BLKIN_HEX_H

#include <endian.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#if defined(__SSE2__)

/* The sixteen lower-case digits of value, as they lie in memory. */
static inline __m128i blkin_hex16(uint64_t value)
{
    const __m128i low_nibbles = _mm_set1_epi8(0x0f);
    const __m128i bytes = _mm_cvtsi64_si128((long long)__builtin_bswap64(value));
    const __m128i digits = _mm_unpacklo_epi8(_mm_and_si128(_mm_srli_epi64(bytes, 4), low_nibbles),
                                             _mm_and_si128(bytes, low_nibbles));
    const __m128i is_letter = _mm_cmpgt_epi8(digits, _mm_set1_epi8(9));

    return _mm_add_epi8(_mm_add_epi8(digits, _mm_set1_epi8('0')),
                        _mm_and_si128(is_letter, _mm_set1_epi8('a' - '0' - 10)));
}

static inline char *blkin_put_hex4(char *at, uint16_t value)
{
    const uint32_t digits = (uint32_t)_mm_cvtsi128_si32(blkin_hex16((uint64_t)value << 48));

    memcpy(at, &digits, 4);
    return at + 4;
}

static inline char *blkin_put_hex8(char *at, uint32_t value)
{
    _mm_storel_epi64((__m128i *)(void *)at, blkin_hex16((uint64_t)value << 32));
    return at + 8;
}

static inline char *blkin_put_hex16(char *at, uint64_t value)
{
    _mm_storeu_si128((__m128i *)(void *)at, blkin_hex16(value));
    return at + 16;
}

#else

/* The eight lower-case digits of value, as they lie in memory. */
static inline uint64_t blkin_hex8(uint32_t value)
{
    uint64_t digits = value;
    uint64_t is_letter;

    /* one nibble in each byte */
    digits = (digits | digits << 16) & UINT64_C(0x0000ffff0000ffff);
    digits = (digits | digits << 8) & UINT64_C(0x00ff00ff00ff00ff);
    digits = (digits | digits << 4) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    is_letter = (digits + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    digits += UINT64_C(0x3030303030303030) + is_letter * ('a' - '0' - 10);
    return htobe64(digits);
}

static inline char *blkin_put_hex8(char *at, uint32_t value)
{
    const uint64_t digits = blkin_hex8(value);

    memcpy(at, &digits, 8);
    return at + 8;
}

static inline char *blkin_put_hex4(char *at, uint16_t value)
{
    const uint64_t digits = blkin_hex8(value);

    memcpy(at, (const char *)&digits + 4, 4);
    return at + 4;
}

static inline char *blkin_put_hex16(char *at, uint64_t value)
{
    at = blkin_put_hex8(at, (uint32_t)(value >> 32));
    return blkin_put_hex8(at, (uint32_t)value);
}

#endif

#endif
