/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_ask.h"

#include "libblkin/base/clock.h"
#include "tracepoints/format/ring.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#define RING_ASK_LOWEST 200 /* the lowest descriptor number for the connection */

/* The connection. Device and inode identify the socket. */
static struct {
    bool is_open;
    bool is_awaited; /* an answer is expected */
    bool is_kept;
    int descriptor;
    dev_t device;
    ino_t inode;
    uint64_t until_ns;
    unsigned stale; /* number of expected answers for an earlier user */
} ring_connection;

void ring_ask_close(int descriptor)
{
    (void)syscall(SYS_close, descriptor);
}

/* Moves the descriptor to a high number. */
static int ring_ask_move_high(int descriptor)
{
    const long higher = syscall(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, RING_ASK_LOWEST);

    if (higher < 0)
        return descriptor;
    ring_ask_close(descriptor);
    return (int)higher;
}

static bool ring_ask_is_same(void)
{
    struct stat status;

    return ring_connection.is_open && fstat(ring_connection.descriptor, &status) == 0 &&
           status.st_dev == ring_connection.device && status.st_ino == ring_connection.inode;
}

void ring_ask_stop(void)
{
    if (ring_ask_is_same())
        ring_ask_close(ring_connection.descriptor);
    ring_connection.is_open = ring_connection.is_awaited = ring_connection.is_kept = false;
    ring_connection.stale = 0;
}

void ring_ask_forget(void)
{
    if (ring_connection.is_awaited && !ring_connection.is_kept)
        ring_ask_stop();
    ring_connection.stale += ring_connection.is_awaited;
    ring_connection.is_awaited = false;
}

void ring_ask_keep(void)
{
    ring_connection.is_kept = ring_connection.is_open;
    ring_connection.until_ns = blkin_monotonic_ns() + RING_KEPT_NS;
}

bool ring_ask_has_kept(void)
{
    return ring_connection.is_open && ring_connection.is_kept;
}

void ring_ask_expire(void)
{
    if (ring_ask_has_kept() && blkin_monotonic_ns() >= ring_connection.until_ns)
        ring_ask_stop();
}

/* Asks again on the same connection. The kernel checks the credentials. */
static bool ring_ask_on_same(void)
{
    char text = 0;
    struct iovec one = {&text, sizeof(text)};
    const struct ucred who = {getpid(), geteuid(), getegid()};
    union {
        char bytes[CMSG_SPACE(sizeof(who))];
        struct cmsghdr head;
    } room = {
        .head = {CMSG_LEN(sizeof(who)), SOL_SOCKET, SCM_CREDENTIALS},
    };
    const struct msghdr message = {
        .msg_iov = &one,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof(room.bytes),
    };

    memcpy(CMSG_DATA(&room.head), &who, sizeof(who));
    return syscall(SYS_sendmsg, ring_connection.descriptor, &message,
                   MSG_DONTWAIT | MSG_NOSIGNAL) == 1;
}

static int ring_ask_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int descriptor;

    if (stat(path, &status) != 0) /* the only system call without an agent */
        return -1;
    descriptor =
        (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    descriptor = ring_ask_move_high(descriptor);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (syscall(SYS_connect, descriptor, &address, sizeof(address)) != 0) {
        ring_ask_close(descriptor);
        return -1;
    }
    return descriptor;
}

static void ring_ask_set_awaited(uint64_t ns)
{
    ring_connection.until_ns = blkin_monotonic_ns() + ns;
    ring_connection.is_open = true;
    ring_connection.is_awaited = true;
    ring_connection.is_kept = false;
}

void ring_ask(const char *path)
{
    struct stat status;

    if (ring_ask_is_same()) {
        if (ring_connection.is_awaited)
            return;
        if (ring_ask_on_same()) {
            ring_ask_set_awaited(RING_KEPT_NS); /* after chroot(2), no new connection is possible */
            return;
        }
    }
    ring_ask_stop();
    ring_connection.descriptor = ring_ask_connect(path);
    if (ring_connection.descriptor < 0)
        return;
    if (fstat(ring_connection.descriptor, &status) != 0) {
        ring_ask_close(ring_connection.descriptor);
        return;
    }
    ring_connection.device = status.st_dev;
    ring_connection.inode = status.st_ino;
    ring_ask_set_awaited(RING_ANSWER_NS);
}

/* Returns the first descriptor that came with a message, and closes the others. */
static int ring_ask_take_descriptor(struct msghdr *message)
{
    int found = -1, each;

    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part; part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        for (size_t at = CMSG_LEN(0); at + sizeof(each) <= part->cmsg_len; at += sizeof(each)) {
            memcpy(&each, (char *)part + at, sizeof(each));
            if (found < 0)
                found = each;
            else
                ring_ask_close(each);
        }
    }
    return found;
}

void ring_ask_wait(int64_t ns)
{
    const struct timespec limit = {0, (long)ns};
    struct pollfd answer = {ring_connection.descriptor, POLLIN, 0};

    if (ring_ask_is_same())
        (void)syscall(SYS_ppoll, &answer, 1, &limit, NULL, 0);
}

enum ring_answer ring_ask_receive(int *descriptor, uint64_t *bytes)
{
    struct ring_hello hello = {.mark = 0};
    struct iovec text = {&hello, sizeof(hello)};
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr aligned;
    } room;
    struct msghdr message = {
        .msg_iov = &text,
        .msg_iovlen = 1,
        .msg_control = room.bytes,
        .msg_controllen = sizeof(room.bytes),
    };
    long length;

    if (!ring_ask_is_same() || !ring_connection.is_awaited) {
        ring_ask_expire();
        return RING_NO_ANSWER;
    }
    length =
        syscall(SYS_recvmsg, ring_connection.descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR) &&
        blkin_monotonic_ns() < ring_connection.until_ns)
        return RING_ANSWER_LATER;
    *descriptor = length < 0 ? -1 : ring_ask_take_descriptor(&message);
    if (length > 0 && ring_connection.stale) {
        ring_connection.stale--;
        if (*descriptor >= 0)
            ring_ask_close(*descriptor);
        return ring_ask_receive(descriptor, bytes);
    }
    if (length > 0 && ring_connection.is_kept) {
        ring_connection.is_awaited = false;
        ring_connection.until_ns = blkin_monotonic_ns() + RING_KEPT_NS;
    } else {
        ring_ask_stop();
    }
    *bytes = hello.bytes;
    if (length == (long)sizeof(hello) && hello.mark == RING_MARK && *descriptor >= 0)
        return RING_ANSWER;
    if (*descriptor >= 0)
        ring_ask_close(*descriptor);
    return RING_NO_ANSWER;
}
