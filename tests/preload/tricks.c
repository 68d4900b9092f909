/*
 * Unusual uses of descriptors: tricks NAME PORT. Each trick makes requests between a client and a
 * server in one program, and may print results of calls. These must be the same without the
 * preload.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wire.h"
#include "preload/parts/tricks.h"
#include "waits.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

const char *port;
char body[BODY_MAX];
int listener;

static struct {
    const char *name;
    void (*play)(void);
} tricks[64];

static unsigned trick_count;

void trick_add(const char *name, void (*play)(void))
{
    tricks[trick_count].name = name;
    tricks[trick_count++].play = play;
}

/* ---- both sides ---- */

unsigned next_id(void)
{
    static unsigned count;

    return (unsigned)getpid() % 40000 * 100000 + ++count % 100000;
}

void request(int fd)
{
    char line[LINE + 1];

    line_write(line, next_id(), 0, OUT);
    give_all(0, fd, line, LINE);
}

void take_answer(int fd)
{
    char answer[OUT];

    if (!take_all(0, fd, answer, OUT))
        err(1, "answer");
}

pid_t start_client(int requests)
{
    const pid_t pid = fork();
    int fd;

    if (pid)
        return pid;
    fd = connect_to(port, 0);
    while (requests-- > 0) {
        request(fd);
        take_answer(fd);
    }
    close(fd);
    exit(0);
}

void wait_client(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status)
        err(1, "client");
}

int accept_one(void)
{
    const int fd = accept(listener, NULL, NULL);

    if (fd < 0)
        err(1, "accept");
    return fd;
}

void take_request(int fd)
{
    char line[LINE];

    if (!take_all(0, fd, line, LINE))
        err(1, "request");
}

void serve(int fd)
{
    take_request(fd);
    give_all(0, fd, body, OUT);
}

void expect_end(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 0)
        err(1, "end");
    close(fd);
}

/* ---- tricks ---- */

/* 2 requests after a greeting; the client closes its side before the second answer. */
TRICK(greeting)
{
    const int ours = connect_to(port, 0), fd = accept_one();
    char hello[5];

    give_all(0, fd, "hello", 5);
    if (!take_all(0, ours, hello, 5))
        err(1, "greeting");
    request(ours);
    serve(fd);
    take_answer(ours);
    request(ours);
    shutdown(ours, SHUT_WR);
    serve(fd);
    take_answer(ours);
    close(ours);
    expect_end(fd);
}

/* 1 request like those of DNS over TCP, which begin with a NUL. */
TRICK(binary)
{
    static const char query[] = "\0\x0b\xab\1A\\ \x7f\xff";
    const int ours = connect_to(port, 0), fd = accept_one();
    char got[sizeof(query)];

    give_all(0, ours, query, sizeof(query));
    if (!take_all(0, fd, got, sizeof(query)))
        err(1, "query");
    give_all(0, fd, got, sizeof(query));
    if (!take_all(0, ours, got, sizeof(query)))
        err(1, "answer");
    close(ours);
    expect_end(fd);
}

/* 2 requests, answered by stdio(3): the first by fflush(3), the second by fclose(3). */
TRICK(stdio)
{
    const int ours = connect_to(port, 0), fd = accept_one();
    FILE *out = fdopen(fd, "w");

    if (!out)
        err(1, "stream");
    for (int i = 0; i < 2; i++) {
        request(ours);
        take_request(fd);
        fprintf(out, "%0*d", OUT, i);
        if ((i == 0 ? fflush(out) : fclose(out)) != 0)
            err(1, "answer");
        take_answer(ours);
    }
    close(ours);
}

/* No interaction: a request without an answer, datagrams, and a socket pair. */
TRICK(nothing)
{
    const int ours = connect_to(port, 0), fd = accept_one();
    const int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    union address address;
    socklen_t length = address_of(&address, port);
    char line[LINE] = "";
    int pair[2];

    request(ours);
    take_request(fd);
    close(fd);
    close(ours);
    if (bind(to, &address.any, length) < 0 || connect(from, &address.any, length) < 0)
        err(1, "bind");
    for (unsigned way = 0; way < 12; way++) {
        if (give_by(way, from, line, LINE) != LINE || take_by(way, to, line, LINE) != LINE)
            err(1, "datagram");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        err(1, "pair");
    for (unsigned way = 0; way < 12; way++) {
        if (give_by(way, pair[0], line, LINE) != LINE || take_by(way, pair[1], line, LINE) != LINE)
            err(1, "pair");
    }
}

/* 3 requests, answered by sendfile(2), by splice(2), and by a write. */
TRICK(files)
{
    const int ours = connect_to(port, 0), fd = accept_one(),
              file = open("/proc/self/exe", O_RDONLY);
    char line[LINE + 1], answer[1000] = "";
    off_t offset = 0;
    int ends[2];

    if (pipe(ends) < 0)
        err(1, "pipe");
    line_write(line, next_id(), 0, sizeof(answer));
    for (int i = 0; i < 3; i++) {
        give_all(0, ours, line, LINE);
        take_request(fd);
        if (i == 0 && sendfile(fd, file, &offset, sizeof(answer)) != sizeof(answer))
            err(1, "sendfile");
        if (i == 1 && (splice(file, NULL, ends[1], NULL, sizeof(answer), 0) != sizeof(answer) ||
                       splice(ends[0], NULL, fd, NULL, sizeof(answer), 0) != sizeof(answer)))
            err(1, "splice");
        if (i == 2)
            give_all(0, fd, answer, sizeof(answer));
        if (!take_all(0, ours, answer, sizeof(answer)))
            err(1, "answer");
    }
    close(ours);
    expect_end(fd);
}

static void *ends_process(void *nothing)
{
    exit(0);
    return nothing;
}

/* 1 request, and one without an answer, because another thread ends the process; 4 calls on a file
 * for each. */
TRICK(unfinished)
{
    const int ours = connect_to(port, 0), fd = accept_one(),
              file = open("/proc/self/exe", O_RDONLY);
    char line[LINE + 1], answer[OUT];
    pthread_t ender;

    line_write(line, next_id(), 0, OUT);
    for (int i = 0; i < 2; i++) {
        give_all(0, ours, line, LINE);
        take_request(fd);
        for (int at = 0; at < 4; at++) {
            if (pread(file, answer, OUT, at) != OUT)
                err(1, "pread");
        }
        if (i == 1)
            break;
        give_all(0, fd, answer, OUT);
        take_answer(ours);
    }
    if (pthread_create(&ender, NULL, ends_process, NULL) != 0)
        err(1, "thread");
    for (;;)
        pause();
}

#define SHOW(call)                                                                  \
    do {                                                                            \
        errno = 77;                                                                 \
        const long result = (long)(call);                                           \
        printf("%-40.40s %ld, errno %d\n", #call, result < 0 ? -1 : result, errno); \
    } while (0)

/* Waits by a raw system call, which the preload does not see. */
static void await(int fd, short events)
{
    struct pollfd one = {fd, events, 0};

    if (syscall(SYS_ppoll, &one, 1, &(struct timespec){60, 0}, NULL, 0) != 1)
        err(1, "ppoll");
}

/* Calls with all possible results, which must be the same as without the preload. */
TRICK(results)
{
    const int ours = connect_to(port, SOCK_NONBLOCK), fd = accept_one();
    const int none = 5000, zero = open("/dev/zero", O_RDONLY);
    void *volatile nowhere = (void *)8, *volatile null = NULL; /* invalid: the kernel must refuse */
    volatile int minus = -1;
    struct iovec bad = {nowhere, 10};
    struct msghdr bad_message = {.msg_iov = &bad, .msg_iovlen = 1};
    struct pollfd many[2] = {{ours, POLLIN, 0}, {fd, POLLIN, 0}};
    struct timespec no_time = {0};
    struct timespec bad_time = {.tv_sec = 1, .tv_nsec = 1000000000};
    struct timeval short_time = {.tv_usec = 1000}, negative_time = {.tv_sec = -1};
    struct epoll_event event;
    FILE *stream;
    char bytes[64];
    fd_set set;

    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    FD_ZERO(&set);
    FD_SET(fd, &set);
    SHOW(read(fd, bytes, sizeof(bytes)));
    SHOW(recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT));
    SHOW(write(ours, "abc", 3));
    await(fd, POLLIN);
    SHOW(recv(fd, bytes, sizeof(bytes), MSG_PEEK));
    SHOW(read(fd, nowhere, 10));
    SHOW(readv(fd, &bad, 1));
    SHOW(readv(fd, null, 1));
    SHOW(readv(fd, &bad, minus));
    SHOW(recvmsg(fd, &bad_message, 0));
    SHOW(recvmsg(fd, null, 0));
    SHOW(read(fd, bytes, 0));
    SHOW(recv(fd, bytes, sizeof(bytes), 0));
    SHOW(write(fd, nowhere, 10));
    SHOW(writev(fd, &bad, 1));
    SHOW(writev(fd, null, 1));
    SHOW(sendmsg(fd, &bad_message, 0));
    SHOW(sendmsg(fd, null, 0));
    SHOW(send(ours, nowhere, 10, 0));
    SHOW(write(fd, "", 0));
    SHOW(write(fd, "def", 3));
    /* the preload holds an answer now, and splits waits: the kernel must still refuse bad arguments
     */
    SHOW(ppoll(many, 2, &bad_time, NULL));
    SHOW(pselect(fd + 1, &set, NULL, NULL, &bad_time, NULL));
    SHOW(epoll_pwait2(listener, &event, 1, nowhere, NULL));
    SHOW(select(fd + 1, nowhere, NULL, NULL, NULL));
    SHOW(select(fd + 1, &set, NULL, NULL, &negative_time));
    await(ours, POLLIN);
    SHOW(poll(many, 2, 0));
    SHOW(poll(many, 1, 100));
    SHOW(poll(null, 1, 0));
    SHOW(ppoll(many, 2, &no_time, NULL));
    SHOW(select(fd + 1, &set, NULL, NULL, &short_time));
    SHOW(select(-1, NULL, NULL, NULL, &short_time));
    SHOW(epoll_wait(none, &event, 1, 0));
    SHOW(epoll_wait(listener, &event, 1, 0));
    SHOW(read(none, bytes, 1));
    SHOW(write(none, bytes, 1));
    SHOW(recv(1, bytes, 1, 0));
    SHOW(send(-1, bytes, 1, 0));
    SHOW(close(none));
    SHOW(close(-1));
    SHOW(dup(none));
    SHOW(dup2(none, 100));
    SHOW(dup2(fd, -1));
    SHOW(dup2(fd, fd) == fd);
    SHOW(fcntl(none, F_GETFD));
    SHOW(fcntl(fd, F_GETFD));
    SHOW(accept(fd, NULL, NULL));
    SHOW(accept(none, NULL, NULL));
    SHOW(connect(fd, NULL, 0));
    SHOW(connect(ours, nowhere, 16));
    SHOW(connect(none, nowhere, 16));
    SHOW(socket(1000, 1000, 1000));
    SHOW(shutdown(none, SHUT_WR));
    SHOW(sendfile(fd, none, NULL, 10));
    SHOW(sendfile(fd, zero, nowhere, 10));
    stream = fmemopen(bytes, sizeof(bytes), "r");
    errno = 0;
    SHOW(fclose(stream));
    printf("errno after fclose: %d\n", errno);
    close(zero);
    SHOW(splice(none, NULL, fd, NULL, 10, 0));
    SHOW(close_range(10, 5, 0));
    SHOW(shutdown(ours, SHUT_WR));
    await(fd, POLLIN);
    SHOW(read(fd, bytes, 1));
    SHOW(close(ours));
    await(fd, POLLHUP); /* an RST, as data were not read */
    SHOW(send(fd, bytes, 1, MSG_NOSIGNAL));
    SHOW(send(fd, bytes, 1, MSG_NOSIGNAL));
    SHOW(close(fd));
}

/* Sends the second part of a request when the server has read the first part. */
static void *send_second_part(void *argument)
{
    const int *ends = argument;
    char line[LINE + 1];
    int left = 1;

    for (int64_t end_ms = 0; ioctl(ends[1], FIONREAD, &left) == 0 && left;)
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            err(1, "the first part is not read");
    line_write(line, 1, 0, OUT);
    give_all(0, ends[0], line + 4, LINE - 4);
    return argument;
}

/* 1 request that recvmmsg(2) takes in two parts, the first one into a larger buffer. */
TRICK(pieces)
{
    int ends[] = {connect_to(port, 0), accept_one()};
    const int ours = ends[0], fd = ends[1];
    char line[LINE + 1], parts[2][LINE];
    struct iovec vectors[2] = {{parts[0], LINE}, {parts[1], LINE}};
    struct mmsghdr messages[2] = {{.msg_hdr = {.msg_iov = &vectors[0], .msg_iovlen = 1}},
                                  {.msg_hdr = {.msg_iov = &vectors[1], .msg_iovlen = 1}}};
    const struct timeval patience = {60, 0}; /* both parts may be there at once */
    pthread_t sender = 0;

    memset(parts, 'x', sizeof(parts));
    line_write(line, 1, 0, OUT);
    give_all(0, ours, line, 4);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) < 0 ||
        pthread_create(&sender, NULL, send_second_part, ends) != 0 ||
        recvmmsg(fd, messages, 2, 0, NULL) < 1)
        err(1, "recvmmsg");
    pthread_join(sender, NULL);
    give_all(0, fd, body, OUT);
    take_answer(ours);
    close(ours);
    expect_end(fd);
}

static bool has_served;

static void *serve_and_stay(void *argument)
{
    const int *fd = argument;

    serve(*fd);
    __atomic_store_n(&has_served, true, __ATOMIC_RELEASE);
    for (;;)
        pause();
    return argument;
}

/* 1 request. The thread that has answered it still runs when another thread, which has served
 * nobody, ends the process by _exit(2). */
TRICK(leaving)
{
    const pid_t client = start_client(1);
    int fd = accept_one();
    pthread_t server;

    if (pthread_create(&server, NULL, serve_and_stay, &fd) != 0)
        err(1, "thread");
    wait_client(client);
    /* the client may have the answer before the thread's call returns */
    for (int64_t end_ms = 0; !__atomic_load_n(&has_served, __ATOMIC_ACQUIRE);)
        if (!wait_up_to(PATIENCE_MS, &end_ms))
            err(1, "the server does not return from its answer");
    _exit(0);
}

static void need_descriptors(int count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        err(1, "RLIMIT_NOFILE");
    limit.rlim_cur = (rlim_t)count + 100;
    if (limit.rlim_max < limit.rlim_cur)
        limit.rlim_max = limit.rlim_cur; /* root may */
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        err(1, "RLIMIT_NOFILE");
}

/* The client: sends a request on each of many connections, all before the first answer. */
static void ask_on_many(int count)
{
    int *ours = calloc((size_t)count, sizeof(int));
    char line[LINE + 1];

    line_write(line, next_id(), 0, OUT);
    for (int i = 0; i < count; i++)
        ours[i] = connect_to(port, 0);
    for (int i = 0; i < count; i++)
        give_all(0, ours[i], line, LINE);
    for (int i = 0; i < count; i++)
        take_answer(ours[i]);
    for (int i = 0; i < count; i++)
        close(ours[i]);
}

/* CONNECTIONS connections at once, with one request each. The server reads all requests before it
 * answers the first one. */
TRICK(many)
{
    const char *text = getenv("CONNECTIONS");
    const int count = text ? atoi(text) : 1000;
    int *theirs = calloc((size_t)count, sizeof(int));
    pid_t client;

    need_descriptors(count);
    client = fork();
    if (client == 0) {
        ask_on_many(count);
        exit(0);
    }
    for (int i = 0; i < count; i++)
        theirs[i] = accept_one();
    for (int i = 0; i < count; i++)
        take_request(theirs[i]);
    for (int i = 0; i < count; i++)
        give_all(0, theirs[i], body, OUT);
    wait_client(client);
    for (int i = 0; i < count; i++)
        expect_end(theirs[i]);
}

int main(int argc, char **argv)
{
    if (argc != 3)
        return 2;
    if (strcmp(argv[1], "serve-2") == 0) {
        serve(atoi(argv[2]));
        serve(atoi(argv[2]));
        expect_end(atoi(argv[2]));
        return 0;
    }
    port = argv[2];
    listener = listen_at(port);
    for (unsigned i = 0; i < trick_count; i++) {
        if (strcmp(argv[1], tricks[i].name) == 0) {
            tricks[i].play();
            return 0;
        }
    }
    return 2;
}
