/*
 * Tricks with descriptors that the library does not see: closed, copied and passed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "preload/parts/tricks.h"

#include <fcntl.h>
#include <sys/syscall.h>

/* Raw system calls open a pipe with this number. Its data look like requests. */
static void expect_pipe_at(int fd)
{
    char line[LINE + 1];
    int ends[2];

    line_write(line, next_id(), 0, OUT);
    if (syscall(SYS_pipe2, ends, 0) < 0 || (ends[0] != fd && ends[1] != fd))
        err(1, "pipe");
    for (int i = 0; i < 10; i++) {
        give_all(0, ends[1], line, LINE);
        if (!take_all(0, ends[0], line, LINE))
            err(1, "pipe");
    }
    syscall(SYS_close, ends[0]);
    syscall(SYS_close, ends[1]);
}

/* 2 requests. Then a raw system call closes the connection, whose number a pipe takes. */
TRICK(raw_close)
{
    const pid_t client = start_client(2);
    const int fd = accept_one();

    serve(fd);
    serve(fd);
    syscall(SYS_close, fd);
    wait_client(client);
    expect_pipe_at(fd);
}

/* 2 + 3 requests: a raw system call closes a connection, and the next one has its number. */
TRICK(raw_reuse)
{
    pid_t client = start_client(2);
    int fd = accept_one(), before = fd;

    serve(fd);
    serve(fd);
    syscall(SYS_close, fd);
    wait_client(client);
    client = start_client(3);
    fd = (int)syscall(SYS_accept4, listener, NULL, NULL, 0);
    if (fd != before)
        err(1, "raw accept");
    serve(fd);
    serve(fd);
    serve(fd);
    wait_client(client);
    expect_end(fd);
}

/* 2 + 2 requests: close_range(2), as libc's function and as a raw system call. */
TRICK(ranges)
{
    for (int i = 0; i < 2; i++) {
        const pid_t first = start_client(1), second = start_client(1);
        const int fd = accept_one(), other = accept_one();

        serve(fd);
        serve(other);
        if (other != fd + 1 || (i == 0 ? close_range((unsigned)fd, (unsigned)other, 0)
                                       : (int)syscall(SYS_close_range, fd, other, 0)) < 0)
            err(1, "close_range");
        wait_client(first);
        wait_client(second);
        expect_pipe_at(fd);
    }
}

/* 4 requests on four numbers of one connection. */
TRICK(dups)
{
    const pid_t client = start_client(4);
    const int fd = accept_one();
    int other;

    serve(fd);
    other = dup(fd);
    close(fd);
    serve(other);
    if (dup2(other, 200) != 200)
        err(1, "dup2");
    close(other);
    serve(200);
    other = fcntl(200, F_DUPFD_CLOEXEC, 300);
    close_range(200, 200, 0);
    serve(other);
    wait_client(client);
    expect_end(other);
}

static void over(bool is_raw)
{
    const pid_t first = start_client(1);
    const int fd = accept_one();
    pid_t second;
    int other;

    serve(fd);
    second = start_client(2);
    other = accept_one();
    serve(other);
    if (is_raw ? syscall(SYS_dup3, other, fd, O_CLOEXEC) != fd || syscall(SYS_close, other) < 0
               : dup3(other, fd, O_CLOEXEC) != fd || close(other) < 0)
        err(1, "dup3");
    serve(fd);
    wait_client(first);
    wait_client(second);
    expect_end(fd);
}

/* 1 + 2 requests: the second connection takes the number of the first one, which is still open. */
TRICK(dup_over)
{
    over(false);
}

/* 2 + 1 requests: the same by raw system calls, so that the last request is on another connection
 * than the library assumes. */
TRICK(raw_dup_over)
{
    over(true);
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
        err(1, "sendmsg");
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
        err(1, "recvmsg");
    memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(fd));
    return fd;
}

/* 3 requests, accepted by one process and served by another one. */
TRICK(passing)
{
    int ends[2], fd;
    pid_t server, client;

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        err(1, "socketpair");
    server = fork();
    if (server == 0) {
        fd = passed_descriptor(ends[1]);
        for (int i = 0; i < 3; i++)
            serve(fd);
        expect_end(fd);
        exit(0);
    }
    client = start_client(3);
    fd = accept_one();
    pass_descriptor(ends[0], fd);
    close(fd);
    wait_client(client);
    wait_client(server);
}

/* 1 + 2 + 1 requests: another process uses the connection for a while, and then the first one
 * again. The first process has kept its descriptor, and does not know the data of the second
 * process. */
TRICK(passing_back)
{
    int ends[2], fd;
    pid_t server, client;
    char byte = 'x';

    if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) < 0)
        err(1, "socketpair");
    server = fork();
    if (server == 0) {
        fd = passed_descriptor(ends[1]);
        serve(fd);
        serve(fd);
        give_all(0, ends[1], &byte, 1);
        exit(0);
    }
    client = start_client(4);
    fd = accept_one();
    serve(fd);
    pass_descriptor(ends[0], fd);
    if (!take_all(0, ends[0], &byte, 1))
        err(1, "byte");
    serve(fd);
    wait_client(client);
    wait_client(server);
    expect_end(fd);
}

/* 1 + 2 requests: another program takes the connection over. */
TRICK(exec_over)
{
    const pid_t client = start_client(3);
    const int fd = accept_one();
    char number[12];
    pid_t server;

    serve(fd);
    server = fork();
    if (server == 0) {
        snprintf(number, sizeof(number), "%d", fd);
        execl("/proc/self/exe", "tricks", "serve-2", number, NULL);
        err(1, "exec");
    }
    close(fd);
    wait_client(client);
    wait_client(server);
}

/* 1 + 2 requests: a child continues with the connection. */
TRICK(fork_over)
{
    const pid_t client = start_client(3);
    const int fd = accept_one();
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
    wait_client(client);
    wait_client(server);
}

/* 3 requests: children of vfork(2) close descriptors and open others, in the parent's memory. */
TRICK(vfork_close)
{
    const pid_t client = start_client(3);
    const int fd = accept_one();

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
        open("/dev/null", O_RDONLY); /* the same number */
        syscall(SYS_close, fd);
        socket(AF_INET, SOCK_STREAM, 0);
        syscall(SYS_close, fd);
        creat("/dev/null", 0600);
        fclose(fdopen(fd, "w"));
        _exit(0);
    }
    serve(fd);
    wait_client(client);
    expect_end(fd);
}
