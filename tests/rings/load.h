/*
 * Records that show whether they are whole: with a sum of all that they have.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_RINGS_LOAD_H
#define TESTS_RINGS_LOAD_H

#include "tools/rings/ring_read.h"

#include <string.h>

#define LOAD_HEAD 24

struct load {
    uint64_t sum, writer, number, words[60];
};

static inline uint64_t load_sum(const struct load *load, size_t length)
{
    uint64_t sum = UINT64_C(14695981039346656037), word;

    for (size_t at = sizeof(sum); at + sizeof(word) <= length; at += sizeof(word)) {
        memcpy(&word, (const char *)load + at, sizeof(word));
        sum = (sum ^ word) * UINT64_C(1099511628211);
    }
    return sum;
}

/* Writer and number are set. Returns the length. */
static inline size_t load_fill(struct load *load, uint64_t random)
{
    const size_t words = random & 31, length = LOAD_HEAD + words * sizeof(load->words[0]);

    for (size_t i = 0; i < words; i++)
        load->words[i] = random + i * load->number;
    load->sum = load_sum(load, length);
    return length;
}

/* Returns false if it is none, or torn. */
static inline bool load_take(struct load *load, const struct ring_entry *entry)
{
    if (entry->length < LOAD_HEAD || entry->length > sizeof(*load))
        return false;
    memcpy(load, entry->payload, entry->length);
    return load->sum == load_sum(load, entry->length) && load->writer == entry->pid;
}

#endif
