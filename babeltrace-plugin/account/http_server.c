/* SPDX-License-Identifier: BSD-2-Clause */
#include "http_server.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "counters.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- connections and answers ----------------------------------------------------------------- */

static void http_peers_count_hung_up(struct listener_sender *sender)
{
    if (sender)
        sender->hung_up++;
}

/* libmicrohttpd sees the end of the connection, and closes it in its next round. */
static void http_peers_hang_up(struct listener_peer *peer)
{
    http_peers_count_hung_up(peer->sender);
    (void)shutdown(peer->fd, SHUT_RDWR);
}

void http_peers_begin(struct http_peers *http, struct MHD_Daemon *daemon)
{
    http->daemon = daemon;
    http->peers.hang_up = http_peers_hang_up;
    peers_begin(&http->peers);
}

static void http_peers_forget(struct http_peers *http, struct listener_peer *peer)
{
    peers_remove(&http->peers, peer);
    free(peer);
}

void http_peers_admit(struct http_peers *http, int fd, const union peer_address *from,
                      socklen_t length, struct listener_sender *sender)
{
    struct listener_peer *peer =
        peers_make_room(&http->peers, sender) ? malloc(sizeof(*peer)) : NULL;

    if (!peer) {
        http_peers_count_hung_up(sender);
        close(fd);
        return;
    }
    peers_add(&http->peers, peer, fd, sender);
    http->admitted = peer;
    (void)MHD_add_connection(http->daemon, fd, &from->any, length);
    if (http->admitted) { /* libmicrohttpd has closed the connection without a notification */
        http_peers_count_hung_up(sender);
        http_peers_forget(http, peer);
    }
    http->admitted = NULL;
}

void http_peers_notify(void *context, struct MHD_Connection *connection, void **peer_slot,
                       enum MHD_ConnectionNotificationCode code)
{
    struct http_peers *http = context;

    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *peer_slot = http->admitted;
        http->admitted = NULL;
    } else if (*peer_slot) {
        http_peers_forget(http, *peer_slot);
        *peer_slot = NULL;
    }
}

struct listener_peer *http_peer(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

enum MHD_Result http_answer(struct MHD_Connection *connection, unsigned status, const char *type,
                            char *text, const struct http_header *headers)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    enum MHD_Result result;

    if (!response) {
        free(text);
        return MHD_NO; /* ends the connection */
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    for (; headers->name; headers++) {
        if (headers->status == 0 || headers->status == status)
            (void)MHD_add_response_header(response, headers->name, headers->value);
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

/* ---- the page of metrics --------------------------------------------------------------------- */

#define ACCEPTS              64    /* in a row */
#define METRICS_ROUNDS       16    /* of libmicrohttpd, in a row */
#define METRICS_MEMORY_BYTES 16384 /* of a connection: a longer head is refused */

struct metrics_server {
    struct http_peers http;
    struct listener listener;
    int epoll_fd;
    struct metrics_page {
        const char *path, *content_type;
        metrics_page_fn *print;
    } pages[SERVER_PAGES]; /* the first is /metrics; a path of NULL ends the list */
    void *context;
    char url[LISTEN_URL_MAX + 8];
};

/* ---- answers --------------------------------------------------------------------------------- */

static enum MHD_Result metrics_server_answer(struct MHD_Connection *connection, unsigned status,
                                             const char *type, char *text)
{
    static const struct http_header headers[] = {
        {0, "Connection", "close"},
        {MHD_HTTP_METHOD_NOT_ALLOWED, "Allow", "GET, HEAD"},
        {0, NULL, NULL}};

    return http_answer(connection, status, type, text, headers);
}

/* Returns the text for an unknown path: it names the pages. NULL when out of memory. */
static char *metrics_server_index(const struct metrics_server *server)
{
    char text[128];
    int length = snprintf(text, sizeof(text), "There is only");

    for (int i = 0; i < SERVER_PAGES && server->pages[i].path; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s %s", i ? " and" : "",
                           server->pages[i].path);
    (void)snprintf(text + length, sizeof(text) - (size_t)length, " here.\n");
    return strdup(text);
}

static const struct metrics_page *find_page(const struct metrics_server *server, const char *path)
{
    for (int i = 0; i < SERVER_PAGES && server->pages[i].path; i++)
        if (strcmp(server->pages[i].path, path) == 0)
            return &server->pages[i];
    return NULL;
}

/* Answers after the request's head, without waiting for a body. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **peer_slot)
{
    static const char plain[] = "text/plain; charset=utf-8";
    const struct metrics_server *server = context;
    const struct metrics_page *page = find_page(server, path);

    (void)version;
    (void)data;
    (void)size;
    (void)peer_slot;
    http_peer(connection)->is_busy = true;
    if (!page)
        return metrics_server_answer(connection, MHD_HTTP_NOT_FOUND, plain,
                                     metrics_server_index(server));
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return metrics_server_answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain, strdup(""));
    return metrics_server_answer(connection, MHD_HTTP_OK, page->content_type,
                                 page->print(server->context));
}

/* ---- clients --------------------------------------------------------------------------------- */

static void run_daemon(struct metrics_server *server)
{
    MHD_UNSIGNED_LONG_LONG left_ms;
    int rounds = 0;

    do
        (void)MHD_run(server->http.daemon);
    while (++rounds < METRICS_ROUNDS && MHD_get_timeout(server->http.daemon, &left_ms) == MHD_YES &&
           left_ms == 0);
}

/* Accepts ACCEPTS clients at most, because the thread has other work, too. */
static void accept_clients(struct metrics_server *server)
{
    union peer_address from;
    socklen_t length;
    int fd;

    for (int i = 0; i < ACCEPTS && (fd = listener_accept(&server->listener, &from, &length)) >= 0;
         i++) {
        if (server->http.peers.count == SERVER_CLIENTS)
            run_daemon(server); /* answers pending requests first */
        http_peers_admit(&server->http, fd, &from, length, NULL);
        run_daemon(server);
    }
}

int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds)
{
    const int64_t now_ms = clock_ms(), pause_ms = server->listener.until_ms;
    const bool is_paused = pause_ms > now_ms;
    int64_t until_ms = peers_end_late(&server->http.peers);
    MHD_UNSIGNED_LONG_LONG left_ms;

    fds[0] = (struct pollfd){is_paused ? -1 : server->listener.fd, POLLIN, 0};
    fds[1] = (struct pollfd){server->epoll_fd, POLLIN, 0};
    if (is_paused)
        until_ms = clock_earlier(until_ms, pause_ms);
    if (MHD_get_timeout(server->http.daemon, &left_ms) == MHD_YES)
        until_ms = clock_earlier(until_ms, now_ms + (int64_t)left_ms);
    return until_ms;
}

void metrics_server_serve(struct metrics_server *server)
{
    (void)peers_end_late(&server->http.peers);
    accept_clients(server);
    run_daemon(server);
}

/* ---- set-up ---------------------------------------------------------------------------------- */

static bool start_daemon(struct metrics_server *server)
{
    const union MHD_DaemonInfo *info;
    struct MHD_Daemon *daemon = MHD_start_daemon(
        HTTP_FLAGS, 0, NULL, NULL, handle, server, MHD_OPTION_NOTIFY_CONNECTION, http_peers_notify,
        &server->http, MHD_OPTION_CONNECTION_LIMIT, 2U * SERVER_CLIENTS,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)METRICS_MEMORY_BYTES, MHD_OPTION_END);

    server->http.peers =
        (struct listener_peers){.most = SERVER_CLIENTS, .time_ms = METRICS_CLIENT_MS};
    http_peers_begin(&server->http, daemon);
    info = daemon ? MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
    server->epoll_fd = info ? info->epoll_fd : -1;
    return info != NULL;
}

struct metrics_server *metrics_server_open(const char *key, const char *where,
                                           metrics_page_fn *page, void *context,
                                           struct error *error)
{
    struct listen_address address;
    struct metrics_server *server;

    if (!listen_parse(&address, key, where, error))
        return NULL;
    server = calloc(1, sizeof(*server));
    if (!server)
        return error_null(error, "out of memory");
    server->pages[0] = (struct metrics_page){"/metrics", PROMETHEUS_CONTENT_TYPE, page};
    server->context = context;
    server->listener.fd = listen_open(&address, key, where, error);
    if (server->listener.fd < 0) {
        free(server);
        return NULL;
    }
    if (!start_daemon(server)) {
        error_set(error, "%s \"%s\": cannot start the HTTP server", key, where);
        metrics_server_close(server);
        return NULL;
    }
    listen_url(&address, server->listener.fd, "http", server->url);
    strcat(server->url, "/metrics");
    return server;
}

void metrics_server_add(struct metrics_server *server, const char *path, const char *content_type,
                        metrics_page_fn *page)
{
    int i = 1;

    while (i < SERVER_PAGES - 1 && server->pages[i].path)
        i++;
    server->pages[i] = (struct metrics_page){path, content_type, page};
}

void metrics_server_close(struct metrics_server *server)
{
    if (!server)
        return;
    if (server->http.daemon)
        MHD_stop_daemon(server->http.daemon);
    close(server->listener.fd);
    free(server);
}

const char *metrics_server_url(const struct metrics_server *server)
{
    return server->url;
}
