/*
 * Runs libmicrohttpd in a service's loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "http.h"

#include <poll.h>

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

static void http_on_ready(void *context, short events)
{
    (void)events;
    http_run(context);
}

bool http_begin(struct http *http, struct loop *loop, struct MHD_Daemon *daemon)
{
    const union MHD_DaemonInfo *info =
        daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;

    *http =
        (struct http){.loop = loop, .daemon = daemon, .run = {.due = http_run, .context = http}};
    if (!info)
        return false;
    http->epoll = (struct watched){info->epoll_fd, POLLIN, http_on_ready, http, NULL};
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
