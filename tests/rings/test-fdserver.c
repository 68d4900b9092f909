/*
 * The fdserver stores each descriptor once. A service can find the fdserver while another service
 * is connected. Of a message with several descriptors, only one is taken.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "check.h"
#include "tools/rings/fdstore.h"
#include "waits.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define MEMORIES       600
#define FDSERVER_LOOKS 50
#define PUT_MS         1000 /* FDSERVER_SEND_MS of fdserver.c */
#define PUTS           10

static char path[150];
static struct error error;
static unsigned stored, stored_of[MEMORIES];
static pid_t fdserver_process;

static void count_stored(void *context, int fd, const char *name)
{
    uint32_t user;
    uint64_t number;

    (void)context;
    CHECK(fdstore_is_name(name, &user, &number) && user < MEMORIES);
    stored++;
    stored_of[user]++;
    (void)close(fd);
}

static int connect_to(void)
{
    int fdserver;

    fdserver_open(&fdserver, NULL, path, 2000, count_stored, NULL, &error);
    CHECK(fdserver >= 0);
    return fdserver;
}

/* A put fails only after a wait of PUT_MS, in which the fdserver may not run on a busy machine. */
static void put(int fdserver, int fd, const char *name)
{
    int64_t begin_ms = clock_ms();
    bool is_put = false;

    for (int i = 0; i < PUTS && !(is_put = fdserver_put(fdserver, fd, name)); i++) {
        CHECK(clock_ms() - begin_ms >= PUT_MS);
        begin_ms = clock_ms();
    }
    CHECK(is_put);
}

/* Puts descriptors while the fdserver is stopped. The fdserver continues when the service waits. */
static void put_all(int fdserver)
{
    const int fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    const pid_t service = getpid();
    char name[FDSTORE_NAME_MAX];
    int status = 1;
    pid_t waker;

    CHECK(kill(fdserver_process, SIGSTOP) == 0);
    waker = fork();
    if (waker == 0) {
        WAIT_UNTIL(is_asleep(service));
        CHECK(kill(fdserver_process, SIGCONT) == 0);
        _exit(check_status());
    }
    for (uint32_t user = 0; user < MEMORIES; user++) {
        fdstore_name(user, 1, name);
        put(fdserver, fd, name);
    }
    (void)close(fd);
    CHECK(waitpid(waker, &status, 0) == waker && status == 0);
}

TEST(test_all)
{
    int fdserver = connect_to();

    CHECK(stored == 0);
    put_all(fdserver);
    (void)close(fdserver); /* as when the service is killed */
    fdserver = connect_to();
    CHECK(stored == MEMORIES);
    put_all(fdserver);
    (void)close(fdserver);
    stored = 0;
    memset(stored_of, 0, sizeof(stored_of));
    fdserver = connect_to();
    CHECK(stored == MEMORIES);
    for (uint32_t user = 0; user < MEMORIES; user++)
        CHECK(stored_of[user] == 1);
    (void)close(fdserver);
}

/* The fdserver serves the first connection only: others get no answer. */
TEST(test_found)
{
    const int fdserver = connect_to();

    for (int i = 0; i < FDSERVER_LOOKS; i++)
        CHECK(fdserver_pid(path) == fdserver_process);
    (void)close(fdserver);
}

/* Of a message with two descriptors, the receiver gets the first. The kernel discards the second,
 * so no descriptor stays open. */
TEST(test_one_of_two)
{
    union {
        char bytes[CMSG_SPACE(2 * sizeof(int))];
        struct cmsghdr aligned;
    } room = {{0}};
    struct iovec text = {"text", 4};
    struct msghdr message = {.msg_iov = &text,
                             .msg_iovlen = 1,
                             .msg_control = room.bytes,
                             .msg_controllen = sizeof(room.bytes)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int ends[2], pipe_ends[2], passed;
    char got[4];

    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    CHECK(pipe2(pipe_ends, O_CLOEXEC | O_NONBLOCK) == 0);
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(pipe_ends));
    memcpy(CMSG_DATA(head), (int[]){pipe_ends[1], pipe_ends[1]}, sizeof(pipe_ends));
    CHECK(sendmsg(ends[0], &message, 0) == 4);
    CHECK(unix_socket_receive(ends[1], got, sizeof(got), &passed, 0) == 4 && passed >= 0);
    (void)close(passed);
    (void)close(pipe_ends[1]);
    CHECK(read(pipe_ends[0], got, 1) == 0); /* no process has the write end */
    (void)close(pipe_ends[0]);
    (void)close(ends[0]);
    (void)close(ends[1]);
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&fdserver_job, NULL};
    int status;

    if (job_run_in_child(argc, argv, jobs, &status)) /* a service without an fdserver starts one */
        return status;
    (void)snprintf(path, sizeof(path), "%s/fdserver", getenv("TMPDIR"));
    fdserver_process = fork();
    if (fdserver_process == 0)
        _exit(fdserver_run(path));
    WAIT_UNTIL(is_listening(path));
    check_run();
    (void)kill(fdserver_process, SIGKILL);
    (void)waitpid(fdserver_process, NULL, 0);
    (void)unlink(path);
    return check_status();
}
