/*
 * A small HTTP server with libmicrohttpd: GET and HEAD of /metrics and a few other pages, one
 * answer per connection.
 *
 * The server has no thread and never blocks: its owner polls, and calls the server when a
 * descriptor is ready. A client has METRICS_CLIENT_MS; the server hangs up on slower ones. At the
 * limit of connections, the client that has been idle for longest is disconnected, so silent
 * clients block nobody.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_METRICS_SERVER_H
#define BLKIN_ACCOUNT_METRICS_SERVER_H

#include "babeltrace-plugin/base/error.h"

#include <poll.h>
#include <stdint.h>

#define SERVER_CLIENTS    8
#define METRICS_CLIENT_MS 3000

/* Returns the page's text for free(), or NULL when out of memory. */
typedef char *metrics_page_fn(void *context);

struct metrics_server;

/* Listens at "[ADDRESS:]PORT", the value of the setting `key`. Returns NULL with error set. */
struct metrics_server *metrics_server_open(const char *key, const char *where,
                                           metrics_page_fn *page, void *context,
                                           struct error *error);

/* Adds a page with a path such as "/statistics". The caller owns the texts, which must live as
 * long. */
void metrics_server_add(struct metrics_server *server, const char *path, const char *content_type,
                        metrics_page_fn *page);
#define SERVER_PAGES 2

/* Ends all connections. NULL is allowed. */
void metrics_server_close(struct metrics_server *server);

/* "http://127.0.0.1:9464/metrics" */
const char *metrics_server_url(const struct metrics_server *server);

#define SERVER_POLLFDS 2

/* Fills all SERVER_POLLFDS of fds; an unused element is -1. Returns the time (clock_ms()) of the
 * next metrics_server_serve() without an event. */
int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds);

/* Serves ready descriptors after a poll() of fds. */
void metrics_server_serve(struct metrics_server *server, const struct pollfd *fds);

#endif
