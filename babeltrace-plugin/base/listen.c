/*
 * Parses an address, listens there, and limits the number and the time of connections.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "listen.h"

#include "monotonic.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BACKLOG 64

/* ---- parsing --------------------------------------------------------------------------------- */

static bool copy(char *to, size_t size, const char *from, size_t length)
{
    if (length == 0 || length >= size)
        return false;
    memcpy(to, from, length);
    to[length] = '\0';
    return true;
}

static bool is_port(const char *text)
{
    const size_t digits = strspn(text, "0123456789");

    return digits > 0 && digits <= 5 && text[digits] == '\0' && atoi(text) <= 65535;
}

static bool is_address(const char *host)
{
    unsigned char address[sizeof(struct in6_addr)];

    return inet_pton(strchr(host, ':') ? AF_INET6 : AF_INET, host, address) == 1;
}

static bool listen_split(struct listen_address *address, const char *text)
{
    const char *colon = strrchr(text, ':');
    const char *port = colon ? colon + 1 : text;
    const char *host = colon ? text : "127.0.0.1";
    size_t length = colon ? (size_t)(colon - text) : strlen(host);
    const bool in_brackets = colon && length >= 2 && host[0] == '[' && host[length - 1] == ']';

    if (in_brackets) {
        host++;
        length -= 2;
    }
    return copy(address->host, sizeof(address->host), host, length) &&
           copy(address->port, sizeof(address->port), port, strlen(port)) &&
           is_port(address->port) && is_address(address->host) &&
           in_brackets == (strchr(address->host, ':') != NULL);
}

bool listen_parse(struct listen_address *address, const char *key, const char *text,
                  struct error *error)
{
    if (listen_split(address, text))
        return true;
    return error_set(error,
                     "%s \"%s\": expected PORT, IPV4-ADDRESS:PORT or [IPV6-ADDRESS]:PORT, such as "
                     "\"9464\" or \"[::1]:9464\"",
                     key, text);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Returns -1 with errno set. */
static int listen_at(const struct addrinfo *info)
{
    const int fd = socket(info->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    const int yes = 1;
    int saved;

    if (fd < 0)
        return -1;
    /* allows the port of a run that has just ended; a port with a listener still fails */
    (void)setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &yes, sizeof(yes));
    if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
        return fd;
    saved = errno;
    close(fd);
    errno = saved;
    return -1;
}

static const char *advice(int code)
{
    switch (code) {
    case EADDRINUSE:
        return ": another program has this port: choose another one";
    case EADDRNOTAVAIL:
        return ": this machine has no such address";
    case EACCES:
        return ": only root may use ports below 1024: choose another one";
    default:
        return "";
    }
}

int listen_open(const struct listen_address *address, const char *key, const char *text,
                struct error *error)
{
    const struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV | AI_PASSIVE,
                                   .ai_socktype = SOCK_STREAM};
    struct addrinfo *info = NULL;
    const int code = getaddrinfo(address->host, address->port, &hints, &info);
    int fd;

    if (code != 0) {
        error_set(error, "%s \"%s\": %s", key, text, gai_strerror(code));
        return -1;
    }
    fd = listen_at(info);
    freeaddrinfo(info);
    if (fd < 0)
        error_set(error, "%s \"%s\": cannot listen: %s%s", key, text, strerror(errno),
                  advice(errno));
    return fd;
}

void listen_url(const struct listen_address *address, int fd, const char *scheme,
                char url[LISTEN_URL_MAX])
{
    const bool is_six = strchr(address->host, ':') != NULL;
    union peer_address bound = {.six = {0}};
    socklen_t length = sizeof(bound);
    unsigned port = 0;

    if (getsockname(fd, &bound.any, &length) == 0)
        port = ntohs(is_six ? bound.six.sin6_port : bound.four.sin_port);
    (void)snprintf(url, LISTEN_URL_MAX, "%s://%s%s%s:%u", scheme, is_six ? "[" : "", address->host,
                   is_six ? "]" : "", port);
}

/* ---- connections ----------------------------------------------------------------------------- */

int listener_accept(struct listener *listener, union peer_address *from, socklen_t *length)
{
    int fd;

    if (listener->until_ms > clock_ms())
        return -1;
    listener->until_ms = 0;
    *length = sizeof(*from);
    do
        fd = accept4(listener->fd, &from->any, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0 && errno != EAGAIN)
        listener->until_ms = clock_ms() + LISTENER_BACKOFF_MS;
    return fd;
}

void peers_begin(struct listener_peers *peers)
{
    peers->count = 0;
    CDS_INIT_LIST_HEAD(&peers->list);
}

static void peers_hang_up(struct listener_peers *peers, struct listener_peer *peer)
{
    peer->is_leaving = true;
    peers->count--;
    if (peer->sender) {
        peer->sender->connections--;
        peer->sender->leaving++;
    }
    peers->hang_up(peer);
}

bool peers_make_room(struct listener_peers *peers, const struct listener_sender *sender)
{
    const struct listener_sender *from = sender;
    struct listener_peer *peer, *oldest = NULL;

    if (peers->count < peers->most)
        return true;
    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        if (peer->sender && peer->sender->connections > from->connections + (from == sender))
            from = peer->sender;
    }
    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        if (peer->sender == from && !peer->is_leaving &&
            (!oldest || (oldest->is_busy && !peer->is_busy)))
            oldest = peer;
    }
    if (!oldest || (oldest->is_busy && peers->spares_busy && from == sender))
        return false;
    peers_hang_up(peers, oldest);
    return true;
}

void peers_add(struct listener_peers *peers, struct listener_peer *peer, int fd,
               struct listener_sender *sender)
{
    *peer = (struct listener_peer){.fd = fd, .sender = sender, .since_ms = clock_ms()};
    cds_list_add_tail(&peer->in_list, &peers->list);
    peers->count++;
    if (sender)
        sender->connections++;
}

void peers_remove(struct listener_peers *peers, struct listener_peer *peer)
{
    peers->count -= !peer->is_leaving;
    if (peer->sender) {
        peer->sender->connections -= !peer->is_leaving;
        peer->sender->leaving -= peer->is_leaving;
    }
    cds_list_del(&peer->in_list);
}

void peer_touch(struct listener_peers *peers, struct listener_peer *peer)
{
    peer->since_ms = clock_ms();
    cds_list_del(&peer->in_list);
    cds_list_add_tail(&peer->in_list, &peers->list);
}

int64_t peers_end_late(struct listener_peers *peers)
{
    const int64_t now_ms = clock_ms();
    struct listener_peer *peer, *next;

    cds_list_for_each_entry_safe(peer, next, &peers->list, in_list)
    {
        if (peer->is_leaving || (!peer->is_busy && peers->spares_idle))
            continue;
        if (peer->since_ms + peers->time_ms > now_ms)
            return peer->since_ms + peers->time_ms;
        peers_hang_up(peers, peer);
    }
    return CLOCK_NEVER;
}
