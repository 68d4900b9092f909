/*
 * Shared by the fuzzers: taking values from the input, and requirements that end the program.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_FUZZ_H
#define TESTS_FUZZ_H

#include "babeltrace-plugin/base/text.h"

#include <sanitizer/asan_interface.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define REQUIRE(condition)                                                            \
    do {                                                                              \
        if (!(condition)) {                                                           \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition); \
            abort();                                                                  \
        }                                                                             \
    } while (0)

struct fuzz {
    const uint8_t *at, *end;
};

/* Takes a big-endian integer of `bytes` bytes; missing bytes are 0. */
static inline uint64_t take(struct fuzz *source, unsigned bytes)
{
    uint64_t value = 0;

    while (bytes--)
        value = value << 8 | (source->at < source->end ? *source->at++ : 0);
    return value;
}

static inline struct text take_bytes(struct fuzz *source, size_t length)
{
    const size_t left = (size_t)(source->end - source->at);
    const struct text text = {(const char *)source->at, length < left ? length : left};

    source->at += text.length;
    return text;
}

static inline unsigned hash_of(const uint8_t *data, size_t size)
{
    unsigned sum = 0;

    for (size_t i = 0; i < size; i++)
        sum = sum * 31 + data[i];
    return sum;
}

/* Returns true for one input in `number` of those of at least 8 bytes, always the same ones: for
 * checks that would take most of the time. */
static inline bool is_one_in(unsigned number, const uint8_t *data, size_t size)
{
    return size >= 8 && hash_of(data, size) % number == 0;
}

static uint64_t random_number;

/* Replaces the system's getrandom(). The system's numbers would make executions of the same input
 * differ, and would cost a system call. */
ssize_t getrandom(void *buffer, size_t length, unsigned flags)
{
    (void)flags;
    for (size_t i = 0; i < length; i++)
        ((uint8_t *)buffer)[i] = (uint8_t)(random_number >> i % sizeof(random_number) * 8);
    return (ssize_t)length;
}

/*
 * Bytes with an exact end, followed by poisoned memory. The end is as strict as that of a malloc()
 * of the same size, at a fraction of the cost.
 */
#define FENCE 64

struct fenced {
    _Alignas(8) char before[FENCE];
    char bytes[20000];
    char after[FENCE];
};

static inline void fence_put(struct fenced *fenced, size_t length)
{
    REQUIRE(length <= sizeof(fenced->bytes));
    ASAN_POISON_MEMORY_REGION(fenced->before, FENCE);
    ASAN_POISON_MEMORY_REGION(fenced->bytes + length, FENCE);
}

static inline void fence_lift(struct fenced *fenced, size_t length)
{
    ASAN_UNPOISON_MEMORY_REGION(fenced->bytes + length, FENCE);
}

/* LeakSanitizer may search for leaks while a thread of the sanitizer itself asks for its stack. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:pthread_attr_setaffinity_np\nleak:__pthread_attr_extension\n";
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
