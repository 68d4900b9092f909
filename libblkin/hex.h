/*
 * Hexadecimal digits, eight at a time and without a table: for the log of a span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_HEX_H
#define BLKIN_HEX_H

#include <endian.h>
#include <stdint.h>
#include <string.h>

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
