/*
 * A small HTTP server: libmicrohttpd without threads. The server accepts connections itself, so
 * that it can choose who has to leave when there are too many, and can pause when there are no
 * descriptors left: libmicrohttpd would try again at once, for ever.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "metrics_server.h"

#include "babeltrace-plugin/base/listen.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "http_answer.h"
#include "prometheus.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After accept() has failed for want of descriptors or memory. */
#define ACCEPT_PAUSE_MS 200
#define ACCEPTS         64    /* in a row */
#define ROUNDS          16    /* of libmicrohttpd, in a row */
#define MEMORY_BYTES    16384 /* of a connection: a longer head is refused */

/* libmicrohttpd's, from accept() until it tells that the connection has ended. */
struct client {
    int fd;          /* -1: a free place */
    uint64_t number; /* in the order in which they came */
    int64_t until_ms;
    bool is_answered;
};

struct metrics_server {
    struct MHD_Daemon *daemon;
    int fd, epoll_fd;
    int64_t accept_ms; /* not before */
    struct page {
        const char *path, *content_type;
        metrics_page_fn *print;
    } pages[SERVER_PAGES]; /* the first is /metrics; a path of NULL: no more */
    void *context;
    char url[LISTEN_URL_MAX + 8];
    struct client clients[SERVER_CLIENTS];
    struct client *accepted; /* while libmicrohttpd takes it */
    uint64_t accepted_count;
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

/* NULL: out of memory. */
static char *say_what_there_is(const struct metrics_server *server)
{
    char text[128];
    int length = snprintf(text, sizeof(text), "There is only");

    for (int i = 0; i < SERVER_PAGES && server->pages[i].path; i++)
        length += snprintf(text + length, sizeof(text) - (size_t)length, "%s %s", i ? " and" : "",
                           server->pages[i].path);
    (void)snprintf(text + length, sizeof(text) - (size_t)length, " here.\n");
    return strdup(text);
}

static const struct page *find_page(const struct metrics_server *server, const char *path)
{
    for (int i = 0; i < SERVER_PAGES && server->pages[i].path; i++)
        if (strcmp(server->pages[i].path, path) == 0)
            return &server->pages[i];
    return NULL;
}

/* Answers as soon as the request's head is there: a body is not waited for. */
static enum MHD_Result handle(void *context, struct MHD_Connection *connection, const char *path,
                              const char *method, const char *version, const char *data,
                              size_t *size, void **place)
{
    static const char plain[] = "text/plain; charset=utf-8";
    const struct metrics_server *server = context;
    const struct page *page = find_page(server, path);
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    (void)version;
    (void)data;
    (void)size;
    (void)place;
    ((struct client *)info->socket_context)->is_answered = true;
    if (!page)
        return metrics_server_answer(connection, MHD_HTTP_NOT_FOUND, plain,
                                     say_what_there_is(server));
    if (strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0)
        return metrics_server_answer(connection, MHD_HTTP_METHOD_NOT_ALLOWED, plain, strdup(""));
    return metrics_server_answer(connection, MHD_HTTP_OK, page->content_type,
                                 page->print(server->context));
}

/* ---- clients --------------------------------------------------------------------------------- */

static void notify_client(void *context, struct MHD_Connection *connection, void **place,
                          enum MHD_ConnectionNotificationCode code)
{
    struct metrics_server *server = context;

    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED)
        *place = server->accepted;
    else
        ((struct client *)*place)->fd = -1;
}

/* libmicrohttpd sees that the connection has ended, and closes it in its next round. */
static void hang_up(struct client *client)
{
    (void)shutdown(client->fd, SHUT_RDWR);
    client->until_ms = CLOCK_NEVER;
}

static void run_daemon(struct metrics_server *server)
{
    MHD_UNSIGNED_LONG_LONG left_ms;
    int rounds = 0;

    do
        (void)MHD_run(server->daemon);
    while (++rounds < ROUNDS && MHD_get_timeout(server->daemon, &left_ms) == MHD_YES &&
           left_ms == 0);
}

/* Of two clients, the one to be put out: idle ones first, and of them the one that came first. */
static bool is_idler(const struct client *a, const struct client *b)
{
    return a->is_answered != b->is_answered ? b->is_answered : a->number < b->number;
}

static struct client *find_place(struct metrics_server *server)
{
    for (int i = 0; i < SERVER_CLIENTS; i++)
        if (server->clients[i].fd < 0)
            return &server->clients[i];
    return NULL;
}

/* For a client that has been accepted. NULL: libmicrohttpd has closed none yet. */
static struct client *server_make_room(struct metrics_server *server)
{
    struct client *idlest = &server->clients[0];

    if (!find_place(server))
        run_daemon(server); /* whoever has sent a request is answered first */
    if (!find_place(server)) {
        for (int i = 1; i < SERVER_CLIENTS; i++)
            if (is_idler(&server->clients[i], idlest))
                idlest = &server->clients[i];
        hang_up(idlest);
        run_daemon(server);
    }
    return find_place(server);
}

static void begin_client(struct metrics_server *server, int fd, const struct sockaddr *from,
                         socklen_t length)
{
    struct client *client = server_make_room(server);

    if (!client) {
        close(fd);
        return;
    }
    *client = (struct client){
        .fd = fd, .number = server->accepted_count++, .until_ms = clock_ms() + CLIENT_TIME_MS};
    server->accepted = client;
    if (MHD_add_connection(server->daemon, fd, from, length) != MHD_YES)
        client->fd = -1; /* libmicrohttpd has closed it */
}

/* A crowd is served in parts: there is a file to be written, too. */
static void accept_clients(struct metrics_server *server)
{
    for (int i = 0; i < ACCEPTS; i++) {
        struct sockaddr_storage from;
        socklen_t length = sizeof(from);
        const int fd =
            accept4(server->fd, (struct sockaddr *)&from, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            begin_client(server, fd, (struct sockaddr *)&from, length);
            continue;
        }
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        if (errno != EAGAIN && errno != EWOULDBLOCK)
            server->accept_ms = clock_ms() + ACCEPT_PAUSE_MS;
        return;
    }
}

int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds)
{
    const int64_t now_ms = clock_ms();
    const bool is_paused = server->accept_ms > now_ms;
    int64_t until_ms = is_paused ? server->accept_ms : CLOCK_NEVER;
    MHD_UNSIGNED_LONG_LONG left_ms;

    fds[0] = (struct pollfd){is_paused ? -1 : server->fd, POLLIN, 0};
    fds[1] = (struct pollfd){server->epoll_fd, POLLIN, 0};
    for (int i = 0; i < SERVER_CLIENTS; i++) {
        const struct client *client = &server->clients[i];

        if (client->fd >= 0 && client->until_ms < until_ms)
            until_ms = client->until_ms;
    }
    if (MHD_get_timeout(server->daemon, &left_ms) == MHD_YES &&
        now_ms + (int64_t)left_ms < until_ms)
        until_ms = now_ms + (int64_t)left_ms;
    return until_ms;
}

void metrics_server_serve(struct metrics_server *server, const struct pollfd *fds)
{
    const int64_t now_ms = clock_ms();

    for (int i = 0; i < SERVER_CLIENTS; i++) {
        struct client *client = &server->clients[i];

        if (client->fd >= 0 && now_ms >= client->until_ms)
            hang_up(client);
    }
    if (fds[0].revents)
        accept_clients(server);
    run_daemon(server);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* Since 0.9.77 MHD_add_connection() only takes a note, unless it is told that there is one thread.
 */
#if MHD_VERSION >= 0x00097707
#define ONE_THREAD MHD_USE_NO_THREAD_SAFETY
#else
#define ONE_THREAD 0U
#endif

static bool start_daemon(struct metrics_server *server)
{
    const union MHD_DaemonInfo *info;

    server->daemon =
        MHD_start_daemon(MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | ONE_THREAD, 0, NULL, NULL,
                         handle, server, MHD_OPTION_NOTIFY_CONNECTION, notify_client, server,
                         MHD_OPTION_CONNECTION_LIMIT, (unsigned)SERVER_CLIENTS,
                         MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)MEMORY_BYTES, MHD_OPTION_END);
    info = server->daemon ? MHD_get_daemon_info(server->daemon, MHD_DAEMON_INFO_EPOLL_FD) : NULL;
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
    server->pages[0] = (struct page){"/metrics", PROMETHEUS_CONTENT_TYPE, page};
    server->context = context;
    for (int i = 0; i < SERVER_CLIENTS; i++)
        server->clients[i].fd = -1;
    server->fd = listen_open(&address, key, where, error);
    if (server->fd < 0) {
        free(server);
        return NULL;
    }
    if (!start_daemon(server)) {
        error_set(error, "%s \"%s\": cannot start the HTTP server", key, where);
        metrics_server_close(server);
        return NULL;
    }
    listen_url(&address, server->fd, "http", server->url);
    strcat(server->url, "/metrics");
    return server;
}

void metrics_server_add(struct metrics_server *server, const char *path, const char *content_type,
                        metrics_page_fn *page)
{
    int i = 1;

    while (i < SERVER_PAGES - 1 && server->pages[i].path)
        i++;
    server->pages[i] = (struct page){path, content_type, page};
}

void metrics_server_close(struct metrics_server *server)
{
    if (!server)
        return;
    if (server->daemon)
        MHD_stop_daemon(server->daemon);
    close(server->fd);
    free(server);
}

const char *metrics_server_url(const struct metrics_server *server)
{
    return server->url;
}
