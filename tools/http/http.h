/*
 * An HTTP server by libmicrohttpd in a service's loop, without threads. The server has an epoll
 * set, which is one descriptor of the loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HTTP_H
#define BLKIN_TOOLS_HTTP_H

#include "babeltrace-plugin/account/http_server.h"
#include "tools/base/loop.h"

#include <stdbool.h>

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct watched epoll;
    struct timer run;
    bool is_due;   /* another run follows at once */
    uint64_t runs; /* the number of runs; callbacks of one run see the same number */
};

/* Takes the daemon and runs it once. Returns false if the daemon is NULL or has no epoll set; the
 * caller then calls http_end(). */
bool http_begin(struct http *http, struct loop *loop, struct MHD_Daemon *daemon);

/* Stops the daemon. */
void http_end(struct http *http);

/* Runs the daemon soon, after a change from outside of its callbacks. */
void http_run_soon(struct http *http);

#endif
