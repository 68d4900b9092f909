/*
 * A proxy of one thread: proxy ADDRESS UPSTREAM POOL|0 CONNECTIONS
 *
 * Passes each request on over one of POOL connections, or over a new one (0). If all connections
 * are in use, the request waits. The proxy ends after CONNECTIONS connections of clients.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "wire.h"

#include <fcntl.h>
#include <sys/epoll.h>

#define IN_MAX 64

struct proxy_client {
    int fd;
    int upstream; /* -1: none */
    char request[LINE + IN_MAX];
    size_t length;
    unsigned in, out; /* bytes after the line, and bytes of the response that are missing */
};

static struct proxy_client clients[65536];
static int of_upstream[65536]; /* the client of a descriptor, or -1 */
static int idle[4096];
static unsigned idle_count;
static struct proxy_client *queue[4096];
static unsigned queue_first, queue_end;
static const char *upstream_address;
static bool is_pooled;
static int epoll_fd, left;

static void watch(int fd, uint32_t events, int operation)
{
    struct epoll_event event = {.events = events, .data.fd = fd};

    if (epoll_ctl(epoll_fd, operation, fd, &event) < 0)
        err(1, "epoll_ctl");
}

static void pass_on(struct proxy_client *client)
{
    of_upstream[client->upstream] = client->fd;
    give_all(0, client->upstream, client->request, LINE + client->in);
    watch(client->upstream, EPOLLIN, EPOLL_CTL_MOD);
}

/* Finds a connection for the request. A new connection gets the request in a later round, when it
 * is connected. */
static void find_upstream(struct proxy_client *client)
{
    if (!is_pooled) {
        client->upstream = connect_to(upstream_address, SOCK_NONBLOCK);
        of_upstream[client->upstream] = client->fd;
        watch(client->upstream, EPOLLOUT, EPOLL_CTL_ADD);
    } else if (idle_count) {
        client->upstream = idle[--idle_count];
        pass_on(client);
    } else {
        queue[queue_end++ % 4096] = client;
    }
}

static void free_upstream(int fd)
{
    of_upstream[fd] = -1;
    if (!is_pooled) {
        close(fd);
        return;
    }
    idle[idle_count++] = fd;
    if (queue_first != queue_end) {
        struct proxy_client *next = queue[queue_first++ % 4096];

        next->upstream = idle[--idle_count];
        pass_on(next);
    }
}

static void from_upstream(int fd)
{
    static char bytes[65536];
    struct proxy_client *client = &clients[of_upstream[fd]];
    const ssize_t count = recv(fd, bytes, sizeof(bytes), 0);

    if (count < 0 && errno == EAGAIN)
        return;
    if (count <= 0)
        err(1, "upstream");
    give_all(1, client->fd, bytes, (size_t)count);
    client->out -= (unsigned)count;
    if (!client->out) {
        client->upstream = -1;
        free_upstream(fd);
    }
}

static void from_client(struct proxy_client *client)
{
    const size_t wanted = client->length < LINE ? LINE : LINE + client->in;
    const ssize_t count =
        recv(client->fd, client->request + client->length, wanted - client->length, 0);

    if (count < 0 && errno == EAGAIN)
        return;
    if (count <= 0) {
        close(client->fd);
        left--;
        return;
    }
    client->length += (size_t)count;
    if (client->length == LINE) {
        line_read(client->request, &client->in, &client->out);
        if (client->in > IN_MAX)
            exit(2);
    }
    if (client->length < LINE || client->length < LINE + client->in)
        return;
    client->length = 0;
    find_upstream(client);
}

int main(int argc, char **argv)
{
    struct epoll_event events[64];
    int listener;

    if (argc != 5)
        return 2;
    upstream_address = argv[2];
    is_pooled = atoi(argv[3]) > 0;
    left = atoi(argv[4]);
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    memset(of_upstream, -1, sizeof(of_upstream));
    for (int i = 0; i < atoi(argv[3]); i++) {
        const int fd = connect_to(upstream_address, 0);

        idle[idle_count++] = fd;
        watch(fd, EPOLLIN, EPOLL_CTL_ADD);
    }
    listener = listen_at(argv[1]);
    fcntl(listener, F_SETFL, O_NONBLOCK);
    watch(listener, EPOLLIN, EPOLL_CTL_ADD);
    while (left > 0) {
        const int count = epoll_wait(epoll_fd, events, 64, -1);

        for (int i = 0; i < count; i++) {
            const int fd = events[i].data.fd;

            if (fd == listener) {
                const int new = accept4(listener, NULL, NULL, SOCK_CLOEXEC);

                if (new >= 0) {
                    clients[new] = (struct proxy_client){.fd = new, .upstream = -1};
                    watch(new, EPOLLIN, EPOLL_CTL_ADD);
                }
            } else if (of_upstream[fd] < 0) {
                from_client(&clients[fd]);
            } else if (events[i].events & EPOLLOUT && !(events[i].events & EPOLLIN)) {
                clients[of_upstream[fd]].upstream = fd;
                pass_on(&clients[of_upstream[fd]]);
            } else {
                from_upstream(fd);
            }
        }
    }
    return 0;
}
