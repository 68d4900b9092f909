/*
 * Runs an HTTP server of libmicrohttpd in a service's loop, without threads. The loop watches the
 * server's epoll descriptor.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HTTP_H
#define BLKIN_TOOLS_HTTP_H

#include "babeltrace-plugin/account/http_server.h"
#include "tools/base/accepting.h"

#include <stdbool.h>

struct http {
    struct loop *loop;
    struct MHD_Daemon *daemon;
    struct watched epoll;
    struct timer run;
    bool is_due;   /* another run follows at once */
    uint64_t runs; /* the number of runs; callbacks of one run see the same number */
};

/* Takes ownership of the daemon and runs it once. Returns false if the daemon is NULL or has no
 * epoll set; the caller calls http_end() then, too. */
bool http_begin(struct http *http, struct loop *loop, struct MHD_Daemon *daemon);

/* Stops the daemon. */
void http_end(struct http *http);

/* Runs the daemon in the next turn of the loop. Needed after a change outside of its callbacks. */
void http_run_soon(struct http *http);

#endif
