/*
 * Reading what the kernel tells of user namespaces.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "users.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#define USERS_USUAL_OVERFLOW 65534

/* Does the map have a line for each number? What cannot be read knows nobody. */
static bool users_are_all_known(const char *uid_map)
{
    FILE *file = fopen(uid_map, "re");
    uint64_t known = 0, count;

    while (file && fscanf(file, "%*u %*u %" SCNu64, &count) == 1)
        known += count;
    if (file)
        (void)fclose(file);
    return known >= UINT32_MAX;
}

uint32_t users_unknown_by(const char *uid_map, const char *overflow_uid)
{
    FILE *file;
    uint32_t user;

    if (users_are_all_known(uid_map))
        return USERS_ALL_KNOWN;
    file = fopen(overflow_uid, "re");
    if (!file || fscanf(file, "%" SCNu32, &user) != 1)
        user = USERS_USUAL_OVERFLOW;
    if (file)
        (void)fclose(file);
    return user;
}

uint32_t users_unknown(void)
{
    return users_unknown_by("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
}
