/*
 * Can users be told apart by their numbers?
 *
 * In a container with a user namespace of its own, the kernel shows the same number for all users
 * that the namespace does not know (/proc/sys/kernel/overflowuid). If these users shared a memory,
 * each could read and forge what the others record.
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
