/*
 * The page for Prometheus, served by a service's loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_METRICS_H
#define BLKIN_TOOLS_METRICS_H

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/account/metrics_server.h"
#include "loop.h"

struct metrics;

/* Listens at "[ADDRESS:]PORT", the value of `key`. Returns NULL with error set. */
struct metrics *metrics_open(struct loop *loop, const char *key, const char *where,
                             metrics_page_fn *page, void *context, struct error *error);
/* One page more, see metrics_server_add(). */
void metrics_add(struct metrics *metrics, const char *path, const char *content_type,
                 metrics_page_fn *page);
const char *metrics_url(const struct metrics *metrics);

/* The page of sinks that are children and read no live session (their trace time is 0), with the
 * service's own text after it, which is freed. NULL: out of memory. */
char *metrics_page(const struct counts *counts, const char *endpoint, char *own);

/* NULL is allowed. */
void metrics_close(struct metrics *metrics);

#endif
