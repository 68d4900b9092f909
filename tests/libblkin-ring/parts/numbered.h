/*
 * Records with their writer and number, so that a torn record is found.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RING_NUMBERED_H
#define TESTS_RING_NUMBERED_H

#include "seed.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define NUMBERED_WORDS 48 /* the maximum length of a record; the minimum is four words */

struct numbered {
    uint64_t sum; /* checksum of the length and all following words */
    uint64_t writer, number;
    uint64_t words[NUMBERED_WORDS - 3];
};

static inline uint64_t numbered_sum(const struct numbered *record, size_t length)
{
    uint64_t sum = length, word;

    for (size_t at = sizeof(uint64_t); at < length; at += sizeof(word)) {
        memcpy(&word, (const char *)record + at, sizeof(word));
        sum = (sum ^ word) * UINT64_C(0x100000001b3);
    }
    return sum;
}

static inline size_t numbered_make(struct numbered *record, uint64_t writer, uint64_t number,
                                   uint64_t *state)
{
    const uint64_t random = seed_next(state);
    const size_t words = 4 + (random >> 20) % (NUMBERED_WORDS - 3);

    record->writer = writer;
    record->number = number;
    for (size_t i = 0; i + 3 < words; i++)
        record->words[i] = random + i * number;
    record->sum = numbered_sum(record, words * sizeof(uint64_t));
    return words * sizeof(uint64_t);
}

static inline bool numbered_is_whole(struct numbered *record, const char *payload, size_t length)
{
    if (length < 4 * sizeof(uint64_t) || length > sizeof(*record) || length % sizeof(uint64_t) != 0)
        return false;
    memcpy(record, payload, length);
    return numbered_sum(record, length) == record->sum;
}

#endif
