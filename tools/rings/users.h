/*
 * Tells which user numbers identify a user and the owners of subordinate numbers.
 *
 * In a container with a user namespace, all users that the namespace does not know have one number
 * (/proc/sys/kernel/overflowuid). If they shared a memory, each could read and forge the spans of
 * the others.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_USERS_H
#define BLKIN_TOOLS_RINGS_USERS_H

#include <stdint.h>

#define USERS_ALL_KNOWN UINT32_MAX /* no user has this number */

/* The number of all users that this process's namespace does not know, or USERS_ALL_KNOWN. */
uint32_t users_unknown(void);

/* The same with these files instead of the kernel's. */
uint32_t users_unknown_by(const char *uid_map, const char *overflow_uid);

/*
 * The owner of a subordinate number by subuid(5), as rootless containers use them. If /etc/passwd
 * does not have the owner: the first number of the range. Other numbers own themselves.
 */
uint32_t users_owner(uint32_t user);

/* The same with these files instead. */
uint32_t users_owner_by(const char *subuid, const char *passwd, uint32_t user);

#endif
