/*
 * The level of usage, which a sampling policy sets and which begins of spans look at.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_USAGE_LEVEL_H
#define BLKIN_USAGE_LEVEL_H

#include <stdbool.h>
#include <stdint.h>

#define BLKIN_USAGE_LEVEL_MAX 3

/* The level, in two bits, and above them how often it was changed: readings of two are no pair. */
extern __attribute__((visibility("hidden"))) uint32_t blkin_usage_state;

/* -DBLKIN_WITHOUT_USAGE: for the benchmark, what the test costs. */
static inline bool blkin_usage_is_on(void)
{
#ifdef BLKIN_WITHOUT_USAGE
    return false;
#else
    return __builtin_expect(
        (__atomic_load_n(&blkin_usage_state, __ATOMIC_RELAXED) & BLKIN_USAGE_LEVEL_MAX) != 0, 0);
#endif
}

/* Of 0 to BLKIN_USAGE_LEVEL_MAX. One thread at a time. */
void blkin_usage_set(unsigned level);

#endif
