/*
 * A small HTTP server: GET /metrics and few pages more, one answer per connection.
 *
 * It never blocks: its owner polls, and calls it when there is something to do. A client has
 * CLIENT_TIME_MS and METRICS_REQUEST_MAX bytes; whoever is slower or longer is put out. Nobody has
 * to wait for those who say nothing: where there is no place left, the one who has been idle for
 * longest gives up his.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_METRICS_SERVER_H
#define BLKIN_ACCOUNT_METRICS_SERVER_H

#include "babeltrace-plugin/base/error.h"

#include <poll.h>
#include <stdbool.h>
#include <stdint.h>

#define SERVER_CLIENTS 8
#define CLIENT_TIME_MS 3000

/* Returns the page's text, which is freed, or NULL when out of memory. */
typedef char *metrics_page_fn(void *context);

struct metrics_server;

/* Listens at "[ADDRESS:]PORT". Returns NULL with error set. */
struct metrics_server *metrics_server_open(const char *where, metrics_page_fn *page, void *context,
                                           struct error *error);

/* One page more, at a path of its own: "/statistics". The texts are the caller's for as long. */
void metrics_server_add(struct metrics_server *server, const char *path, const char *content_type,
                        metrics_page_fn *page);
#define SERVER_PAGES 2

/* Ends all connections. NULL is allowed. */
void metrics_server_close(struct metrics_server *server);

/* "http://127.0.0.1:9464/metrics" */
const char *metrics_server_url(const struct metrics_server *server);

#define SERVER_POLLFDS (1 + SERVER_CLIENTS)

/*
 * Fills all SERVER_POLLFDS of fds with what to wait for, -1 where there is nothing, and returns the
 * time (clock_ms()) at which metrics_server_serve() is to be called in any case.
 */
int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds);

/* Does what can be done now, after a poll() of fds. */
void metrics_server_serve(struct metrics_server *server, const struct pollfd *fds);

#endif
