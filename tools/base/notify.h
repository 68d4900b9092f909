/*
 * What a service tells systemd: the protocol of sd_notify(3). Nothing happens where nobody listens.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_NOTIFY_H
#define BLKIN_TOOLS_NOTIFY_H

#include "messages.h"

#include <stdint.h>

/* "READY=1", "STATUS=...": several with a newline between them. */
__attribute__((format(printf, 1, 2))) void notify(const char *format, ...);

/* "RELOADING=1", which wants the time. */
void notify_reloading(void);
/* "READY=1"; the log has the result. */
void notify_reloaded(enum message_id id, const char *result);

/* How often "WATCHDOG=1" is due: half of what systemd allows; 0: never. */
int64_t notify_watchdog_ms(void);

#endif
