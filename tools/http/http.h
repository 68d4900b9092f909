/*
 * An HTTP server by libmicrohttpd in a service's loop, without threads: it waits in an epoll set of
 * its own, which is one descriptor of the loop. So everything happens in one thread.
 *
 * libmicrohttpd does not accept connections: it would try again at once, for ever, where there are
 * no descriptors left. A door accepts them, and its user gives them to libmicrohttpd.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HTTP_H
#define BLKIN_TOOLS_HTTP_H

#include "tools/base/loop.h"

#include <microhttpd.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <sys/un.h>

/* ---- libmicrohttpd */

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct watched epoll;
    struct timer run;
    bool is_due;   /* since the last run: it runs again at once */
    uint64_t runs; /* so far: what is called in one run has the same number */
};

/* Since 0.9.77 MHD_add_connection() only takes a note, unless it is told that there is one thread:
 * here connections are known before it returns. */
#if MHD_VERSION >= 0x00097707
#define HTTP_ONE_THREAD MHD_USE_NO_THREAD_SAFETY
#else
#define HTTP_ONE_THREAD 0U
#endif

/* For MHD_start_daemon(), with whatever else the server needs. */
#define HTTP_FLAGS (MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | HTTP_ONE_THREAD | MHD_USE_ERROR_LOG)

/* Takes the daemon, which NULL is allowed for, and runs it for the first time. Returns false if
 * there is none, or it has no epoll set: http_end() is due in both cases. */
bool http_begin(struct http *http, struct loop *loop, struct MHD_Daemon *daemon);

/* Stops the daemon. */
void http_end(struct http *http);

/* What the daemon was told from outside its own calls, it looks at soon. */
void http_run_soon(struct http *http);

unsigned http_connections(const struct http *http);

/* ---- doors */

union http_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
};

struct http_door {
    /* Takes a connection that was accepted; the descriptor does not block. */
    void (*come_in)(void *context, int fd, const union http_address *from, socklen_t length);
    /* No more may come now: they wait in the queue of the socket. NULL: they always may. */
    bool (*is_crowded)(void *context);
    void *context;
    struct loop *loop; /* the door's, as are the others */
    struct watched listening;
    bool rests;
};

/* The members up to context are set. fd listens; it is the door's then. */
void http_door_open(struct http_door *door, struct loop *loop, int fd);
/* The descriptor is closed, too. */
void http_door_close(struct http_door *door);

/* Ends a rest: about once a second, and when it is no longer crowded. */
void http_door_wake(struct http_door *door);

#endif
