/*
 * The clock of spans: its rate is right from the start, however often a process starts, and does
 * not stay wrong.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../libblkin/clock.c"

#include "check.h"

#include <stdlib.h>

static uint64_t difference(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

int main(void)
{
    struct moment begin, end;
    uint64_t rate;

    blkin_clock_init();
    if (!blkin_clock.use_counter) {
        puts("the counter is not the clock here");
        return 77;
    }
    begin = moment_now();
    usleep(500000);
    end = moment_now();
    rate = rate_between(begin, end);

    for (int i = 0; i < 2000; i++) {
        blkin_clock_init();
        CHECK(difference(blkin_clock.rate, rate) < rate / 2000);
    }

    /* wrong, as on another host after a migration: not believed once, but the second time */
    blkin_clock.rate = rate / 2;
    last = moment_now();
    usleep(150000);
    blkin_clock_adjust();
    CHECK(blkin_clock.rate == rate / 2);
    usleep(150000);
    blkin_clock_adjust();
    CHECK(difference(blkin_clock.rate, rate) < rate / 2000);
    return check_status();
}
