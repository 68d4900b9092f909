/*
 * Back-off.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "retry.h"

#include "../core/hash.h"
#include "../monotonic.h"

#include <sys/random.h>

void retry_init(struct retry *retry)
{
    retry->failures = 0;
    if (getrandom(&retry->random, sizeof(retry->random), GRND_NONBLOCK) < 0)
        retry->random = (uint64_t)clock_ms();
}

/* From 0 to limit. */
static int64_t random_up_to(struct retry *retry, int64_t limit)
{
    retry->random += UINT64_C(0x9e3779b97f4a7c15);
    return (int64_t)(hash_mix(retry->random) % (uint64_t)(limit + 1));
}

int64_t retry_pause_ms(struct retry *retry, int64_t after_ms)
{
    int64_t limit = RETRY_FIRST_MS;

    for (unsigned i = 0; i < retry->failures && limit < RETRY_LONGEST_MS; i++)
        limit *= 2;
    if (limit > RETRY_LONGEST_MS)
        limit = RETRY_LONGEST_MS;
    retry->failures++;
    /* not all of those who were told the same time at that time */
    return after_ms ? after_ms + random_up_to(retry, RETRY_FIRST_MS) : random_up_to(retry, limit);
}
