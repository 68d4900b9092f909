/*
 * A small HTTP server, by libmicrohttpd: GET and HEAD of /metrics and few pages more, one answer
 * per connection.
 *
 * It has no thread and never blocks: its owner polls, and calls it when there is something to do. A
 * client has METRICS_CLIENT_MS; the server hangs up on slower ones. Nobody has to wait for clients
 * that say nothing: when all places are taken, the client that has been idle for longest loses its
 * place.
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

/* Returns the page's text, which is freed, or NULL when out of memory. */
typedef char *metrics_page_fn(void *context);

struct metrics_server;

/* Listens at "[ADDRESS:]PORT", which is the value of the setting `key`. Returns NULL with error
 * set. */
struct metrics_server *metrics_server_open(const char *key, const char *where,
                                           metrics_page_fn *page, void *context,
                                           struct error *error);

/* One page more, at a path of its own: "/statistics". The texts are the caller's for as long. */
void metrics_server_add(struct metrics_server *server, const char *path, const char *content_type,
                        metrics_page_fn *page);
#define SERVER_PAGES 2

/* Ends all connections. NULL is allowed. */
void metrics_server_close(struct metrics_server *server);

/* "http://127.0.0.1:9464/metrics" */
const char *metrics_server_url(const struct metrics_server *server);

#define SERVER_POLLFDS 2

/* Fills all SERVER_POLLFDS of fds with what to wait for, -1 where there is nothing, and returns the
 * time (clock_ms()) at which metrics_server_serve() is to be called in any case. */
int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds);

/* Does what can be done now, after a poll() of fds. */
void metrics_server_serve(struct metrics_server *server, const struct pollfd *fds);

#endif
