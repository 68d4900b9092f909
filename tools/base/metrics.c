/*
 * The page for Prometheus, served by a service's loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "metrics.h"

#include "babeltrace-plugin/account/counters.h"
#include "babeltrace-plugin/base/http_url.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "say.h"

#include <stdio.h>
#include <stdlib.h>

struct metrics {
    struct loop *loop;
    struct metrics_server *server;
    struct watched watched[SERVER_POLLFDS];
    struct timer timer;
};

static void metrics_ready(void *context, short events);

/* Registers all descriptors again: serving a request may change them. */
static void metrics_prepare(struct metrics *metrics)
{
    struct pollfd fds[SERVER_POLLFDS];
    const int64_t due_ms = metrics_server_prepare(metrics->server, fds);

    for (int i = 0; i < SERVER_POLLFDS; i++) {
        loop_unwatch(metrics->loop, &metrics->watched[i]);
        metrics->watched[i] =
            (struct watched){fds[i].fd, fds[i].events, metrics_ready, metrics, NULL};
        if (fds[i].fd >= 0)
            loop_watch(metrics->loop, &metrics->watched[i]);
    }
    timer_clear(metrics->loop, &metrics->timer);
    if (due_ms != CLOCK_NEVER)
        timer_set(metrics->loop, &metrics->timer, due_ms - clock_ms());
}

static void metrics_serve(void *context)
{
    struct metrics *metrics = context;

    metrics_server_serve(metrics->server);
    metrics_prepare(metrics);
}

static void metrics_ready(void *context, short events)
{
    (void)events;
    metrics_serve(context);
}

struct metrics *metrics_open(struct loop *loop, const char *key, const char *where,
                             metrics_page_fn *page, void *context, struct error *error)
{
    struct metrics *metrics = calloc(1, sizeof(*metrics));

    if (!metrics)
        return error_null(error, "out of memory");
    metrics->loop = loop;
    metrics->timer = (struct timer){.due = metrics_serve, .context = metrics};
    metrics->server = metrics_server_open(key, where, page, context, error);
    if (!metrics->server) {
        free(metrics);
        return NULL;
    }
    metrics_prepare(metrics);
    return metrics;
}

void metrics_add(struct metrics *metrics, const char *path, const char *content_type,
                 metrics_page_fn *page)
{
    metrics_server_add(metrics->server, path, content_type, page);
}

const char *metrics_url(const struct metrics *metrics)
{
    return metrics_server_url(metrics->server);
}

void metrics_close(struct metrics *metrics)
{
    if (!metrics)
        return;
    for (int i = 0; i < SERVER_POLLFDS; i++)
        loop_unwatch(metrics->loop, &metrics->watched[i]);
    timer_clear(metrics->loop, &metrics->timer);
    metrics_server_close(metrics->server);
    free(metrics);
}

char *metrics_page(const struct counts *counts, const char *endpoint, char *own)
{
    static int64_t start_ns;
    struct counts shown = *counts;
    struct run_info run = {.endpoint = endpoint_shown(endpoint ? endpoint : ""),
                           .start_ns = start_ns ? start_ns : (start_ns = wall_clock_ns()),
                           .events_ns = wall_clock_ns(),
                           .now_ns = wall_clock_ns()};
    struct printer printer = {.has_failed = !run.endpoint || !own};

    if (!printer.has_failed) {
        shown.input.trace_time_ns = 0; /* no live session, whose time could stand still */
        prometheus_print(&printer, &shown, &run);
        print_string(&printer, own);
    }
    free(own);
    free(run.endpoint);
    return print_end(&printer);
}
