/*
 * Numbers in the log of a span: base 16, the least digit first, and a digit's character is '0' plus
 * its value ('0' to '?'). So there is no zero byte in a number, and a text of the trace shows it,
 * and no letters have to be told from digits: half of the instructions of hexadecimal.
 *
 * Lengths are two digits of base 64, likewise ('0' to 'o').
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DIGITS_H
#define BLKIN_DIGITS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__) && !defined(BLKIN_PORTABLE)
#include <emmintrin.h>
#endif

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

/* length < 4096 */
static inline char *blkin_put_length(char *at, size_t length)
{
    const uint32_t digits = (uint32_t)(length & 63) + (uint32_t)(length >> 6 << 8) + 0x3030;
    const uint16_t in_order = htole16((uint16_t)digits);

    memcpy(at, &in_order, 2);
    return at + 2;
}

#endif
