/*
 * Serves a service's metrics page for Prometheus from the service's loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_METRICS_H
#define BLKIN_TOOLS_METRICS_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/account/http_server.h"
#include "loop.h"

struct metrics;

/* Listens at where, "[ADDRESS:]PORT"; key is the configuration key for messages. Returns NULL with
 * error set. */
struct metrics *metrics_open(struct loop *loop, const char *key, const char *where,
                             metrics_page_fn *page, void *context, struct error *error);
/* Adds a page: see metrics_server_add(). */
void metrics_add(struct metrics *metrics, const char *path, const char *content_type,
                 metrics_page_fn *page);
const char *metrics_url(const struct metrics *metrics);

/* Returns the page of sinks that read no live session, followed by the service's own text, which
 * the function frees. NULL: out of memory. */
char *metrics_page(const struct counts *counts, const char *endpoint, char *own);

/* NULL is allowed. */
void metrics_close(struct metrics *metrics);

#endif
