/*
 * In which namespaces of the kernel's this process is: what tells containers' processes apart, and
 * their clocks. Both need /proc. Async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_NAMESPACES_H
#define BLKIN_NAMESPACES_H

#include <stdint.h>

/* The number of its pid namespace, as LTTng's context pid_ns has it; 0: not known. */
uint32_t blkin_pid_namespace(void);

/* What its CLOCK_MONOTONIC is ahead of the host's, in ns; 0 also if that is not known. */
int64_t blkin_clock_ahead_ns(void);

#endif
