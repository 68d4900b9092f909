/*
 * Can users be told apart by their numbers, and whose are the numbers?
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

/*
 * Who may use this number by /etc/subuid, as rootless containers do: subuid(5). Where /etc/passwd
 * does not have the owner, it is the first number of the range. All others own themselves.
 */
uint32_t users_owner(uint32_t user);

/* The same with these files instead. */
uint32_t users_owner_by(const char *subuid, const char *passwd, uint32_t user);

#endif
