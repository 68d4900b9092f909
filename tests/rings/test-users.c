/*
 * Users that cannot be told apart: the kernel's files of user namespaces, and a service in its own
 * namespace that does not know the user of a program. Also the owners of subordinate numbers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/unix_socket.h"
#include "check.h"
#include "tools/rings/fdserver.h"
#include "tools/rings/holder.h"
#include "tools/rings/users.h"
#include "waits.h"

#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

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

/* ---- a service that holds rings, and the fdserver: each is a child of the test ---- */

struct served {
    char path[200], fdserver[200]; /* paths of the two sockets */
    pid_t fdserver_process, service;
};

static void ignore(void *context, struct held *held)
{
    (void)context, (void)held;
}

static void serve(const struct served *served, int ready)
{
    static const struct loop_signals signals;
    const struct holder_options options = {
        .path = served->path,
        .fdserver = served->fdserver,
        .size = {memory_host_cpus(), RING_BYTES_MIN, RING_BYTES_MIN},
        .max_users = 8,
        .max_bytes = UINT64_C(1) << 32,
        .left_ms = 1000,
        .idle_ms = 600000,
        .hold_ms = 600000,
    };
    const struct holder_callbacks callbacks = {ignore, ignore, NULL};
    struct loop *loop = loop_new(&signals);
    struct error error;

    if (!holder_open(loop, &options, &callbacks, &error)) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    (void)!write(ready, "", 1);
    loop_run(loop);
    _exit(1);
}

/* Programs can connect when this returns. */
static void served_begin(struct served *served, const char *folder)
{
    int ready[2];
    char byte;

    (void)snprintf(served->path, sizeof(served->path), "%s/rings", folder);
    (void)snprintf(served->fdserver, sizeof(served->fdserver), "%s/fdserver", folder);
    served->fdserver_process = fork();
    if (served->fdserver_process == 0)
        _exit(fdserver_run(served->fdserver));
    WAIT_UNTIL(is_listening(served->fdserver));
    CHECK(pipe(ready) == 0);
    served->service = fork();
    if (served->service == 0)
        serve(served, ready[1]);
    (void)close(ready[1]);
    CHECK(read(ready[0], &byte, 1) == 1);
    (void)close(ready[0]);
}

static void served_end(const struct served *served)
{
    (void)kill(served->service, SIGKILL);
    (void)waitpid(served->service, NULL, 0);
    (void)kill(served->fdserver_process, SIGKILL);
    (void)waitpid(served->fdserver_process, NULL, 0);
    (void)unlink(served->fdserver);
    (void)unlink(served->path);
}

/* Asks for a memory. Returns true if there is one. */
static bool gets_memory(const char *path)
{
    struct ring_hello hello = {.mark = 0};
    struct error error;
    const int socket = unix_socket_connect(SOCK_SEQPACKET, path, &error);
    struct pollfd wait = {socket, POLLIN, 0};
    int fd = -1;

    if (socket < 0)
        return false;
    (void)poll(&wait, 1, PATIENCE_MS); /* a refusal hangs up at once */
    (void)unix_socket_receive(socket, &hello, sizeof(hello), &fd, MSG_DONTWAIT);
    return fd >= 0 && hello.mark == RING_MARK;
}

/* Returns true if a program of that user of the host gets a memory. */
static bool is_given(const char *path, uid_t user)
{
    const pid_t pid = fork();
    int status = -1;

    if (pid == 0) {
        if (seteuid(user) != 0)
            _exit(2);
        _exit(!gets_memory(path));
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) < 2);
    return WEXITSTATUS(status) == 0;
}

/* The service's namespace knows root only. */
static int test_namespace(const char *folder)
{
    struct served served;
    int tell[2], go_on[2], status = -1;
    char byte = 0;
    pid_t pid;

    if (pipe(tell) != 0 || pipe(go_on) != 0)
        return 1;
    pid = fork();
    if (pid == 0) {
        if (unshare(CLONE_NEWUSER) != 0)
            _exit(77);
        write_file("/proc/self/uid_map", "0 0 1\n");
        served_begin(&served, folder);
        (void)!write(tell[1], &served, sizeof(served));
        (void)!read(go_on[0], &byte, 1);
        served_end(&served);
        _exit(check_status());
    }
    (void)close(tell[1]);
    if (read(tell[0], &served, sizeof(served)) == (ssize_t)sizeof(served)) {
        CHECK(is_given(served.path, 0));
        CHECK(!is_given(served.path, 41000));
        CHECK(!is_given(served.path, 65534));
        (void)!write(go_on[1], &byte, 1);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    if (WEXITSTATUS(status) == 77)
        puts("not tested: no user namespaces here");
    else
        CHECK(WEXITSTATUS(status) == 0);
    return check_status();
}

/* If the namespace knows all users, 65534 is a user like any other. */
static void test_host(const char *folder)
{
    struct served served;

    served_begin(&served, folder);
    CHECK(is_given(served.path, 65534) == (users_unknown() == USERS_ALL_KNOWN));
    served_end(&served);
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
