/* SPDX-License-Identifier: BSD-2-Clause */
#include "metrics.h"

#include "babeltrace-plugin/base/date.h"
#include "babeltrace-plugin/base/http_client.h"
#include "babeltrace-plugin/base/monotonic.h"

#include <poll.h>
#include <stdlib.h>

/* ---- the page -------------------------------------------------------------------------------- */

struct metrics {
    struct loop *loop;
    struct metrics_server *server;
    struct watched watched[SERVER_POLLFDS];
    struct timer timer;
};

static void metrics_serve(void *context);

/* Registers all descriptors again: serving a request may change them. */
static void metrics_prepare(struct metrics *metrics)
{
    struct pollfd fds[SERVER_POLLFDS];
    const int64_t due_ms = metrics_server_prepare(metrics->server, fds);

    for (int i = 0; i < SERVER_POLLFDS; i++) {
        loop_unwatch(metrics->loop, &metrics->watched[i]);
        metrics->watched[i] =
            (struct watched){fds[i].fd, fds[i].events, metrics_serve, metrics, NULL, 0};
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

char *metrics_page_text(const struct counts *counts, const char *endpoint, char *own)
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

/* ---- any HTTP server ------------------------------------------------------------------------- */

static void http_run(void *context)
{
    struct http *http = context;
    MHD_UNSIGNED_LONG_LONG timeout_ms;

    timer_clear(http->loop, &http->run);
    http->is_due = false;
    http->runs++;
    (void)MHD_run(http->daemon);
    if (http->is_due)
        timer_set(http->loop, &http->run, 0);
    else if (MHD_get_timeout(http->daemon, &timeout_ms) == MHD_YES)
        timer_set(http->loop, &http->run, (int64_t)timeout_ms);
}

bool http_begin(struct http *http, struct loop *loop, struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info =
        daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;

    *http =
        (struct http){.loop = loop, .daemon = daemon, .run = {.due = http_run, .context = http}};
    if (!info)
        return false;
    http->epoll = (struct watched){info->epoll_fd, POLLIN, http_run, http, NULL, 0};
    loop_watch(loop, &http->epoll);
    http_run(http);
    return true;
}

void http_end(struct http *http)
{
    loop_unwatch(http->loop, &http->epoll);
    if (http->daemon)
        MHD_stop_daemon(http->daemon);
    timer_clear(http->loop, &http->run);
}

void http_run_soon(struct http *http)
{
    http->is_due = true;
    timer_set(http->loop, &http->run, 0);
}
