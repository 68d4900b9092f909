/*
 * Keys by which the sink joins the two halves of an interaction: hashes of data that both sides
 * know.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_KEY_H
#define BLKIN_PRELOAD_KEY_H

#include "tracepoints/format/put.h"

#include <stddef.h>
#include <stdint.h>

/* The hash FNV-1a of 64 bits. A text may be added in several parts. */
#define KEY_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t key_add(uint64_t hash, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* The last step of splitmix64: each bit of the result depends on each bit of `hash`. */
static inline uint64_t key_finish(uint64_t hash)
{
    hash = (hash ^ hash >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    hash = (hash ^ hash >> 27) * UINT64_C(0x94d049bb133111eb);
    return hash ^ hash >> 31;
}

/* Writes 16 hex digits without a NUL. */
static inline void key_digits(char digits[16], uint64_t key)
{
    for (int i = 15; i >= 0; i--, key >>= 4)
        digits[i] = "0123456789abcdef"[key & 15];
}

/* Returns the key of a request. hash: that of its connection; offset: of the request's first byte
 * in the client's stream. */
static inline uint64_t key_of(uint64_t hash, uint64_t offset)
{
    char text[BLKIN_DECIMAL_MAX];
    const char *end = blkin_put_decimal(text, offset);

    return key_finish(key_add(hash, text, (size_t)(end - text)));
}

#endif
