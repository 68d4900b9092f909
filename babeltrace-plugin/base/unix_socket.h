/*
 * Unix sockets in the file system: listening, connecting, passed descriptors, the user of a sender.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_UNIX_SOCKET_H
#define BLKIN_BASE_UNIX_SOCKET_H

#include "error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct unix_socket {
    int fd;
    struct sockaddr_un address;
    struct stat made; /* identifies the file of the socket */
};

struct unix_socket_kind {
    int type; /* SOCK_STREAM, SOCK_SEQPACKET */
    mode_t mode;
    int backlog;
};

/* Returns false with error set if no socket can have this path. */
bool unix_socket_set_address(struct sockaddr_un *address, const char *path, struct error *error);

/* Replaces a socket that has no listener. Any other file of this name is an error, and so is a path
 * that is too long for a socket. Returns false with error set. */
bool unix_socket_listen(struct unix_socket *listening, const struct unix_socket_kind *kind,
                        const char *path, struct error *error);

/* Closes the socket, and removes its file unless another process has replaced the file. */
void unix_socket_close(struct unix_socket *listening);

/* Returns a non-blocking descriptor, or -1 with error set. Never blocks: a full backlog is an
 * error. */
int unix_socket_connect(int type, const char *path, struct error *error);

/* Same as send(2), without SIGPIPE. passed: a descriptor, or -1. */
ssize_t unix_socket_send(int socket, const void *bytes, size_t length, int passed, int flags);

/* Same as recv(2). *passed: the first descriptor, which the caller owns and execve(2) closes; -1:
 * none. */
ssize_t unix_socket_receive(int socket, void *bytes, size_t room, int *passed, int flags);

/* Makes the kernel add the sender to each message of the socket's connections. The caller calls
 * this function before any client connects. */
bool unix_socket_name_senders(int listener);

/* Reads a message without waiting, and drops its bytes. The kernel sets *user, not the sender.
 * Returns false if there is no message, or no user with it. */
bool unix_socket_sender(int socket, uint32_t *user);

#endif
