/*
 * Can users be told apart by their numbers?
 *
 * In a container with a user namespace of its own, the kernel gives one and the same number for all
 * users whom that namespace does not know (/proc/sys/kernel/overflowuid). Who shares a memory with
 * them would read what they record, and could forge it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_USERS_H
#define BLKIN_TOOLS_RINGS_USERS_H

#include <stdint.h>

#define USERS_ALL_KNOWN UINT32_MAX /* no user has it */

/* The number of all users whom this process's namespace does not know, or USERS_ALL_KNOWN. */
uint32_t users_unknown(void);

/* The same with these files instead of the kernel's. */
uint32_t users_unknown_by(const char *uid_map, const char *overflow_uid);

#endif
