/*
 * Those who wait for messages: their connections are suspended.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server_parts.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <poll.h>
#include <stdlib.h>

#define WOKEN_PER_MS 50 /* so many are woken for each ms that has passed since the last time */

void waiting_end(struct request *request)
{
    if (!request->host)
        return;
    request->host->waiting = NULL;
    request->host = NULL;
    cds_list_del(&request->in_waiting);
    request->server->waiting_count--;
}

void waiting_resume(struct request *request)
{
    struct server *server = request->server;

    waiting_end(request);
    MHD_resume_connection(request->connection);
    http_run_soon(&server->http);
}

void waiting_wake(struct server *server)
{
    struct request *request, *next;

    server->woken_ms = clock_ms();
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
    {
        if (board_has_news(server->board, request->host))
            waiting_resume(request);
    }
}

void waiting_wake_soon(struct server *server)
{
    const int64_t due_ms = server->woken_ms + (int64_t)server->waiting_count / WOKEN_PER_MS;
    const int64_t now_ms = clock_ms();

    if (now_ms >= due_ms)
        waiting_wake(server);
    else
        timer_set(server->loop, &server->wake, due_ms - now_ms);
}

void waiting_begin(struct request *request, struct host *host)
{
    struct server *server = request->server;

    request->host = host;
    host->waiting = request;
    cds_list_add(&request->in_waiting, &server->waiting);
    server->waiting_count++;
    MHD_suspend_connection(request->connection);
}

static int fd_of(const struct request *request)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(request->connection, MHD_CONNECTION_INFO_CONNECTION_FD);

    return info ? info->connect_fd : -1;
}

bool waiting_is_gone(const struct request *request)
{
    struct pollfd fd = {fd_of(request), POLLRDHUP, 0};

    return poll(&fd, 1, 0) > 0;
}

void waiting_look_for_gone(struct server *server)
{
    struct request *request, *next;
    size_t count = 0;

    if (server->waiting_count > server->fds_room) {
        struct pollfd *fds =
            reallocarray(server->fds, server->waiting_count * 2, sizeof(*server->fds));

        if (!fds)
            return;
        server->fds = fds;
        server->fds_room = server->waiting_count * 2;
    }
    cds_list_for_each_entry(request, &server->waiting, in_waiting) server->fds[count++] =
        (struct pollfd){fd_of(request), POLLRDHUP, 0};
    if (poll(server->fds, count, 0) <= 0)
        return;
    count = 0;
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
    {
        if (server->fds[count++].revents)
            waiting_resume(request);
    }
}

void waiting_answer_late(struct server *server, int64_t now_ms)
{
    struct request *request, *next;
    const bool is_news = server->told_version != server->board->hosts_version;

    server->told_version = server->board->hosts_version;
    cds_list_for_each_entry_safe(request, next, &server->waiting, in_waiting)
    {
        if (is_news || now_ms >= request->until_ms)
            waiting_resume(request);
    }
}
