/*
 * A small HTTP server.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "metrics_server.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/printer.h"
#include "metrics_address.h"
#include "metrics_request.h"
#include "prometheus.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* After accept() has failed for want of descriptors or memory. */
#define ACCEPT_PAUSE_MS 200
#define ACCEPTS         64 /* in a row */

enum request_stage {
    FREE,
    READING,
    WRITING,
    DRAINING /* all is said: closing before the peer does might destroy the answer on its way */
};

struct client {
    enum request_stage stage;
    int fd;
    int64_t until_ms;
    size_t received;
    char *answer;
    size_t length;
    size_t sent;
    char request[METRICS_REQUEST_MAX];
};

struct metrics_server {
    int fd;
    int64_t accept_ms; /* not before */
    struct page {
        const char *path, *content_type;
        metrics_page_fn *print;
    } pages[SERVER_PAGES]; /* the first is /metrics; a path of NULL: no more */
    void *context;
    char url[96];
    struct client clients[SERVER_CLIENTS];
};

/* ---- answers --------------------------------------------------------------------------------- */

static const char *reason(int status)
{
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    case 505:
        return "HTTP Version Not Supported";
    default:
        return "Internal Server Error";
    }
}

static void print_answer(struct printer *answer, struct metrics_request request,
                         const char *content_type, const char *body)
{
    print(answer, "HTTP/1.1 %d %s\r\n", request.status, reason(request.status));
    print(answer, "Content-Type: %s\r\n",
          request.status == 200 ? content_type : "text/plain; charset=utf-8");
    print(answer, "Content-Length: %zu\r\n", strlen(body));
    if (request.status == 405)
        print_string(answer, "Allow: GET, HEAD\r\n");
    print_string(answer, "Connection: close\r\n\r\n");
    if (!request.is_head)
        print_string(answer, body);
}

/* The one that is asked for, or the first. */
static const struct page *find_page(const struct metrics_server *server,
                                    struct metrics_request *request)
{
    for (int i = 1; request->status == 404 && i < SERVER_PAGES; i++) {
        const struct page *page = &server->pages[i];

        if (page->path && strcmp(page->path, request->path) == 0) {
            request->status = request->is_get ? 200 : 405;
            return page;
        }
    }
    return &server->pages[0];
}

static void say_what_there_is(const struct metrics_server *server, char *text, size_t size)
{
    int length = snprintf(text, size, "There is only");

    for (int i = 0; i < SERVER_PAGES && server->pages[i].path; i++)
        length += snprintf(text + length, size - (size_t)length, "%s %s", i ? " and" : "",
                           server->pages[i].path);
    (void)snprintf(text + length, size - (size_t)length, " here.\n");
}

/* Returns false when out of memory. */
static bool make_answer(struct metrics_server *server, struct client *client,
                        struct metrics_request request)
{
    const struct page *page = find_page(server, &request);
    char *text = request.status == 200 ? page->print(server->context) : NULL;
    struct printer answer = {0};
    char there_is[128] = "";

    if (request.status == 200 && !text)
        request.status = 500;
    if (request.status == 404)
        say_what_there_is(server, there_is, sizeof(there_is));
    print_answer(&answer, request, page->content_type, text ? text : there_is);
    free(text);
    client->answer = print_end(&answer);
    client->length = client->answer ? strlen(client->answer) : 0;
    return client->answer != NULL;
}

/* ---- one client ------------------------------------------------------------------------------ */

static void end_client(struct client *client)
{
    close(client->fd);
    free(client->answer);
    client->answer = NULL;
    client->stage = FREE;
}

static bool is_passing(int code)
{
    return code == EAGAIN || code == EWOULDBLOCK || code == EINTR;
}

static void send_answer(struct client *client)
{
    const ssize_t sent = send(client->fd, client->answer + client->sent,
                              client->length - client->sent, MSG_NOSIGNAL);

    if (sent < 0) {
        if (!is_passing(errno))
            end_client(client);
        return;
    }
    client->sent += (size_t)sent;
    if (client->sent < client->length)
        return;
    if (shutdown(client->fd, SHUT_WR) < 0)
        end_client(client);
    else
        client->stage = DRAINING;
}

static void read_request(struct metrics_server *server, struct client *client)
{
    const ssize_t received = recv(client->fd, client->request + client->received,
                                  sizeof(client->request) - client->received, 0);
    struct metrics_request request;

    if (received <= 0) {
        if (received == 0 || !is_passing(errno))
            end_client(client);
        return;
    }
    client->received += (size_t)received;
    request = metrics_request_judge(client->request, client->received);
    if (!request.status)
        return;
    if (make_answer(server, client, request)) {
        client->stage = WRITING;
        send_answer(client);
    } else {
        end_client(client);
    }
}

/* What more there is of a request is not looked at. */
static void drain(struct client *client)
{
    char rest[4096];
    const ssize_t received = recv(client->fd, rest, sizeof(rest), 0);

    if (received == 0 || (received < 0 && !is_passing(errno)))
        end_client(client);
}

static void serve_client(struct metrics_server *server, struct client *client)
{
    switch (client->stage) {
    case READING:
        read_request(server, client);
        break;
    case WRITING:
        send_answer(client);
        break;
    case DRAINING:
        drain(client);
        break;
    case FREE:
        break;
    }
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* Of two clients, the one to be put out: idle ones first, and of them the one that came first. */
static bool is_idler(const struct client *a, const struct client *b)
{
    const bool a_is_served = a->stage == WRITING, b_is_served = b->stage == WRITING;

    return a_is_served != b_is_served ? b_is_served : a->until_ms < b->until_ms;
}

static struct client *make_room(struct metrics_server *server)
{
    struct client *idlest = &server->clients[0];

    for (int i = 0; i < SERVER_CLIENTS; i++) {
        struct client *client = &server->clients[i];

        if (client->stage == FREE)
            return client;
        if (is_idler(client, idlest))
            idlest = client;
    }
    end_client(idlest);
    return idlest;
}

/* Most have sent their request before they are accepted: those are answered at once. */
static void begin_client(struct metrics_server *server, int fd)
{
    struct client *client = make_room(server);

    client->stage = READING;
    client->fd = fd;
    client->until_ms = clock_ms() + CLIENT_TIME_MS;
    client->received = 0;
    client->length = 0;
    client->sent = 0;
    read_request(server, client);
}

/* A crowd is served in parts: there is a file to be written, too. */
static void accept_clients(struct metrics_server *server)
{
    for (int i = 0; i < ACCEPTS; i++) {
        const int fd = accept4(server->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            begin_client(server, fd);
            continue;
        }
        if (errno == ECONNABORTED || errno == EINTR)
            continue;
        if (!is_passing(errno))
            server->accept_ms = clock_ms() + ACCEPT_PAUSE_MS;
        return;
    }
}

int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds)
{
    const bool is_paused = server->accept_ms > clock_ms();
    int64_t until_ms = is_paused ? server->accept_ms : CLOCK_NEVER;

    fds[0] = (struct pollfd){is_paused ? -1 : server->fd, POLLIN, 0};
    for (int i = 0; i < SERVER_CLIENTS; i++) {
        const struct client *client = &server->clients[i];

        fds[1 + i] = (struct pollfd){-1, client->stage == WRITING ? POLLOUT : POLLIN, 0};
        if (client->stage == FREE)
            continue;
        fds[1 + i].fd = client->fd;
        if (client->until_ms < until_ms)
            until_ms = client->until_ms;
    }
    return until_ms;
}

void metrics_server_serve(struct metrics_server *server, const struct pollfd *fds)
{
    const int64_t now_ms = clock_ms();

    for (int i = 0; i < SERVER_CLIENTS; i++) {
        struct client *client = &server->clients[i];

        if (client->stage != FREE && fds[1 + i].revents)
            serve_client(server, client);
        if (client->stage != FREE && now_ms >= client->until_ms)
            end_client(client);
    }
    if (fds[0].revents)
        accept_clients(server);
}

/* ---- beginning and end ----------------------------------------------------------------------- */

/* The port is known only now if 0 was asked for: any. */
static void set_url(struct metrics_server *server, const struct metrics_address *address)
{
    struct sockaddr_storage name = {0};
    socklen_t length = sizeof(name);
    const bool is_ipv6 = strchr(address->host, ':') != NULL;
    int port = atoi(address->port);

    if (getsockname(server->fd, (struct sockaddr *)&name, &length) == 0)
        /* NOLINTNEXTLINE(clang-analyzer-core.CallAndMessage): getsockname() has filled it in */
        port = ntohs(is_ipv6 ? ((struct sockaddr_in6 *)&name)->sin6_port
                             : ((struct sockaddr_in *)&name)->sin_port);
    (void)snprintf(server->url, sizeof(server->url), "http://%s%s%s:%d/metrics", is_ipv6 ? "[" : "",
                   address->host, is_ipv6 ? "]" : "", port);
}

struct metrics_server *metrics_server_open(const char *where, metrics_page_fn *page, void *context,
                                           struct error *error)
{
    struct metrics_address address;
    struct metrics_server *server;

    if (!metrics_address_parse(&address, "prometheus-listen", where, error))
        return NULL;
    server = calloc(1, sizeof(*server));
    if (!server) {
        error_set(error, "out of memory");
        return NULL;
    }
    server->pages[0] = (struct page){"/metrics", PROMETHEUS_CONTENT_TYPE, page};
    server->context = context;
    server->fd = metrics_address_listen(&address, "prometheus-listen", where, error);
    if (server->fd < 0) {
        free(server);
        return NULL;
    }
    set_url(server, &address);
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
    for (int i = 0; i < SERVER_CLIENTS; i++)
        if (server->clients[i].stage != FREE)
            end_client(&server->clients[i]);
    close(server->fd);
    free(server);
}

const char *metrics_server_url(const struct metrics_server *server)
{
    return server->url;
}
