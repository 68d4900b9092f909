/*
 * A process that stores copies of a service's descriptors. The copies outlive a kill of the
 * service. systemd does the same for the services that it starts.
 *
 * The process ends when the service disconnects and no descriptor is stored. The process also ends
 * when no service has connected for ten minutes, or within ten seconds of its start.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_FDSERVER_H
#define BLKIN_TOOLS_RINGS_FDSERVER_H

#include "babeltrace-plugin/base/error.h"
#include "tools/base/child.h"
#include "tools/base/notify.h"

/* Runs the process until its end, and returns the exit status. The job's order is the path of the
 * socket. */
extern const struct job fdserver_job;
int fdserver_run(const char *path);

/*
 * Connects to the process, or starts one, and calls `give` for each stored descriptor. Waits for at
 * most 2 s for a new process, and answer_ms for each message. *fdserver: the connection; -1, with
 * error set, on failure.
 */
void fdserver_open(int *fdserver, struct loop *loop, const char *path, int answer_ms,
                   notify_stored_fn *give, void *context, struct error *error);

/* Returns the pid of the process; 0: none runs. */
int64_t fdserver_pid(const char *path);

/* Store and remove a descriptor. False: the process is gone, or has not read for a second. */
bool fdserver_put(int fdserver, int fd, const char *name);
bool fdserver_remove(int fdserver, const char *name);

#endif
