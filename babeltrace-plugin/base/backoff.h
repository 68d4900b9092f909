/*
 * How long to wait before the next attempt: first_ms after the first failure, then twice as long
 * after each one more, up to limit_ms. The caller counts its failures in a row.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_BACKOFF_H
#define BLKIN_BASE_BACKOFF_H

#include <stdint.h>

/* Without a failure it is first_ms, too. */
static inline int64_t backoff_ms(unsigned failures, int64_t first_ms, int64_t limit_ms)
{
    int64_t ms = first_ms;

    for (unsigned i = 1; i < failures && ms < limit_ms; i++)
        ms *= 2;
    return ms < limit_ms ? ms : limit_ms;
}

#endif
