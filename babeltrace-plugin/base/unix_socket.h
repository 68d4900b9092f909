/*
 * A listening Unix socket in the file system.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_UNIX_SOCKET_H
#define BLKIN_OUTPUT_UNIX_SOCKET_H

#include "error.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

struct unix_socket {
    int fd;
    struct sockaddr_un address;
    struct stat made; /* to see that the path is still ours */
};

struct unix_socket_kind {
    int type; /* SOCK_STREAM, SOCK_SEQPACKET */
    mode_t mode;
    int backlog;
};

/* For its owner only. */
extern const struct unix_socket_kind unix_socket_private;

/*
 * A socket that nobody listens at any more is replaced; anything else of that name is
 * an error, as is a path too long for a socket. Returns false with error set.
 */
bool unix_socket_listen(struct unix_socket *listening, const struct unix_socket_kind *kind,
                        const char *path, struct error *error);

/* Removes it, too, unless another one is there by now. */
void unix_socket_close(struct unix_socket *listening);

/* Returns the descriptor, which does not block, or -1 with error set. Does not block while somebody
 * listens there. */
int unix_socket_connect(int type, const char *path, struct error *error);

/* ---- descriptors that are passed along with a message */

/* As send(2), without SIGPIPE. passed: a descriptor, or -1. */
ssize_t unix_socket_send(int socket, const void *bytes, size_t length, int passed, int flags);

/* As recv(2). *passed: the first descriptor, which is the caller's and closed at execve(2), or -1:
 * none. */
ssize_t unix_socket_receive(int socket, void *bytes, size_t room, int *passed, int flags);

/* ---- who sends */

/* Of a listening socket, before anybody connects: its connections tell the sender of each message.
 */
bool unix_socket_name_senders(int listener);

/* Takes a message, without waiting, whose bytes do not matter. The kernel vouches for the user.
 * False: there is none. */
bool unix_socket_sender(int socket, uint32_t *user);

#endif
