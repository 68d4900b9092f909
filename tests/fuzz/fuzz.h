/*
 * What the fuzzers share: taking values from the input, and requirements that stop them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "core/text.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

struct source {
    const uint8_t *at, *end;
};

/* Zeros when the input is used up. */
static inline uint64_t take(struct source *source, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | (source->at < source->end ? *source->at++ : 0);
    return value;
}

static inline struct text take_bytes(struct source *source, size_t length)
{
    const size_t left = (size_t)(source->end - source->at);
    const struct text text = {(const char *)source->at, length < left ? length : left};

    source->at += text.length;
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
