/*
 * A process that keeps descriptors for a service while the service is killed and started again. If
 * systemd runs the service, systemd does this instead.
 *
 * It ends when the service leaves and has taken all back, or when none has come for ten minutes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_FDSERVER_H
#define BLKIN_TOOLS_RINGS_FDSERVER_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/child.h"
#include "tools/base/notify.h"

/* The process, until it ends. Its order is the path of its socket. */
extern const struct job fdserver_job;
int fdserver_run(const char *path);

/*
 * Connects to the process, which is started if none is there, and gives what it has kept. Waits for
 * it for 2 s at most. *fdserver: the connection; -1, with error set: there is none.
 */
void fdserver_open(int *fdserver, struct loop *loop, const char *path, notify_stored_fn *give,
                   void *context, struct error *error);

/* The process's number; 0: there is none. */
int64_t fdserver_pid(const char *path);

/*
 * They return false if the process is gone, or has not read for a second. It keeps what it
 * received, even if the service dies.
 */
bool fdserver_put(int fdserver, int fd, const char *name);
bool fdserver_remove(int fdserver, const char *name);

#endif
