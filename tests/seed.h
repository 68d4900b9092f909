/*
 * Random numbers. seed_begin() takes the seed from the environment variable SEED, or from the time,
 * and prints it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SEED_H
#define TESTS_SEED_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static inline uint64_t seed_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * UINT64_C(0x9e3779b97f4a7c15) >> 16;
}

static inline uint64_t seed_begin(void)
{
    const char *given = getenv("SEED");
    const uint64_t seed = given ? strtoull(given, NULL, 0) : (uint64_t)time(NULL);

    printf("SEED=%llu\n", (unsigned long long)seed);
    (void)fflush(stdout);
    return seed * 2 + 1; /* never 0 */
}

/* The state of dice(). Unless a test sets another state (not 0), it always gets the same numbers.
 */
static uint64_t dice_state = 1;

static inline uint64_t dice(uint64_t sides)
{
    return seed_next(&dice_state) % sides;
}

#endif
