/*
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "watchdog.h"

#include "notify.h"

static void feed(void *context)
{
    struct watchdog *watchdog = context;

    notify("WATCHDOG=1");
    timer_set(watchdog->loop, &watchdog->timer, notify_watchdog_ms());
}

void watchdog_start(struct watchdog *watchdog, struct loop *loop)
{
    *watchdog = (struct watchdog){.loop = loop, .timer = {.due = feed, .context = watchdog}};
    if (notify_watchdog_ms())
        feed(watchdog);
}
