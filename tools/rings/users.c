/* SPDX-License-Identifier: BSD-2-Clause */
#include "users.h"

#include "babeltrace-plugin/base/file.h"

#include <inttypes.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define USERS_USUAL_OVERFLOW 65534

/* Returns true if the map covers all numbers. An unreadable map covers none. */
static bool users_are_all_known(const char *uid_map)
{
    GUARD_FILE FILE *file = fopen(uid_map, "re");
    uint64_t known = 0, count;

    while (file && fscanf(file, "%*u %*u %" SCNu64, &count) == 1)
        known += count;
    return known >= UINT32_MAX;
}

static uint32_t users_overflow(const char *overflow_uid)
{
    GUARD_FILE FILE *file = fopen(overflow_uid, "re");
    uint32_t user;

    return file && fscanf(file, "%" SCNu32, &user) == 1 ? user : USERS_USUAL_OVERFLOW;
}

uint32_t users_unknown_in_files(const char *uid_map, const char *overflow_uid)
{
    return users_are_all_known(uid_map) ? USERS_ALL_KNOWN : users_overflow(overflow_uid);
}

uint32_t users_unknown(void)
{
    return users_unknown_in_files("/proc/self/uid_map", "/proc/sys/kernel/overflowuid");
}

/* ---- subordinate numbers --------------------------------------------------------------------- */

#define USERS_NAME_MAX 255

/* Finds the user in the file only, because other name services may block this process. */
static bool users_find(const char *passwd, const char *name, uint32_t *user)
{
    GUARD_FILE FILE *file = fopen(passwd, "re");
    const struct passwd *entry = NULL;

    while (file && (entry = fgetpwent(file)) && strcmp(entry->pw_name, name) != 0)
        continue;
    if (entry)
        *user = entry->pw_uid;
    return entry != NULL;
}

uint32_t users_owner_in_files(const char *subuid, const char *passwd, uint32_t user)
{
    GUARD_FILE FILE *file = fopen(subuid, "re");
    char line[USERS_NAME_MAX + 64], name[USERS_NAME_MAX + 1];
    uint32_t owner = user;
    uint64_t first, count;

    while (file && fgets(line, sizeof(line), file)) {
        if (sscanf(line, "%255[^:]:%" SCNu64 ":%" SCNu64, name, &first, &count) != 3 ||
            user < first || user - first >= count)
            continue;
        owner = (uint32_t)first;
        if (!users_find(passwd, name, &owner))
            (void)sscanf(name, "%" SCNu32, &owner);
        break;
    }
    return owner;
}

uint32_t users_owner(uint32_t user)
{
    return users_owner_in_files("/etc/subuid", "/etc/passwd", user);
}
