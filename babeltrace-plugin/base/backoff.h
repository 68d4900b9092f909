/*
 * Exponential back-off: the longest pause is first_ms after the first failure, and doubles after
 * each further one, up to limit_ms. The pause is random, from 0 to the longest (full jitter). So
 * callers that failed together do not retry together.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_BACKOFF_H
#define BLKIN_BASE_BACKOFF_H

#include "hash.h"

#include <stdint.h>

/* Returns the longest pause after this number of failures in a row. For 0 failures: first_ms. */
static inline int64_t backoff_ms(unsigned failures, int64_t first_ms, int64_t limit_ms)
{
    int64_t ms = first_ms;

    for (unsigned i = 1; i < failures && ms < limit_ms; i++)
        ms *= 2;
    return ms < limit_ms ? ms : limit_ms;
}

struct backoff {
    int64_t first_ms, limit_ms;
    unsigned failures; /* in a row; 0 after a success */
    uint64_t random;
};

static inline struct backoff backoff_new(int64_t first_ms, int64_t limit_ms)
{
    struct backoff backoff = {.first_ms = first_ms, .limit_ms = limit_ms};

    backoff.random = hash_seed(&backoff);
    return backoff;
}

/* Counts a failure. Returns the pause before the next attempt. after_ms: the pause that the peer
 * asks for; 0: none. */
static inline int64_t backoff_pause_ms(struct backoff *backoff, int64_t after_ms)
{
    const int64_t limit_ms = backoff_ms(++backoff->failures, backoff->first_ms, backoff->limit_ms);
    /* the peer may have asked many callers for the same pause, so each adds a random part */
    const int64_t jitter_ms = after_ms ? backoff->first_ms : limit_ms;

    backoff->random += UINT64_C(0x9e3779b97f4a7c15);
    return after_ms + (int64_t)(hash_mix(backoff->random) % (uint64_t)(jitter_ms + 1));
}

#endif
