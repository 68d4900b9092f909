/*
 * Users that cannot be told apart: the kernel's files of user namespaces, and a service in its own
 * namespace that does not know the user of a program. Also the owners of subordinate numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holding.h"
#include "tools/rings/users.h"

#include <sched.h>

static char map[200], overflow[200];

static uint32_t unknown_of(const char *map_text, const char *overflow_text)
{
    write_file(map, map_text);
    write_file(overflow, overflow_text);
    return users_unknown_in_files(map, overflow);
}

TEST(test_files)
{
    CHECK(unknown_of("         0          0 4294967295\n", "65534\n") == USERS_ALL_KNOWN);
    CHECK(unknown_of("0 100000 65536\n", "65534\n") == 65534);
    CHECK(unknown_of("0 1000 1\n1 100000 65535\n", "99\n") == 99);
    CHECK(unknown_of("0 0 1000\n1000 1000 4294966295\n", "65534\n") == USERS_ALL_KNOWN);
    CHECK(unknown_of("", "") == 65534);
    (void)unlink(map);
    (void)unlink(overflow);
    CHECK(users_unknown_in_files(map, overflow) == 65534);
}

static uint32_t owner_of(const char *subuid, uint32_t user)
{
    write_file(map, subuid);
    return users_owner_in_files(map, overflow, user);
}

TEST(test_owners)
{
    static const char two[] = "ann:100000:65536\n77:200000:10\nnobody-here:300000:10\n";

    write_file(overflow, "root:x:0:0::/:\nann:x:1001:1001::/:\n");
    CHECK(owner_of(two, 100000) == 1001 && owner_of(two, 165535) == 1001);
    CHECK(owner_of(two, 165536) == 165536 && owner_of(two, 1001) == 1001);
    CHECK(owner_of(two, 200009) == 77);
    CHECK(owner_of(two, 300009) == 300000);
    CHECK(owner_of("ann:100000\n:::\n", 100000) == 100000 && owner_of("", 5) == 5);
    (void)unlink(map);
    CHECK(users_owner_in_files(map, overflow, 100000) == 100000);
    (void)unlink(overflow);
}

/* ---- a service ------------------------------------------------------------------------------- */

/* Returns true if a program of that user of the host gets a memory. */
static bool is_given(uid_t user)
{
    const int result = result_of(start_as(user, 0, use_once));

    CHECK(result == 0 || result == 1);
    return result == 0;
}

/* If the namespace knows all users, 65534 is a user like any other. */
TEST(test_host)
{
    pid_t service;

    if (geteuid() != 0) {
        puts("not tested: other users, which only root can be");
        return;
    }
    service = begin();
    CHECK(is_given(65534) == (users_unknown() == USERS_ALL_KNOWN));
    end_test(service);
}

static void know_root_only(void)
{
    CHECK(unshare(CLONE_NEWUSER) == 0);
    write_file("/proc/self/uid_map", "0 0 1\n");
}

TEST(test_namespace)
{
    pid_t service;

    if (geteuid() != 0 || system("unshare --user true") != 0) {
        puts("not tested: no user namespaces here");
        return;
    }
    prepare_service = know_root_only;
    service = begin();
    CHECK(is_given(0));
    CHECK(!is_given(41000));
    CHECK(!is_given(65534));
    end_test(service);
}

CHECK_MAIN_WITH((prepare(), snprintf(map, sizeof(map), "%s/map", folder),
                 snprintf(overflow, sizeof(overflow), "%s/overflow", folder)),
                clean_up())
