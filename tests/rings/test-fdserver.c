/*
 * The fdserver stores each descriptor once. A service can find the fdserver while another service
 * is connected. Of a message with several descriptors, only one is taken. Holders with an fdserver.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "holding.h"
#include "tools/rings/fdstore.h"

#define MEMORIES       600
#define FDSERVER_LOOKS 50
#define PUT_MS         1000 /* FDSERVER_SEND_MS of fdserver.c */
#define PUTS           (PATIENCE_MS / PUT_MS)

static unsigned stored, stored_of[MEMORIES];

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
    int connection = -1;

    /* again: the fdserver gives up if this process stands still for 1 s */
    WORK_UNTIL(connection >= 0, {
        stored = 0;
        memset(stored_of, 0, sizeof(stored_of));
        fdserver_open(&connection, NULL, fdserver, PATIENCE_MS, count_stored, NULL, &error);
    });
    return connection;
}

static pid_t start_fdserver(void)
{
    const pid_t pid = fork();

    if (pid == 0)
        _exit(fdserver_run(fdserver));
    DRAIN_UNTIL(is_listening(fdserver));
    return pid;
}

/* A put fails only after a wait of PUT_MS, in which the fdserver may not run on a busy machine. */
static void put(int connection, int fd, const char *name)
{
    int64_t begin_ms = clock_ms();
    bool is_put = false;

    for (int i = 0; i < PUTS && !(is_put = fdserver_put(connection, fd, name)); i++) {
        CHECK(clock_ms() - begin_ms >= PUT_MS);
        begin_ms = clock_ms();
    }
    CHECK(is_put);
}

/* Puts descriptors while the fdserver is stopped. The fdserver continues when the service waits. */
static void put_all(int connection, pid_t fdserver_process)
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
        put(connection, fd, name);
    }
    (void)close(fd);
    CHECK(waitpid(waker, &status, 0) == waker && status == 0);
}

/* The fdserver serves the first connection only: others get no answer. */
TEST(test_all)
{
    const pid_t fdserver_process = start_fdserver();
    int connection = connect_to();

    CHECK(stored == 0);
    put_all(connection, fdserver_process);
    (void)close(connection); /* as when the service is killed */
    connection = connect_to();
    CHECK(stored == MEMORIES);
    put_all(connection, fdserver_process);
    (void)close(connection);
    connection = connect_to();
    CHECK(stored == MEMORIES);
    for (uint32_t user = 0; user < MEMORIES; user++)
        CHECK(stored_of[user] == 1);
    for (int i = 0; i < FDSERVER_LOOKS; i++)
        CHECK(fdserver_pid(fdserver) == fdserver_process);
    (void)close(connection);
    end_program(fdserver_process);
    CHECK(fdserver_pid(fdserver) == 0 && unlink(fdserver) == 0);
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
    (void)close(pipe_ends[0]), (void)close(ends[0]), (void)close(ends[1]);
}

/* ---- holders with an fdserver ---------------------------------------------------------------- */

static uint64_t fdserver_written;
static unsigned fdserver_memories;

static void count_kept(void *context, int fd, const char *name)
{
    (void)context, (void)name;
    fdserver_written += head_at(fd).lost;
    fdserver_memories++;
    (void)close(fd);
}

/* An fdserver that did not answer at the start of a service gives its memories later. Meanwhile the
 * first user's program has got another memory. */
static void test_slow_fdserver(void)
{
    pid_t listener; /* a service that found the fdserver busy may have started another one */
    pid_t service = begin();
    uint64_t memories, came, went;

    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.is_stored);
    memories = shared->counts.taken_over + shared->counts.made;
    listener = (pid_t)fdserver_pid(fdserver);
    CHECK(listener > 0);
    (void)kill(listener, SIGSTOP);
    CHECK(finish(service, SIGKILL) != 0);
    options.answer_ms = 100;
    service = begin();
    options.answer_ms = usual.answer_ms;
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.made == 1 && shared->counts.taken_over == 0);
    came = shared->came;
    went = shared->went;
    (void)kill(listener, SIGCONT);
    DRAIN_UNTIL(shared->counts.taken_over == memories);
    DRAIN_UNTIL(shared->came == came + memories && shared->went == went + 1);
    CHECK(shared->counts.is_stored);
    CHECK(finish(service, SIGKILL) != 0);
}

/* A holder with an fdserver. The fdserver ends after a service that ends in order. */
TEST(test_fdserver)
{
    const pid_t keeper = start_fdserver();
    uint64_t got;
    int socket = -1, status;
    pid_t service;

    options.fdserver = fdserver;
    got = kill_services();
    fdserver_open(&socket, NULL, fdserver, PATIENCE_MS, count_kept, NULL, &error);
    CHECK(socket >= 0 && is_what_they_got(fdserver_written, got));
    CHECK(fdserver_memories == (unsigned)(is_root ? USERS : 1));
    (void)close(socket);
    test_slow_fdserver();
    is_dead = true;
    service = begin();
    CHECK(result_of(start_program(0, use_once)) == 0);
    DRAIN_UNTIL(shared->counts.is_stored);
    CHECK_TEXT(shared->counts.keeper, "process");
    CHECK(finish(service, SIGTERM) == 0);
    is_dead = false;
    CHECK(waitpid(keeper, &status, 0) == keeper && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    /* a service that found the fdserver busy has started another one */
    DRAIN_UNTIL(access(fdserver, F_OK) != 0);
    forget_all();
}

int main(int argc, char *argv[])
{
    static const struct job *const jobs[] = {&fdserver_job, NULL};
    int status;

    if (job_run_in_child(argc, argv, jobs, &status)) /* a service without an fdserver starts one */
        return status;
    seed = seed_begin();
    prepare();
    check_run();
    clean_up();
    return check_status();
}
