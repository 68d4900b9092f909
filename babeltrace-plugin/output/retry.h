/*
 * How long to wait before the next attempt: exponential back-off with full jitter, so that senders
 * that failed together do not come back together, or what the peer asks for.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_RETRY_H
#define BLKIN_OUTPUT_RETRY_H

#include <stdint.h>

#define RETRY_FIRST_MS   100
#define RETRY_LONGEST_MS 10000

struct retry {
    unsigned failures; /* in a row */
    uint64_t random;
};

void retry_init(struct retry *retry);

/* Called after each failure. after_ms is what the peer asks for, 0 for nothing. */
int64_t retry_pause_ms(struct retry *retry, int64_t after_ms);

static inline void retry_succeeded(struct retry *retry)
{
    retry->failures = 0;
}

#endif
