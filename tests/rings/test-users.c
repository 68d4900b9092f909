/*
 * Users that cannot be told apart: the kernel's files of user namespaces, and a service in its own
 * namespace that does not know the user of a program.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "served.h"
#include "tools/rings/users.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/stat.h>

static char map[200], overflow[200];

static void write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");

    CHECK(file && fputs(text, file) >= 0 && fclose(file) == 0);
}

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

/* Returns true if a program of that user of the host gets a memory. */
static bool is_given(const char *path, uid_t user)
{
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (seteuid(user) != 0)
            _exit(2);
        _exit(!served_ask(path));
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

/* The service's namespace knows root only. */
static int test_namespace(const char *folder)
{
    struct served served;
    int tell[2], go_on[2];
    char byte = 0;
    pid_t pid;

    if (pipe(tell) != 0 || pipe(go_on) != 0)
        return 1;
    pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER) != 0)
            _exit(77);
        write_file("/proc/self/uid_map", "0 0 1\n");
        served_begin(&served, folder, RING_BYTES_MIN);
        (void)!write(tell[1], &served, sizeof(served));
        (void)!read(go_on[0], &byte, 1);
        served_kill_service(&served);
        served_kill_keeper(&served);
        _exit(check_status());
    }
    (void)close(tell[1]);
    if (read(tell[0], &served, sizeof(served)) == (ssize_t)sizeof(served)) {
        CHECK(is_given(served.path, 0));
        CHECK(!is_given(served.path, 41000));
        CHECK(!is_given(served.path, 65534));
        (void)!write(go_on[1], &byte, 1);
    }
    {
        int status = -1;

        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
        if (WEXITSTATUS(status) == 77)
            puts("not tested: no user namespaces here");
        else
            CHECK(WEXITSTATUS(status) == 0);
    }
    return check_status();
}

/* If the namespace knows all users, 65534 is a user like any other. */
static void test_host(const char *folder)
{
    struct served served;

    served_begin(&served, folder, RING_BYTES_MIN);
    CHECK(is_given(served.path, 65534) == (users_unknown() == USERS_ALL_KNOWN));
    served_kill_service(&served);
    served_kill_keeper(&served);
}

int main(void)
{
    const char *where = getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp";

    (void)snprintf(map, sizeof(map), "%s/map", where);
    (void)snprintf(overflow, sizeof(overflow), "%s/overflow", where);
    check_run();
    if (geteuid() != 0) {
        puts("not tested: other users, which only root can be");
        return check_status();
    }
    CHECK(chmod(where, 0755) == 0);
    test_host(where);
    return test_namespace(where);
}
