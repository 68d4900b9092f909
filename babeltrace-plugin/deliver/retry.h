/*
 * How long to wait before the next attempt: what the peer asks for, or exponential back-off. Full
 * jitter keeps senders that failed together from coming back together.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_RETRY_H
#define BLKIN_OUTPUT_RETRY_H

#include "babeltrace-plugin/base/backoff.h"
#include "babeltrace-plugin/base/hash.h"

#define RETRY_FIRST_MS   100
#define RETRY_LONGEST_MS 1500 /* so a collector that is back gets spans within 2 s */

struct retry {
    unsigned failures; /* in a row */
    uint64_t random;
};

static inline void retry_init(struct retry *retry)
{
    retry->failures = 0;
    retry->random = hash_seed(retry);
}

/* Returns a random number from 0 to limit. */
static inline int64_t retry_random(struct retry *retry, int64_t limit)
{
    retry->random += UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(hash_mix(retry->random) % (uint64_t)(limit + 1));
}

/* To be called after each failure. after_ms: the pause that the peer asks for; 0: none. */
static inline int64_t retry_pause_ms(struct retry *retry, int64_t after_ms)
{
    const int64_t limit = backoff_ms(++retry->failures, RETRY_FIRST_MS, RETRY_LONGEST_MS);

    /* jitter, too, as the peer may have told all senders the same pause */
    return after_ms ? after_ms + retry_random(retry, RETRY_FIRST_MS) : retry_random(retry, limit);
}

static inline void retry_succeeded(struct retry *retry)
{
    retry->failures = 0;
}

#endif
