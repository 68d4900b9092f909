/*
 * Accepts the connections of a listening socket (babeltrace-plugin/base/listen.h) in a loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ACCEPTING_H
#define BLKIN_TOOLS_ACCEPTING_H

#include "babeltrace-plugin/base/listen.h"
#include "loop.h"

/* The owner sets the members up to context. */
struct accepting {
    /* Takes an accepted connection. Its descriptor does not block. */
    void (*come_in)(void *context, int fd, const union peer_address *from, socklen_t length);
    /* Returns whether the service is full: connections then wait in the socket's queue, and the
     * next accept comes after the back-off. NULL: never full. */
    bool (*is_crowded)(void *context);
    void *context;
    /* private */
    struct loop *loop; /* NULL: not begun */
    struct listener listener;
    struct watched watched;
    struct timer again; /* after a back-off */
};

/* fd is a listening socket. The owner closes it after accepting_end(). */
void accepting_begin(struct accepting *accepting, struct loop *loop, int fd);

/* Does nothing if accepting_begin() was not called. */
void accepting_end(struct accepting *accepting);

#endif
