/*
 * The protocol of the servers and clients here. A request is a line of 37 bytes, and the bytes that
 * follow. The line has an id, the number of following bytes, and the number of bytes of the answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_PRELOAD_WIRE_H
#define TESTS_PRELOAD_WIRE_H

#include <arpa/inet.h>
#include <err.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#define LINE     37 /* bytes of the line of a request */
#define OUT      8  /* bytes of most answers */
#define BODY_MAX 999999

static inline int line_write(char line[LINE + 1], unsigned id, unsigned in, unsigned out)
{
    return snprintf(line, LINE + 1, "GET /%010u in %06u out %06u\n", id, in, out);
}

static inline void line_read(const char line[LINE], unsigned *in, unsigned *out)
{
    char text[LINE + 1] = {0};

    memcpy(text, line, LINE);
    if (sscanf(text, "GET /%*10u in %6u out %6u", in, out) != 2) {
        fprintf(stderr, "no request: %s\n", text);
        exit(1);
    }
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un un;
};

/* Reads a port of 127.0.0.1, 6:PORT of ::1, or the path of a UNIX socket. */
static inline socklen_t address_of(union address *address, const char *text)
{
    memset(address, 0, sizeof(*address));
    if (strchr(text, '/')) {
        address->un.sun_family = AF_UNIX;
        strncpy(address->un.sun_path, text, sizeof(address->un.sun_path) - 1);
        return sizeof(address->un);
    }
    if (strncmp(text, "6:", 2) == 0) {
        address->v6.sin6_family = AF_INET6;
        address->v6.sin6_addr = in6addr_loopback;
        address->v6.sin6_port = htons((uint16_t)atoi(text + 2));
        return sizeof(address->v6);
    }
    address->v4.sin_family = AF_INET;
    address->v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address->v4.sin_port = htons((uint16_t)atoi(text));
    return sizeof(address->v4);
}

static inline int listen_at(const char *text)
{
    union address address;
    const socklen_t length = address_of(&address, text);
    const int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;

    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (fd < 0 || bind(fd, &address.any, length) < 0 || listen(fd, 4096) < 0)
        err(1, "%s", text);
    return fd;
}

static inline int connect_to(const char *text, int flags)
{
    union address address;
    const socklen_t length = address_of(&address, text);
    const int fd = socket(address.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | flags, 0), on = 1;

    if (fd < 0 || (connect(fd, &address.any, length) < 0 && errno != EINPROGRESS))
        err(1, "%s", text);
    if (address.any.sa_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    return fd;
}

/* ---- every call that moves bytes; `way` selects the call ---- */

static inline ssize_t take_by(unsigned way, int fd, void *buffer, size_t size)
{
    struct iovec vector[2] = {{buffer, size / 2}, {(char *)buffer + size / 2, size - size / 2}};
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = 2};
    struct mmsghdr messages = {.msg_hdr = message};

    switch (way % 6) {
    case 0:
        return read(fd, buffer, size);
    case 1:
        return recv(fd, buffer, size, 0);
    case 2:
        return recvfrom(fd, buffer, size, 0, NULL, NULL);
    case 3:
        return readv(fd, vector, 2);
    case 4:
        return recvmsg(fd, &message, 0);
    default:
        if (recvmmsg(fd, &messages, 1, 0, NULL) < 0)
            return -1;
        return messages.msg_len;
    }
}

static inline ssize_t give_by(unsigned way, int fd, const void *buffer, size_t size)
{
    struct iovec vector[2] = {{(void *)buffer, size / 2},
                              {(char *)buffer + size / 2, size - size / 2}};
    struct msghdr message = {.msg_iov = vector, .msg_iovlen = 2};
    struct mmsghdr messages = {.msg_hdr = message};

    switch (way % 6) {
    case 0:
        return write(fd, buffer, size);
    case 1:
        return send(fd, buffer, size, MSG_NOSIGNAL);
    case 2:
        return sendto(fd, buffer, size, MSG_NOSIGNAL, NULL, 0);
    case 3:
        return writev(fd, vector, 2);
    case 4:
        return sendmsg(fd, &message, MSG_NOSIGNAL);
    default:
        if (sendmmsg(fd, &messages, 1, 0) < 0)
            return -1;
        return messages.msg_len;
    }
}

/* Reads `size` bytes. Returns false if the peer has closed. */
static inline bool take_all(unsigned way, int fd, char *buffer, size_t size)
{
    while (size) {
        const ssize_t count = take_by(way, fd, buffer, size);

        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return false;
        buffer += count;
        size -= (size_t)count;
    }
    return true;
}

static inline void give_all(unsigned way, int fd, const char *buffer, size_t size)
{
    while (size) {
        const ssize_t count = give_by(way, fd, buffer, size);

        if (count < 0)
            err(1, "write");
        buffer += count;
        size -= (size_t)count;
    }
}

/* ---- every call that waits for a descriptor, by its name ---- */

static inline int wait_by(const char *way, int fd)
{
    const int efd = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    struct pollfd polled[2] = {{fd, POLLIN, 0}, {fd, POLLIN, 0}};
    fd_set set;

    FD_ZERO(&set);
    FD_SET(fd, &set);
    epoll_ctl(efd, EPOLL_CTL_ADD, fd, &event);
    if (strcmp(way, "poll one") == 0)
        return poll(polled, 1, -1);
    if (strcmp(way, "poll") == 0)
        return poll(polled, 2, -1);
    if (strcmp(way, "ppoll") == 0)
        return ppoll(polled, 2, NULL, NULL);
    if (strcmp(way, "select") == 0)
        return select(fd + 1, &set, NULL, NULL, NULL);
    if (strcmp(way, "pselect") == 0)
        return pselect(fd + 1, &set, NULL, NULL, NULL, NULL);
    if (strcmp(way, "epoll_wait") == 0)
        return epoll_wait(efd, &event, 1, -1);
    if (strcmp(way, "epoll_pwait") == 0)
        return epoll_pwait(efd, &event, 1, -1, NULL);
    if (strcmp(way, "epoll_pwait2") == 0)
        return epoll_pwait2(efd, &event, 1, NULL, NULL);
    if (strcmp(way, "accept") == 0)
        return accept(fd, NULL, NULL);
    if (strcmp(way, "accept4") == 0)
        return accept4(fd, NULL, NULL, SOCK_CLOEXEC);
    errx(2, "%s: no such call", way);
}

#endif
