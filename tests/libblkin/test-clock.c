/*
 * The clock of spans: its rate is right from the start, however often a process starts, and does
 * not stay wrong; the chores that it drives come in time, also after a step back.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../libblkin/clock.c"

#include "check.h"
#include "process.h"

#include <stdlib.h>

uint64_t blkin_chores_due_ticks;

static uint64_t difference(uint64_t one, uint64_t other)
{
    return one > other ? one - other : other - one;
}

static void test_chores(void)
{
    const uint64_t second = blkin_ticks_of_ns(1000000000);
    const uint64_t due_times[] = {0, 1, second, UINT64_C(1) << 62, UINT64_C(1) << 63, -second};

    for (size_t i = 0; i < sizeof(due_times) / sizeof(due_times[0]); i++) {
        const uint64_t due = blkin_chores_due_ticks = due_times[i];

        CHECK(!blkin_chores_are_due(due - 1));
        CHECK(!blkin_chores_are_due(due - second));
        CHECK(blkin_chores_are_due(due));
        CHECK(blkin_chores_are_due(due + 100 * second));
        /* the counter has stepped back by that much */
        CHECK(blkin_chores_are_due(due - 100 * second));
        CHECK(blkin_chores_are_due(due - 1000000 * second));
    }
}

int main(void)
{
    struct moment begin, end;
    uint64_t rate;

    test_chores();
    blkin_clock_init();
    if (!blkin_clock.use_counter) {
        puts("the counter is not the clock here");
        return 77;
    }
    test_chores();
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
