/*
 * The conversation with the agent: connect, one message, close.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
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

#define RING_ASK_LOWEST 200 /* number of a descriptor */

/* What is awaited: a descriptor, and by what it is known again. */
static struct {
    bool is_open;
    int descriptor;
    dev_t device;
    ino_t inode;
    uint64_t until_ns;
} ring_asked;

void ring_ask_close(int descriptor)
{
    (void)syscall(SYS_close, descriptor);
}

/* To a higher number. */
static int ring_ask_lift(int descriptor)
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

    return ring_asked.is_open && fstat(ring_asked.descriptor, &status) == 0 &&
           status.st_dev == ring_asked.device && status.st_ino == ring_asked.inode;
}

void ring_ask_stop(void)
{
    if (ring_ask_is_same())
        ring_ask_close(ring_asked.descriptor);
    ring_asked.is_open = false;
}

static int ring_ask_connect(const char *path)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat status;
    int descriptor;

    if (stat(path, &status) != 0) /* where no agent runs, this is all */
        return -1;
    descriptor =
        (int)syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -1;
    descriptor = ring_ask_lift(descriptor);
    memcpy(address.sun_path, path, strlen(path) + 1);
    if (syscall(SYS_connect, descriptor, &address, sizeof(address)) != 0) {
        ring_ask_close(descriptor);
        return -1;
    }
    return descriptor;
}

void ring_ask(const char *path)
{
    struct stat status;

    if (ring_ask_is_same())
        return;
    ring_asked.is_open = false;
    ring_asked.descriptor = ring_ask_connect(path);
    if (ring_asked.descriptor < 0)
        return;
    if (fstat(ring_asked.descriptor, &status) != 0) {
        ring_ask_close(ring_asked.descriptor);
        return;
    }
    ring_asked.device = status.st_dev;
    ring_asked.inode = status.st_ino;
    ring_asked.until_ns = blkin_monotonic_ns() + RING_ASK_NS;
    ring_asked.is_open = true;
}

/* Of a message: the first descriptor that came with it. All others are closed. */
static int ring_ask_take(struct msghdr *message)
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
    struct pollfd answer = {ring_asked.descriptor, POLLIN, 0};

    if (ring_ask_is_same())
        (void)syscall(SYS_ppoll, &answer, 1, &limit, NULL, 0);
}

enum ring_answer ring_ask_look(int *descriptor, uint64_t *bytes)
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

    if (!ring_ask_is_same()) {
        ring_asked.is_open = false;
        return RING_NO_ANSWER;
    }
    length = syscall(SYS_recvmsg, ring_asked.descriptor, &message, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (length < 0 && (errno == EAGAIN || errno == EINTR) &&
        blkin_monotonic_ns() < ring_asked.until_ns)
        return RING_ANSWER_LATER;
    ring_ask_stop();
    *descriptor = length < 0 ? -1 : ring_ask_take(&message);
    *bytes = hello.bytes;
    if (length == (long)sizeof(hello) && hello.mark == RING_MARK && *descriptor >= 0)
        return RING_ANSWER;
    if (*descriptor >= 0)
        ring_ask_close(*descriptor);
    return RING_NO_ANSWER;
}
