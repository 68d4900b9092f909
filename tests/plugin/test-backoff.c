/*
 * The pause before the next attempt.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/backoff.h"
#include "check.h"

#include <limits.h>

/* The limit is exact, also if it is not first_ms times a power of two. */
TEST(test_pauses)
{
    static const int64_t expected[] = {200, 200, 400, 800, 1600, 3200, 6400, 10000, 10000};

    for (unsigned failures = 0; failures < sizeof(expected) / sizeof(expected[0]); failures++)
        CHECK(backoff_ms(failures, 200, 10000) == expected[failures]);
    CHECK(backoff_ms(UINT_MAX, 200, 10000) == 10000);
    CHECK(backoff_ms(UINT_MAX, 1, INT64_MAX / 2) == INT64_MAX / 2);
    CHECK(backoff_ms(6, 1000, 32000) == 32000 && backoff_ms(7, 1000, 32000) == 32000);
    CHECK(backoff_ms(1, 5000, 1000) == 1000);
}

/* A pause is random, from 0 to a limit that grows. After a success, the limit is first_ms. */
TEST(test_jitter)
{
    static const int64_t limits_ms[] = {100, 200, 400, 800, 1500, 1500};
    int64_t sum_ms = 0;
    struct backoff backoff = backoff_new(100, 1500);
    int64_t asked_ms;

    for (int run = 0; run < 1000; run++) {
        for (size_t i = 0; i < sizeof(limits_ms) / sizeof(limits_ms[0]); i++) {
            const int64_t pause_ms = backoff_pause_ms(&backoff, 0);

            CHECK(pause_ms >= 0 && pause_ms <= limits_ms[i]);
            sum_ms += pause_ms;
        }
        backoff.failures = 0;
    }
    CHECK(sum_ms > 2000000 && sum_ms < 2500000); /* a run has 4500 / 2 ms on average */
    for (int i = 0; i < 100; i++) {              /* the peer has asked for a pause */
        asked_ms = backoff_pause_ms(&backoff, 7000);
        CHECK(asked_ms >= 7000 && asked_ms <= 7100);
    }
}

CHECK_MAIN
