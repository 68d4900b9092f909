/*
 * What a service tells systemd: the protocol of sd_notify(3). Nothing happens where nobody listens.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_NOTIFY_H
#define BLKIN_TOOLS_NOTIFY_H

#include "say.h"

#include <stdbool.h>
#include <stdint.h>

/* "READY=1", "STATUS=...": several with a newline between them. */
__attribute__((format(printf, 1, 2))) void notify(const char *format, ...);

/* "RELOADING=1", which wants the time. */
void notify_reloading(void);
/* "READY=1"; the log has the result. */
void notify_reloaded(enum message_id id, const char *result);

/* How often "WATCHDOG=1" is due: half of what systemd allows; 0: never. */
int64_t notify_watchdog_ms(void);

/* ---- systemd's store of descriptors: what outlives a service that is killed or restarted */

/* Is there one? Not where nobody listens at NOTIFY_SOCKET. */
bool notify_has_store(void);

/* Returns false if it could not be told: try again later. */
bool notify_store(int fd, const char *name);

/* All of this name. Returns false if systemd is too busy to be told. */
bool notify_unstore(const char *name);

/* Gives each descriptor that was stored, which is the receiver's then. Once, at the start. */
typedef void notify_stored_fn(void *context, int fd, const char *name);
void notify_each_stored(notify_stored_fn *give, void *context);

#endif
