/*
 * Functions that append to an event's payload and return the end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PUT_H
#define BLKIN_PUT_H

#include <stdint.h>
#include <string.h>

/* Copies bytes. Texts are short: overlapping moves cost less than a call of memcpy. Reads and
 * writes only `length` bytes. */
static inline __attribute__((always_inline)) char *blkin_put_bytes(char *at, const void *bytes,
                                                                   size_t length)
{
    const char *from = bytes;

    if (length < 16) {
        if (length >= 8) {
            memcpy(at, from, 8);
            memcpy(at + length - 8, from + length - 8, 8);
        } else if (length >= 4) {
            memcpy(at, from, 4);
            memcpy(at + length - 4, from + length - 4, 4);
        } else if (length) {
            at[0] = from[0];
            at[length / 2] = from[length / 2];
            at[length - 1] = from[length - 1];
        }
    } else if (length <= 32) {
        memcpy(at, from, 16);
        memcpy(at + length - 16, from + length - 16, 16);
    } else {
        for (size_t i = 0; i < length - 16; i += 16)
            memcpy(at + i, from + i, 16);
        memcpy(at + length - 16, from + length - 16, 16);
    }
    return at + length;
}

/* Works like blkin_put_bytes(), but copies at least BLKIN_BLOCK bytes, in one move. Source and
 * target must have that many bytes. */
#define BLKIN_BLOCK 32

static inline __attribute__((always_inline)) char *blkin_put_block(char *at, const void *bytes,
                                                                   size_t length)
{
    if (__builtin_expect(length > BLKIN_BLOCK, 0))
        return blkin_put_bytes(at, bytes, length);
    memcpy(at, bytes, BLKIN_BLOCK);
    return at + length;
}

/* Returns the length of the text that fits into max bytes. UTF-8 is cut between two characters,
 * other encodings anywhere. */
static inline size_t blkin_cut(const char *text, size_t length, size_t max)
{
    if (__builtin_expect(length <= max, 1))
        return length;
    for (size_t cut = max; cut > 0 && max - cut < 4; cut--) {
        if (((unsigned char)text[cut] & 0xc0) != 0x80) /* a character begins here */
            return cut;
    }
    return max;
}

/* Puts the string and its NUL, cut to max bytes. NULL is "". */
static inline char *blkin_put_string(char *at, const char *string, size_t max)
{
    const size_t length = string ? strlen(string) : 0;

    at = blkin_put_bytes(at, string, blkin_cut(string, length, max));
    *at = '\0';
    return at + 1;
}

#define BLKIN_DECIMAL_MAX 20 /* the digits of the longest number */

static inline char *blkin_put_decimal(char *at, uint64_t number)
{
    char digits[BLKIN_DECIMAL_MAX];
    size_t first = BLKIN_DECIMAL_MAX;

    do
        digits[--first] = (char)('0' + number % 10);
    while (number /= 10);
    memcpy(at, digits + first, BLKIN_DECIMAL_MAX - first);
    return at + BLKIN_DECIMAL_MAX - first;
}

#endif
