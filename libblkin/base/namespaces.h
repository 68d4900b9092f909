/*
 * The kernel namespaces of this process: its pid namespace, and the clock offset of its time
 * namespace. The functions need /proc. Async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_NAMESPACES_H
#define BLKIN_NAMESPACES_H

#include <stdint.h>

/* Returns the inode of the pid namespace, like LTTng's context pid_ns; 0: not known. */
uint32_t blkin_pid_namespace(void);

/* Returns this process's CLOCK_MONOTONIC minus the host's, in ns; 0 also if it is not known. */
int64_t blkin_clock_ahead_ns(void);

#endif
