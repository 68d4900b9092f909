/*
 * Finds the number that does not identify a user, and the owners of subordinate numbers.
 *
 * In a container with a user namespace, all users that the namespace does not know have one number
 * (/proc/sys/kernel/overflowuid). If such users shared a memory, each could read and forge the
 * spans of the others.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_USERS_H
#define BLKIN_TOOLS_RINGS_USERS_H

#include <stdint.h>

#define USERS_ALL_KNOWN UINT32_MAX /* no user has this number */

/* Returns the number of all users unknown to this process's namespace, or USERS_ALL_KNOWN. */
uint32_t users_unknown(void);

/* users_unknown() with other files than those of the kernel. */
uint32_t users_unknown_in_files(const char *uid_map, const char *overflow_uid);

/*
 * Returns the owner of a subordinate number by subuid(5), as rootless containers use them, or the
 * number itself. If /etc/passwd does not have the owner's name, and the name is no number, returns
 * the first number of the range.
 */
uint32_t users_owner(uint32_t user);

/* users_owner() with other files. */
uint32_t users_owner_in_files(const char *subuid, const char *passwd, uint32_t user);

#endif
