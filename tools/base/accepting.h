/*
 * A listener (babeltrace-plugin/base/listener.h) in a service's loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_ACCEPTING_H
#define BLKIN_TOOLS_ACCEPTING_H

#include "babeltrace-plugin/base/listener.h"
#include "loop.h"

/* The members up to context are the owner's. */
struct accepting {
    /* Takes a connection that was accepted; the descriptor does not block. */
    void (*come_in)(void *context, int fd, const union peer_address *from, socklen_t length);
    /* No more may come now: they wait in the queue of the socket. NULL: they always may. */
    bool (*is_crowded)(void *context);
    void *context;
    /* its own */
    struct loop *loop; /* NULL: it has not begun */
    struct listener listener;
    struct watched watched;
    struct timer again; /* after a back-off */
};

/* fd listens, and stays the owner's. */
void accepting_begin(struct accepting *accepting, struct loop *loop, int fd);

/* One that has not begun is allowed. */
void accepting_end(struct accepting *accepting);

#endif
