/*
 * A listening Unix socket in the file system, for its owner only.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_UNIX_SOCKET_H
#define BLKIN_OUTPUT_UNIX_SOCKET_H

#include "error.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct unix_socket {
    int fd;
    struct sockaddr_un address;
    struct stat made; /* to see that the path is still ours */
};

/*
 * Of mode 0600. A socket that nobody listens at any more is replaced; anything else of that name is
 * an error, as is a path too long for a socket. Returns false with error set.
 */
bool unix_socket_listen(struct unix_socket *listening, const char *path, struct error *error);

/* Removes it, too, unless another one is there by now. */
void unix_socket_close(struct unix_socket *listening);

/* Returns the descriptor, or -1 with error set. Does not block while somebody listens there. */
int unix_socket_connect(const char *path, struct error *error);

#endif
