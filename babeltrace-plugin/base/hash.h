/*
 * Hashing of ids and short texts for the core's tables.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_HASH_H
#define BLKIN_CORE_HASH_H

#include "text.h"

#include <stdint.h>
#include <sys/random.h>

/*
 * The finaliser of splitmix64 (see libblkin/base/thread.h): every input bit reaches every output
 * bit, so that ids which only count up fill a power-of-two table evenly too.
 */
static inline uint64_t hash_mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

/*
 * For a table whose keys come from a trace. Without random bytes a trace made for it could make the
 * table slow: no more.
 */
static inline uint64_t hash_seed(const void *table)
{
    uint64_t seed;

    return getrandom(&seed, sizeof(seed), GRND_NONBLOCK) < 0 ? (uint64_t)(uintptr_t)table : seed;
}

/* Eight bytes at a step. */
static inline uint64_t hash_text(uint64_t seed, struct text text)
{
    uint64_t hash = seed ^ text.length;
    uint64_t word;

    while (text.length >= sizeof(word)) {
        memcpy(&word, text.data, sizeof(word));
        hash = hash_mix(hash ^ word);
        text.data += sizeof(word);
        text.length -= sizeof(word);
    }
    word = 0;
    if (text.length)
        memcpy(&word, text.data, text.length);
    return hash_mix(hash ^ word);
}

#endif
