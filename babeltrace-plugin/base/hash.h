/*
 * Hashes of ids and short texts for tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_HASH_H
#define BLKIN_BASE_HASH_H

#include "text.h"

#include <stdint.h>
#include <sys/random.h>

/* The finaliser of splitmix64 (see libblkin/base/thread.h). Every input bit reaches every output
 * bit, so consecutive ids also fill a power-of-two table evenly. */
static inline uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/* Hashes a number for a table with this seed. */
static inline uint64_t hash_number(uint64_t seed, uint64_t number)
{
    return hash_mix(seed ^ number);
}

/* Returns random bits for a table whose keys come from a trace: an attacker cannot choose keys that
 * make the table slow. If the kernel has no random bits yet, returns the table's address. */
static inline uint64_t hash_seed(const void *table)
{
    uint64_t seed;

    return getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0 ? (uint64_t)(uintptr_t)table : seed;
}

static inline uint64_t hash_word(const char *bytes)
{
    uint64_t word;

    memcpy(&word, bytes, sizeof(word));
    return word;
}

/* Hashes a text. Most texts are short: two overlapping loads replace a loop over the remaining
 * bytes. */
static inline uint64_t hash_text(uint64_t seed, struct text text)
{
    const char *const data = text.data;
    uint64_t hash = seed ^ text.length, word = 0;
    uint32_t half;
    size_t done = 0;

    if (text.length >= 8) {
        for (; text.length - done > 8; done += 8)
            hash = hash_mix(hash ^ hash_word(data + done));
        return hash_mix(hash ^ hash_word(data + text.length - 8));
    }
    if (text.length >= 4) {
        memcpy(&half, data, sizeof(half));
        word = half;
        memcpy(&half, data + text.length - 4, sizeof(half));
        return hash_mix(hash ^ (word << 32 | half));
    }
    for (size_t i = 0; i < text.length; i++)
        word = word << 8 | (unsigned char)data[i];
    return hash_mix(hash ^ word);
}

#endif
