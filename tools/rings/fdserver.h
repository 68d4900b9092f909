/*
 * A process that stores descriptors for a service while the service is killed and restarted. If
 * systemd runs the service, systemd does this instead.
 *
 * The process ends when the service disconnects and nothing is stored any more, or when no service
 * has connected for ten minutes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_FDSERVER_H
#define BLKIN_TOOLS_RINGS_FDSERVER_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/child.h"
#include "tools/base/notify.h"

/* Runs the process until it ends. The job's order is the path of the socket. */
extern const struct job fdserver_job;
int fdserver_run(const char *path);

/*
 * Connects to the process, starts one if none runs, and calls `give` for each stored descriptor.
 * Waits for 2 s at most. *fdserver: the connection; -1, with error set, on failure.
 */
void fdserver_open(int *fdserver, struct loop *loop, const char *path, notify_stored_fn *give,
                   void *context, struct error *error);

/* The pid of the process; 0: none runs. */
int64_t fdserver_pid(const char *path);

/*
 * Both return false if the process is gone, or has not read for a second. Descriptors that the
 * process received are stored, even if the service dies.
 */
bool fdserver_put(int fdserver, int fd, const char *name);
bool fdserver_remove(int fdserver, const char *name);

#endif
