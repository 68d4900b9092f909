/*
 * An HTTP server by libmicrohttpd in a service's loop, without threads: it waits in an epoll set of
 * its own, which is one descriptor of the loop. So everything happens in one thread.
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
    bool is_due;   /* since the last run: it runs again at once */
    uint64_t runs; /* so far: what is called in one run has the same number */
};

/* Takes the daemon, which NULL is allowed for, and runs it for the first time. Returns false if
 * there is none, or it has no epoll set: http_end() is due in both cases. */
bool http_begin(struct http *http, struct loop *loop, struct MHD_Daemon *daemon);

/* Stops the daemon. */
void http_end(struct http *http);

/* What the daemon was told from outside its own calls, it looks at soon. */
void http_run_soon(struct http *http);

#endif
