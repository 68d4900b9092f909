/*
 * Notifies systemd by the protocol of sd_notify(3). Does nothing without NOTIFY_SOCKET.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_NOTIFY_H
#define BLKIN_TOOLS_NOTIFY_H

#include "say.h"

#include <stdbool.h>
#include <stdint.h>

/* Sends assignments such as "READY=1", separated by newlines. */
__attribute__((format(printf, 1, 2))) void notify(const char *format, ...);

/* Sends "RELOADING=1" and the time. */
void notify_reloading(void);
/* Sends "READY=1" and logs the result. */
void notify_reloaded(enum message_id id, const char *result);

/* Returns the interval for "WATCHDOG=1", half of systemd's limit; 0: never. */
int64_t notify_watchdog_ms(void);

/* ---- systemd's descriptor store, which survives a kill or restart of the service */

/* Returns whether systemd listens at NOTIFY_SOCKET. True also if this process lacks descriptors or
 * memory to find out. */
bool notify_has_store(void);

/* Returns false if systemd is busy, or if nobody listens: the caller retries later. */
bool notify_store(int fd, const char *name);

/* Removes all descriptors of this name. Returns false if systemd is busy. */
bool notify_unstore(const char *name);

/* Hands each stored descriptor to the callback, which owns it then. The service calls this once, at
 * its start. */
typedef void notify_stored_fn(void *context, int fd, const char *name);
void notify_each_stored(notify_stored_fn *give, void *context);

#endif
