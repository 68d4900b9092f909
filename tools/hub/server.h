/*
 * The hub's HTTP: libmicrohttpd in the service's loop, without threads: it waits in an epoll set of
 * its own, which is one descriptor of our loop. A request that waits for messages is suspended, and
 * costs its memory only. So everything happens in one thread, and the board needs no lock.
 *
 *   POST /v1/messages?host=H                              an array of messages
 *   GET  /v1/messages?host=H&agent=A&boot=B&after=N&wait=MS&hosts=V
 *                                                         what came after N; waits for it
 *   GET  /v1/hosts, /metrics, /
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HUB_SERVER_H
#define BLKIN_TOOLS_HUB_SERVER_H

#include "access.h"
#include "babeltrace-plugin/base/error.h"
#include "board.h"
#include "tools/base/loop.h"

#include <stdint.h>

struct server_counts {
    uint64_t requests;
    uint64_t
        unauthorized;   /* of them, without the right token or certificate, or for another host */
    uint64_t limited;   /* of them, of a host that posts too much */
    uint64_t hung_up;   /* connections that were too many, or took too long to show who they are */
    uint64_t malformed; /* of them, answered with another 4xx */
};

struct server;

/* What /metrics shows; new, NULL: out of memory. */
typedef char *server_page_fn(void *context);

/* fd listens; it is the server's then. Returns NULL with error set. */
struct server *server_open(struct loop *loop, int fd, struct board *board, struct access *access,
                           server_page_fn *page, void *context, struct error *error);

/* All who wait are answered first. NULL is allowed. */
void server_close(struct server *server);

const struct server_counts *server_counts(const struct server *server);
unsigned server_connections(const struct server *server);

#endif
