/*
 * TCP over loopback for tests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_LOOPBACK_H
#define TESTS_LOOPBACK_H

#include <arpa/inet.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

static inline struct sockaddr_in loopback_address(uint16_t port)
{
    return (struct sockaddr_in){
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
}

/* Returns a socket that listens at a port that the kernel chooses. */
static inline int loopback_listen(uint16_t *port)
{
    struct sockaddr_in address = loopback_address(0);
    socklen_t size = sizeof(address);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (bind(fd, (struct sockaddr *)&address, size) < 0 || listen(fd, 16) < 0 ||
        getsockname(fd, (struct sockaddr *)&address, &size) < 0) {
        perror("the test's listener");
        exit(2);
    }
    *port = ntohs(address.sin_port);
    return fd;
}

/* Returns a connection, or a socket without one if nobody listens. */
static inline int loopback_connect(uint16_t port)
{
    const struct sockaddr_in address = loopback_address(port);
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    (void)connect(fd, (const struct sockaddr *)&address, sizeof(address));
    return fd;
}

#endif
