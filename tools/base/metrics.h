/*
 * Serves HTTP from a service's loop: the metrics page for Prometheus, further pages, and other
 * servers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_METRICS_H
#define BLKIN_TOOLS_METRICS_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/account/http_server.h"
#include "loop.h"

#include <stdbool.h>

struct metrics;

/* Listens at where, "[ADDRESS:]PORT"; key is the configuration key for messages. Returns NULL with
 * error set. */
struct metrics *metrics_open(struct loop *loop, const char *key, const char *where,
                             metrics_page_fn *page, void *context, struct error *error);
/* Adds a page: see metrics_server_add(). */
void metrics_add(struct metrics *metrics, const char *path, const char *content_type,
                 metrics_page_fn *page);
const char *metrics_url(const struct metrics *metrics);

/* Returns the page of sinks that read no live session, followed by `own`, the service's own text,
 * which the function frees. NULL: out of memory. */
char *metrics_page_text(const struct counts *counts, const char *endpoint, char *own);

/* NULL is allowed. */
void metrics_close(struct metrics *metrics);

/* ---- any HTTP server in a loop --------------------------------------------------------------- */

/* A libmicrohttpd server that a service's loop runs, without threads. The server has an epoll set,
 * which is one descriptor of the loop. */
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
