/*
 * What programs do with descriptors that nobody who watches them expects: tricks NAME PORT
 * Each trick makes the requests that its comment says, of a client thread or process to a server in
 * the same program, and prints what calls return where that must be the same without the preload.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wire.h"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>

#define OUT 8

static const char *port;
static char body[BODY_MAX];
static int listener;

/* ---- both sides ---- */

/* No two requests are the same: whoever takes one for another is found out. */
static unsigned next_id(void)
{
    static unsigned count;

    return (unsigned)getpid() % 40000 * 100000 + ++count % 100000;
}

static void ask(int fd)
{
    char line[LINE + 1], answer[OUT];

    line_write(line, next_id(), 0, OUT);
    give_all(0, fd, line, LINE);
    if (!take_all(0, fd, answer, OUT))
        fail("answer");
}

/* The client: so many requests on one connection, in a process of its own. */
static pid_t asks(int requests)
{
    const pid_t pid = fork();
    int fd;

    if (pid)
        return pid;
    fd = connect_to(port, 0);
    while (requests-- > 0)
        ask(fd);
    close(fd);
    exit(0);
}

static void has_asked(pid_t pid)
{
    int status;

    if (waitpid(pid, &status, 0) != pid || status)
        fail("client");
}

static int taken(void)
{
    const int fd = accept(listener, NULL, NULL);

    if (fd < 0)
        fail("accept");
    return fd;
}

/* One request. */
static void serve(int fd)
{
    char line[LINE];

    if (!take_all(0, fd, line, LINE))
        fail("request");
    give_all(0, fd, body, OUT);
}

static void expect_end(int fd)
{
    char byte;

    if (read(fd, &byte, 1) != 0)
        fail("end");
    close(fd);
}

/* ---- tricks ---- */

/* 2 requests. Then the number is a pipe's, of which nobody was told. */
static void raw_close(void)
{
    const pid_t client = asks(2);
    const int fd = taken();
    char line[LINE + 1];
    int ends[2];

    serve(fd);
    serve(fd);
    syscall(SYS_close, fd);
    has_asked(client);
    line_write(line, next_id(), 0, OUT);
    if (syscall(SYS_pipe2, ends, 0) < 0 || (ends[0] != fd && ends[1] != fd))
        fail("pipe");
    for (int i = 0; i < 10; i++) {
        give_all(0, ends[1], line, LINE);
        if (!take_all(0, ends[0], line, LINE))
            fail("pipe");
    }
}

/* 2 + 3 requests: a connection is closed without a word, and the next one has its number. */
static void raw_reuse(void)
{
    pid_t client = asks(2);
    int fd = taken(), before = fd;

    serve(fd);
    serve(fd);
    syscall(SYS_close, fd);
    has_asked(client);
    client = asks(3);
    fd = (int)syscall(SYS_accept4, listener, NULL, NULL, 0);
    if (fd != before)
        fail("raw accept");
    serve(fd);
    serve(fd);
    serve(fd);
    has_asked(client);
    expect_end(fd);
}

static void expect_pipe_at(int fd)
{
    int ends[2];
    char byte = 'x';

    if (syscall(SYS_pipe2, ends, 0) < 0 || (ends[0] != fd && ends[1] != fd))
        fail("pipe");
    give_all(0, ends[1], &byte, 1);
    if (!take_all(0, ends[0], &byte, 1))
        fail("pipe");
    syscall(SYS_close, ends[0]);
    syscall(SYS_close, ends[1]);
}

/* 2 + 2 requests: close_range(2), as the library's function and without a word. */
static void ranges(void)
{
    for (int i = 0; i < 2; i++) {
        const pid_t first = asks(1), second = asks(1);
        const int fd = taken(), other = taken();

        serve(fd);
        serve(other);
        if (other != fd + 1 || (i == 0 ? close_range((unsigned)fd, (unsigned)other, 0)
                                       : (int)syscall(SYS_close_range, fd, other, 0)) < 0)
            fail("close_range");
        has_asked(first);
        has_asked(second);
        expect_pipe_at(fd);
    }
}

/* 4 requests on four numbers of one connection. */
static void dups(void)
{
    const pid_t client = asks(4);
    const int fd = taken();
    int other;

    serve(fd);
    other = dup(fd);
    close(fd);
    serve(other);
    if (dup2(other, 200) != 200)
        fail("dup2");
    close(other);
    serve(200);
    other = fcntl(200, F_DUPFD_CLOEXEC, 300);
    close_range(200, 200, 0);
    serve(other);
    has_asked(client);
    expect_end(other);
}

/* 1 + 2 requests: the second connection takes the number of the first one, which is open still. */
static void dup_over(void)
{
    const pid_t first = asks(1);
    const int fd = taken();
    pid_t second;
    int other;

    serve(fd);
    second = asks(2);
    other = taken();
    serve(other);
    if (dup3(other, fd, O_CLOEXEC) != fd)
        fail("dup3");
    close(other);
    serve(fd);
    has_asked(first);
    has_asked(second);
    expect_end(fd);
}

/* 2 + 1 requests: the same without a word, so that the last one is on a connection that is not the
 * number's. */
static void raw_dup_over(void)
{
    const pid_t first = asks(1);
    const int fd = taken();
    pid_t second;
    int other;

    serve(fd);
    second = asks(2);
    other = taken();
    serve(other);
    if (syscall(SYS_dup3, other, fd, O_CLOEXEC) != fd || syscall(SYS_close, other) < 0)
        fail("dup3");
    serve(fd);
    has_asked(first);
    has_asked(second);
    expect_end(fd);
}

static void pass_descriptor(int to, int fd)
{
    char control[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec byte = {"", 1};
    struct msghdr message = {.msg_iov = &byte,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);

    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(head), &fd, sizeof(fd));
    if (sendmsg(to, &message, 0) != 1)
        fail("sendmsg");
}

static int passed_descriptor(int from)
{
    char control[CMSG_SPACE(sizeof(int))], byte;
    struct iovec vector = {&byte, 1};
    struct msghdr message = {.msg_iov = &vector,
                             .msg_iovlen = 1,
                             .msg_control = control,
                             .msg_controllen = sizeof(control)};
    int fd;

    if (recvmsg(from, &message, 0) != 1)
        fail("recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

/* 3 requests, taken by one process and served by another one. */
static void passing(void)
{
    int ends[2], fd;
    pid_t server, client;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        fail("socketpair");
    server = fork();
    if (server == 0) {
        fd = passed_descriptor(ends[1]);
        for (int i = 0; i < 3; i++)
            serve(fd);
        expect_end(fd);
        exit(0);
    }
    client = asks(3);
    fd = taken();
    pass_descriptor(ends[0], fd);
    close(fd);
    has_asked(client);
    has_asked(server);
}

/* 1 + 2 + 1 requests: another process has the connection for a while, and then the first one again,
 * which has kept its number and does not know what went through it meanwhile. */
static void passing_back(void)
{
    int ends[2], fd;
    pid_t server, client;
    char byte = 'x';

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        fail("socketpair");
    server = fork();
    if (server == 0) {
        fd = passed_descriptor(ends[1]);
        serve(fd);
        serve(fd);
        give_all(0, ends[1], &byte, 1);
        exit(0);
    }
    client = asks(4);
    fd = taken();
    serve(fd);
    pass_descriptor(ends[0], fd);
    if (!take_all(0, ends[0], &byte, 1))
        fail("byte");
    serve(fd);
    has_asked(client);
    has_asked(server);
    expect_end(fd);
}

/* 1 + 2 requests: another program takes the connection over. */
static void exec_over(void)
{
    const pid_t client = asks(3);
    const int fd = taken();
    char number[12];
    pid_t server;

    serve(fd);
    server = fork();
    if (server == 0) {
        snprintf(number, sizeof(number), "%d", fd);
        execl("/proc/self/exe", "tricks", "serve-2", number, NULL);
        fail("exec");
    }
    close(fd);
    has_asked(client);
    has_asked(server);
}

/* 1 + 2 requests: a child goes on with the connection. */
static void fork_over(void)
{
    const pid_t client = asks(3);
    const int fd = taken();
    pid_t server;

    serve(fd);
    server = fork();
    if (server == 0) {
        serve(fd);
        serve(fd);
        expect_end(fd);
        _exit(0);
    }
    close(fd);
    has_asked(client);
    has_asked(server);
}

/* 3 requests: children of vfork(2) close what is their own and open others, in our memory. */
static void vfork_close(void)
{
    const pid_t client = asks(3);
    const int fd = taken();

    serve(fd);
    if (vfork() == 0) {
        close(fd);
        dup2(2, fd);
        closefrom(3);
        _exit(0);
    }
    serve(fd);
    if (vfork() == 0) {
        syscall(SYS_close, fd);
        open("/dev/null", O_RDONLY); /* of the same number */
        syscall(SYS_close, fd);
        socket(AF_INET, SOCK_STREAM, 0);
        syscall(SYS_close, fd);
        creat("/dev/null", 0600);
        fclose(fdopen(fd, "w"));
        _exit(0);
    }
    serve(fd);
    has_asked(client);
    expect_end(fd);
}

static void was_cancelled(void *count)
{
    ++*(int *)count;
}

static int cancelled;

/* Calls that wait; in the last one not a byte of the answer goes. */
enum {
    WAYS_TO_READ = 6,
    POLL = WAYS_TO_READ,
    POLL_MANY,
    PPOLL,
    SELECT,
    PSELECT,
    EPOLL,
    EPOLL_P,
    ACCEPT,
    WRITE
};

static void wait_for_ever(int how, int fd)
{
    static char much[8 << 20];
    const int efd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    struct pollfd polled[2] = {{fd, POLLIN, 0}, {fd, POLLIN, 0}};
    fd_set set;

    FD_ZERO(&set);
    FD_SET(fd, &set);
    epoll_ctl(efd, EPOLL_CTL_ADD, fd, &event);
    if (how < WAYS_TO_READ)
        (void)take_by((unsigned)how, fd, much, 1);
    else if (how == POLL || how == POLL_MANY)
        (void)poll(polled, how == POLL ? 1 : 2, -1);
    else if (how == PPOLL)
        (void)ppoll(polled, 2, NULL, NULL);
    else if (how == SELECT)
        (void)select(fd + 1, &set, NULL, NULL, NULL);
    else if (how == PSELECT)
        (void)pselect(fd + 1, &set, NULL, NULL, NULL, NULL);
    else if (how == EPOLL)
        (void)epoll_wait(efd, &event, 1, -1);
    else if (how == EPOLL_P)
        (void)epoll_pwait(efd, &event, 1, -1, NULL);
    else if (how == ACCEPT)
        (void)accept(listener, NULL, NULL);
    else
        give_all(0, fd, much, sizeof(much));
}

struct victim {
    int how, fd;
    bool is_ready; /* all that it does before it waits is done */
};

/* What nobody reads, unseen. Since glibc 2.41 a write() that has written something is not
 * cancelled, but returns: then there is an answer. */
static void fill(int fd)
{
    static const char much[65536];

    while (syscall(SYS_sendto, fd, much, sizeof(much), MSG_DONTWAIT, NULL, 0) > 0)
        ;
}

static void *be_cancelled(void *argument)
{
    struct victim *victim = argument;
    char line[LINE];

    pthread_cleanup_push(was_cancelled, &cancelled);
    if (victim->how == WRITE && !take_all(0, victim->fd, line, LINE))
        fail("request");
    if (victim->how == WRITE)
        fill(victim->fd);
    __atomic_store_n(&victim->is_ready, true, __ATOMIC_RELEASE);
    wait_for_ever(victim->how, victim->fd);
    fail("not cancelled");
    pthread_cleanup_pop(0);
    return NULL;
}

static void cancel_in(int how, int fd)
{
    struct victim victim = {how, fd, false};
    pthread_t thread;
    void *result;

    if (pthread_create(&thread, NULL, be_cancelled, &victim) != 0)
        fail("thread");
    while (!__atomic_load_n(&victim.is_ready, __ATOMIC_ACQUIRE))
        usleep(1000);
    usleep(5000); /* it is in its call, or will be */
    pthread_cancel(thread);
    pthread_join(thread, &result);
    printf("cancelled %d %d %d\n", how, result == PTHREAD_CANCELED, cancelled);
}

/* 2 requests, before and after threads are cancelled in every call that waits; and one that is not
 * answered, as its thread is cancelled in the middle of that. */
static void cancelling(void)
{
    const int ours = connect_to(port, 0), fd = taken();
    char line[LINE + 1], answer[OUT];

    for (int i = 0; i < 2; i++) {
        line_write(line, next_id(), 0, OUT);
        give_all(0, ours, line, LINE);
        serve(fd);
        if (!take_all(0, ours, answer, OUT))
            fail("answer");
        for (int how = 0; how < WRITE && i == 0; how++)
            cancel_in(how, fd);
    }
    line_write(line, next_id(), 0, OUT);
    give_all(0, ours, line, LINE);
    cancel_in(WRITE, fd);
    close(ours);
    close(fd);
}

static int signalled;

static void on_signal(int number)
{
    static const char text[] = "x";

    (void)number;
    if (write(signalled, text, 1) != 1)
        _exit(3);
}

/* 1 request, of which a signal handler sends a byte of the answer while its thread waits to read.
 */
static void signalling(void)
{
    const int ours = connect_to(port, 0), fd = taken();
    struct sigaction action = {.sa_handler = on_signal};
    struct itimerval soon = {.it_value.tv_usec = 20000};
    char line[LINE + 1], byte;
    ssize_t result;

    signalled = fd;
    sigaction(SIGALRM, &action, NULL);
    line_write(line, next_id(), 0, 1);
    give_all(0, ours, line, LINE);
    if (!take_all(0, fd, line, LINE))
        fail("request");
    setitimer(ITIMER_REAL, &soon, NULL);
    result = read(fd, &byte, 1);
    printf("interrupted %zd %d\n", result, errno);
    if (!take_all(0, ours, &byte, 1))
        fail("answer");
    close(ours);
    expect_end(fd);
}

static sigjmp_buf before_call;

static void leave_call(int number)
{
    (void)number;
    siglongjmp(before_call, 1);
}

/* Once: signals that came again and again could nest, as siglongjmp() lets them in before it leaves
 * the handler's stack. 0: no more. */
static void ring_in_us(int us)
{
    const struct itimerval once = {.it_value.tv_usec = us};

    if (setitimer(ITIMER_REAL, &once, NULL) < 0)
        fail("setitimer");
}

#define JUMPS 20000

/* Until so many of them were left, at any place. */
static void make_calls(int fd)
{
    static volatile int jumps;
    struct pollfd polled[2] = {{fd, POLLIN, 0}, {fd, POLLIN, 0}};
    char byte;

    if (sigsetjmp(before_call, 1))
        jumps++;
    ring_in_us(jumps < JUMPS ? 20 : 0);
    while (jumps < JUMPS) {
        if (recv(fd, &byte, 1, MSG_DONTWAIT) >= 0 || poll(polled, 2, 0) != 0)
            fail("nothing is to be read");
    }
}

/* An answer, not a byte of which goes; the timer ends that. */
static void begin_answer(int fd)
{
    static char much[65536];
    char line[LINE];

    if (!take_all(0, fd, line, LINE))
        fail("request");
    fill(fd);
    if (sigsetjmp(before_call, 1) == 0) {
        ring_in_us(20000);
        give_all(0, fd, much, sizeof(much));
        fail("not left");
    }
}

/* 3 requests, between which a signal handler leaves calls by siglongjmp(3): the first one is told
 * before, so that LTTng is not left. And one that is not answered, as its write is left. */
static void jumping(void)
{
    int ours[2], theirs[2];
    char line[LINE + 1], answer[OUT];
    struct pollfd polled[2];

    for (int i = 0; i < 2; i++) {
        ours[i] = connect_to(port, 0);
        theirs[i] = taken();
    }
    signal(SIGALRM, leave_call);
    for (int i = 0; i < 3; i++) {
        line_write(line, next_id(), 0, OUT);
        give_all(0, ours[1], line, LINE);
        serve(theirs[1]);
        if (!take_all(0, ours[1], answer, OUT))
            fail("answer");
        polled[0] = polled[1] = (struct pollfd){theirs[1], POLLIN, 0};
        if (poll(polled, 2, 200) != 0)
            fail("nothing is to be read");
        if (i == 0) {
            make_calls(theirs[1]);
        } else if (i == 1) {
            line_write(line, next_id(), 0, OUT);
            give_all(0, ours[0], line, LINE);
            begin_answer(theirs[0]);
            close(ours[0]);
            close(theirs[0]);
        }
    }
    printf("has jumped\n");
    close(ours[1]);
    expect_end(theirs[1]);
}

/* 2 requests after a greeting; the client closes its side before the answer of the second one. */
static void greeting(void)
{
    const int ours = connect_to(port, 0), fd = taken();
    char line[LINE + 1], answer[OUT];

    give_all(0, fd, "hello", 5);
    if (!take_all(0, ours, answer, 5))
        fail("greeting");
    line_write(line, next_id(), 0, OUT);
    give_all(0, ours, line, LINE);
    serve(fd);
    if (!take_all(0, ours, answer, OUT))
        fail("answer");
    give_all(0, ours, line, LINE);
    shutdown(ours, SHUT_WR);
    serve(fd);
    if (!take_all(0, ours, answer, OUT))
        fail("answer");
    close(ours);
    expect_end(fd);
}

/* No interaction: a request that is not answered; and datagrams, a pipe, a pair. */
static void nothing(void)
{
    const int ours = connect_to(port, 0), fd = taken();
    const int from = socket(AF_INET, SOCK_DGRAM, 0), to = socket(AF_INET, SOCK_DGRAM, 0);
    union address address;
    socklen_t length = address_of(&address, port);
    char line[LINE + 1];
    int pair[2];

    line_write(line, next_id(), 0, OUT);
    give_all(0, ours, line, LINE);
    if (!take_all(0, fd, line, LINE))
        fail("request");
    close(fd);
    close(ours);
    if (bind(to, &address.any, length) < 0 || connect(from, &address.any, length) < 0)
        fail("bind");
    for (unsigned way = 0; way < 12; way++) {
        if (give_by(way, from, line, LINE) != LINE || take_by(way, to, line, LINE) != LINE)
            fail("datagram");
    }
    if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) < 0)
        fail("pair");
    for (unsigned way = 0; way < 12; way++) {
        if (give_by(way, pair[0], line, LINE) != LINE || take_by(way, pair[1], line, LINE) != LINE)
            fail("pair");
    }
}

/* 3 requests, answered by a file: sendfile(2), splice(2). */
static void files(void)
{
    const int ours = connect_to(port, 0), fd = taken(), file = open("/proc/self/exe", O_RDONLY);
    char line[LINE + 1], answer[1000];
    off_t offset = 0;
    int ends[2];

    if (pipe(ends) < 0)
        fail("pipe");
    line_write(line, next_id(), 0, sizeof(answer));
    for (int i = 0; i < 3; i++) {
        give_all(0, ours, line, LINE);
        if (!take_all(0, fd, answer, LINE))
            fail("request");
        if (i == 0 && sendfile(fd, file, &offset, sizeof(answer)) != sizeof(answer))
            fail("sendfile");
        if (i == 1 && (splice(file, NULL, ends[1], NULL, sizeof(answer), 0) != sizeof(answer) ||
                       splice(ends[0], NULL, fd, NULL, sizeof(answer), 0) != sizeof(answer)))
            fail("splice");
        if (i == 2)
            give_all(0, fd, answer, sizeof(answer));
        if (!take_all(0, ours, answer, sizeof(answer)))
            fail("answer");
    }
    close(ours);
    expect_end(fd);
}

static void *ends_process(void *nothing)
{
    exit(0);
    return nothing;
}

/* 1 request, and one whose answer does not come, as another thread ends the process; 4 calls on a
 * file for each. */
static void unfinished(void)
{
    const int ours = connect_to(port, 0), fd = taken(), file = open("/proc/self/exe", O_RDONLY);
    char line[LINE + 1], answer[OUT], request[LINE];
    pthread_t ender;

    line_write(line, next_id(), 0, OUT);
    for (int i = 0; i < 2; i++) {
        give_all(0, ours, line, LINE);
        if (!take_all(0, fd, request, LINE))
            fail("request");
        for (int at = 0; at < 4; at++) {
            if (pread(file, answer, OUT, at) != OUT)
                fail("pread");
        }
        if (i == 1)
            break;
        give_all(0, fd, answer, OUT);
        if (!take_all(0, ours, answer, OUT))
            fail("answer");
    }
    if (pthread_create(&ender, NULL, ends_process, NULL) != 0)
        fail("thread");
    for (;;)
        pause();
}

#define SHOW(call)                                                                  \
    do {                                                                            \
        errno = 77;                                                                 \
        const long result = (long)(call);                                           \
        printf("%-40.40s %ld, errno %d\n", #call, result < 0 ? -1 : result, errno); \
    } while (0)

/* No interaction, and all that calls may return: to be the same as without the preload. */
static void results(void)
{
    const int ours = connect_to(port, SOCK_NONBLOCK), fd = taken();
    const int none = 5000, zero = open("/dev/zero", O_RDONLY);
    void *volatile nowhere = (void *)8, *volatile null = NULL; /* for the kernel to find out */
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
    usleep(10000);
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
    /* an answer is held now, so that waits are split: bad arguments are still the kernel's to find
     */
    SHOW(ppoll(many, 2, &bad_time, NULL));
    SHOW(pselect(fd + 1, &set, NULL, NULL, &bad_time, NULL));
    SHOW(epoll_pwait2(listener, &event, 1, nowhere, NULL));
    SHOW(select(fd + 1, nowhere, NULL, NULL, NULL));
    SHOW(select(fd + 1, &set, NULL, NULL, &negative_time));
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
    usleep(10000);
    SHOW(read(fd, bytes, 1));
    SHOW(close(ours));
    usleep(10000);
    SHOW(send(fd, bytes, 1, MSG_NOSIGNAL));
    usleep(10000);
    SHOW(send(fd, bytes, 1, MSG_NOSIGNAL));
    SHOW(close(fd));
}

static int count_lines(const char *path, const char *word)
{
    char line[512];
    FILE *file = fopen(path, "r");
    int count = 0;

    if (!file)
        fail(path);
    while (fgets(line, sizeof(line), file))
        count += strstr(line, word) != NULL;
    fclose(file);
    return count;
}

#define LIMITERS 4
static pthread_barrier_t limiters;

static void *limit_threads(void *unused)
{
    struct rlimit limit;
    int tasks = 0;
    DIR *folder;

    pthread_barrier_wait(&limiters);
    if (getrlimit(RLIMIT_NPROC, &limit) < 0 || setrlimit(RLIMIT_NPROC, &limit) < 0)
        fail("RLIMIT_NPROC");
    if (!getenv("LD_PRELOAD"))
        return unused;
    if (count_lines("/proc/self/maps", "/libblkin-lttng.so") == 0)
        fail("LTTng was not loaded before the limit on threads");
    if (!(folder = opendir("/proc/self/task")))
        fail("tasks");
    while (readdir(folder))
        tasks++;
    closedir(folder);
    if (tasks < 2 + LIMITERS + 1 + 2) /* "." and "..", ours, main's, LTTng's */
        fail("LTTng's threads were not there before the limit on threads");
    pthread_barrier_wait(&limiters); /* all have counted */
    return unused;
}

/* A server that allows itself no further threads, as haproxy 3, each of whose threads sets that
 * limit: LTTng is loaded before the first does. */
static void limiting(void)
{
    pthread_t threads[LIMITERS];

    pthread_barrier_init(&limiters, NULL, LIMITERS);
    for (int i = 0; i < LIMITERS; i++)
        pthread_create(&threads[i], NULL, limit_threads, NULL);
    for (int i = 0; i < LIMITERS; i++)
        pthread_join(threads[i], NULL);
}

static void need_descriptors(int count)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("RLIMIT_NOFILE");
    limit.rlim_cur = (rlim_t)count + 100;
    if (limit.rlim_max < limit.rlim_cur)
        limit.rlim_max = limit.rlim_cur; /* root may */
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        fail("RLIMIT_NOFILE");
}

/* The client: a request on each of so many connections, all of them before the first answer. */
static void ask_on_many(int count)
{
    int *ours = calloc((size_t)count, sizeof(int));
    char line[LINE + 1], answer[OUT];

    line_write(line, next_id(), 0, OUT);
    for (int i = 0; i < count; i++)
        ours[i] = connect_to(port, 0);
    for (int i = 0; i < count; i++)
        give_all(0, ours[i], line, LINE);
    for (int i = 0; i < count; i++) {
        if (!take_all(0, ours[i], answer, OUT))
            fail("answer");
    }
    for (int i = 0; i < count; i++)
        close(ours[i]);
}

/*
 * So many connections at once, one request each. The server reads all of them before it answers the
 * first one.
 */
static void many(void)
{
    const char *text = getenv("CONNECTIONS");
    const int count = text ? atoi(text) : 1000;
    int *theirs = calloc((size_t)count, sizeof(int));
    char line[LINE];
    pid_t client;

    need_descriptors(count);
    client = fork();
    if (client == 0) {
        ask_on_many(count);
        exit(0);
    }
    for (int i = 0; i < count; i++)
        theirs[i] = taken();
    for (int i = 0; i < count; i++) {
        if (!take_all(0, theirs[i], line, LINE))
            fail("request");
    }
    for (int i = 0; i < count; i++)
        give_all(0, theirs[i], body, OUT);
    has_asked(client);
    for (int i = 0; i < count; i++)
        expect_end(theirs[i]);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } tricks[] = {{"raw-close", raw_close},
                  {"raw-reuse", raw_reuse},
                  {"dups", dups},
                  {"dup-over", dup_over},
                  {"raw-dup-over", raw_dup_over},
                  {"ranges", ranges},
                  {"passing", passing},
                  {"passing-back", passing_back},
                  {"exec-over", exec_over},
                  {"fork-over", fork_over},
                  {"vfork-close", vfork_close},
                  {"cancelling", cancelling},
                  {"signalling", signalling},
                  {"jumping", jumping},
                  {"greeting", greeting},
                  {"nothing", nothing},
                  {"files", files},
                  {"limiting", limiting},
                  {"unfinished", unfinished},
                  {"results", results},
                  {"many", many}};

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
    for (size_t i = 0; i < sizeof(tricks) / sizeof(*tricks); i++) {
        if (strcmp(argv[1], tricks[i].name) == 0) {
            tricks[i].play();
            return 0;
        }
    }
    return 2;
}
