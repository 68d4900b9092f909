/*
 * The loop of a test, which ends at the signals that end a service.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_SERVICE_IN_LOOP_H
#define TESTS_SERVICE_IN_LOOP_H

#include "check.h"
#include "tools/base/loop.h"

static struct loop *loop;

static inline void stop(void *context)
{
    (void)context;
    loop_stop(loop);
}

static const struct loop_signals signals = {stop, stop, NULL};

/* Runs the loop until stop() or a signal, for at most `ms`. */
static inline void run_for(int64_t ms)
{
    struct timer limit = {.due = stop};

    timer_set(loop, &limit, ms);
    CHECK(loop_run(loop));
    timer_clear(loop, &limit);
}

#endif
