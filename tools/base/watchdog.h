/*
 * Tells systemd that a service's loop goes round, as often as systemd wants to know.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_WATCHDOG_H
#define BLKIN_TOOLS_WATCHDOG_H

#include "loop.h"

struct watchdog {
    struct loop *loop;
    struct timer timer;
};

/* At once, and again and again; not at all where systemd does not want to know. */
void watchdog_start(struct watchdog *watchdog, struct loop *loop);

#endif
