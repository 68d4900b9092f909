/* SPDX-License-Identifier: BSD-2-Clause */
#define _GNU_SOURCE
#include "net.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/time.h>
#include <unistd.h>

#define SEND_TIMEOUT_S 5 /* of a server whose client does not read its replies */

struct connection {
    struct connection *next;
    struct server *server;
    int fd;
};

struct server {
    void (*serve)(int fd, void *arg);
    void *arg;
    pthread_mutex_t lock; /* of first */
    pthread_cond_t ended; /* a connection was removed */
    struct connection *first;
};

/* Sets the texts from the socket address. */
static void describe(struct net_address *address)
{
    if (address->sock.any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &address->sock.v6.sin6_addr, address->ip, sizeof(address->ip));
        address->port = ntohs(address->sock.v6.sin6_port);
    } else {
        inet_ntop(AF_INET, &address->sock.v4.sin_addr, address->ip, sizeof(address->ip));
        address->port = ntohs(address->sock.v4.sin_port);
    }
}

/* Splits "HOST:PORT". Returns false if the text has another form. */
static bool split(const char *host_port, char *host, size_t host_size, const char **port)
{
    const char *colon = strrchr(host_port, ':');
    size_t length = colon ? (size_t)(colon - host_port) : 0;

    if (length >= 2 && host_port[0] == '[' && host_port[length - 1] == ']') {
        host_port++;
        length -= 2;
    }
    if (length == 0 || length >= host_size)
        return false;
    memcpy(host, host_port, length);
    host[length] = '\0';
    *port = colon + 1;
    length = strlen(*port);
    return length > 0 && length <= 5 && strspn(*port, "0123456789") == length &&
           atoi(*port) <= UINT16_MAX;
}

int net_resolve(const char *host_port, struct net_address *address)
{
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    struct addrinfo *found;
    char host[256];
    const char *port;
    int rc;

    if (!split(host_port, host, sizeof(host), &port)) {
        fprintf(stderr,
                "%s: bad address '%s': expected HOST:PORT or [IPV6]:PORT, port 0 to 65535\n",
                program_invocation_short_name, host_port);
        return -EINVAL;
    }
    rc = getaddrinfo(host, port, &want, &found);
    if (rc != 0) {
        fprintf(stderr, "%s: bad address '%s': %s\n", program_invocation_short_name, host_port,
                gai_strerror(rc));
        return -EINVAL;
    }
    memset(address, 0, sizeof(*address));
    memcpy(&address->sock, found->ai_addr, found->ai_addrlen);
    address->sock_length = found->ai_addrlen;
    freeaddrinfo(found);
    describe(address);
    return 0;
}

static int own_address(int fd, struct net_address *address)
{
    memset(address, 0, sizeof(*address));
    address->sock_length = sizeof(address->sock);
    if (getsockname(fd, &address->sock.any, &address->sock_length) < 0)
        return -errno;
    describe(address);
    return 0;
}

static int close_and_return(int fd, int rc)
{
    close(fd);
    return rc;
}

static int listen_on(struct net_address *address)
{
    const int on = 1;
    int fd = socket(address->sock.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    int rc;

    if (fd < 0)
        return -errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (bind(fd, &address->sock.any, address->sock_length) < 0 || listen(fd, SOMAXCONN) < 0)
        return close_and_return(fd, -errno);
    rc = own_address(fd, address);
    return rc < 0 ? close_and_return(fd, rc) : fd;
}

int net_open(const char *host_port, struct net_address *address)
{
    int fd = net_resolve(host_port, address);

    if (fd < 0)
        return fd;
    fd = listen_on(address);
    if (fd < 0)
        fprintf(stderr, "%s: cannot listen on %s: %s\n", program_invocation_short_name, host_port,
                strerror(-fd));
    return fd;
}

int net_connect(const struct net_address *peer, int timeout_s, struct net_address *local)
{
    const struct timeval timeout = {.tv_sec = timeout_s};
    const int on = 1;
    int fd = socket(peer->sock.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int rc = 0;

    if (fd < 0)
        return -errno;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout)); /* connect() too */
    if (connect(fd, &peer->sock.any, peer->sock_length) < 0)
        rc = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
    else if (local)
        rc = own_address(fd, local);
    return rc < 0 ? close_and_return(fd, rc) : fd;
}

/* Ends the sending, and drops unread data: with unread data, close() would reset the connection,
 * and the last reply would be lost. */
static void hang_up(int fd)
{
    const struct timeval timeout = {.tv_sec = 1};
    char dropped[16384];
    size_t limit = 16 << 20;
    ssize_t got;

    shutdown(fd, SHUT_WR);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    while (limit > 0 && (got = recv(fd, dropped, sizeof(dropped), 0)) > 0)
        limit -= limit < (size_t)got ? limit : (size_t)got;
}

static void *connection_thread(void *arg)
{
    struct connection *connection = arg;
    struct server *server = connection->server;
    struct connection **link = &server->first;

    server->serve(connection->fd, server->arg);
    hang_up(connection->fd);

    pthread_mutex_lock(&server->lock);
    while (*link != connection)
        link = &(*link)->next;
    *link = connection->next;
    close(connection->fd); /* under the lock, so that stop() uses no closed descriptor */
    pthread_cond_signal(&server->ended);
    pthread_mutex_unlock(&server->lock);
    free(connection);
    return NULL;
}

static void start(struct server *server, int fd)
{
    const struct timeval timeout = {.tv_sec = SEND_TIMEOUT_S};
    const int on = 1;
    struct connection *connection = malloc(sizeof(*connection));
    pthread_t thread;
    int rc = ENOMEM;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof(timeout));
    pthread_mutex_lock(&server->lock);
    if (connection) {
        *connection = (struct connection){.next = server->first, .server = server, .fd = fd};
        rc = pthread_create(&thread, NULL, connection_thread, connection);
    }
    if (rc == 0) {
        server->first = connection;
        pthread_detach(thread);
    } else {
        fprintf(stderr, "%s: connection refused: no thread for it: %s\n",
                program_invocation_short_name, strerror(rc));
        close(fd);
        free(connection);
    }
    pthread_mutex_unlock(&server->lock);
}

/* Accepts no new requests. Each thread sees the end of its connection, and ends. */
static void stop(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    for (struct connection *c = server->first; c; c = c->next)
        shutdown(c->fd, SHUT_RD);
    while (server->first)
        pthread_cond_wait(&server->ended, &server->lock);
    pthread_mutex_unlock(&server->lock);
}

int net_serve(int listener, const char *name, const struct net_address *address,
              void (*serve)(int fd, void *arg), void *arg)
{
    struct server server = {
        .serve = serve,
        .arg = arg,
        .lock = PTHREAD_MUTEX_INITIALIZER,
        .ended = PTHREAD_COND_INITIALIZER,
    };
    struct pollfd wait[2] = {{.fd = listener, .events = POLLIN}, {.fd = -1, .events = POLLIN}};
    const bool v6 = address->sock.any.sa_family == AF_INET6;
    sigset_t signals;

    signal(SIGPIPE, SIG_IGN);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL); /* new threads inherit the mask */
    wait[1].fd = signalfd(-1, &signals, SFD_CLOEXEC);
    if (wait[1].fd < 0)
        return close_and_return(listener, -errno);

    printf(v6 ? "%s listening on [%s]:%u\n" : "%s listening on %s:%u\n", name, address->ip,
           address->port);
    fflush(stdout);
    while (!(wait[1].revents & POLLIN)) {
        if (poll(wait, 2, -1) < 0 || !(wait[0].revents & POLLIN))
            continue;
        int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0) {
            start(&server, fd);
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            fprintf(stderr, "%s: cannot accept a connection: %s\n", name, strerror(errno));
            poll(&wait[1], 1, 100); /* meanwhile, other descriptors may be closed */
        }
    }
    close(listener);
    stop(&server);
    return close_and_return(wait[1].fd, 0);
}
