/*
 * The two ends of a connection: addresses, names, and which side this process is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "connection.h"

#include "libblkin/base/address.h"
#include "preload.h"

#include <stdio.h>
#include <string.h>

/* ---- the kernel's data of a descriptor ---- */

uint64_t connection_cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t length = sizeof(cookie);

    if (preload_is_quiet())
        return 0;
    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

/* Returns true for the address of a connection of LTTng's threads, which each process with LTTng
 * has. */
static bool connection_is_lttng(const struct sockaddr *address, socklen_t length)
{
    static const char name[] = "/lttng-ust-sock-";
    const struct sockaddr_un *at = (const struct sockaddr_un *)(const void *)address;
    const size_t head = offsetof(struct sockaddr_un, sun_path);

    return length > head && memmem(at->sun_path, length - head, name, sizeof(name) - 1);
}

bool connection_is_stream(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    if (preload_is_quiet())
        return !preload_slot(fd) ||
               __atomic_load_n(&preload_slot(fd)->connection, __ATOMIC_RELAXED) != PRELOAD_OTHER;
    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

bool connection_can_be_traced(const struct sockaddr *address, socklen_t length)
{
    if (!address || length < sizeof(address->sa_family))
        return false;
    return address->sa_family == AF_INET || address->sa_family == AF_INET6 ||
           (address->sa_family == AF_UNIX && !connection_is_lttng(address, length));
}

/* ---- addresses ---- */

static void connection_set_name(struct connection *connection, const char *what, size_t length)
{
    const char *verb = connection->role == ROLE_SERVER ? "serve " : "call ";
    int written =
        snprintf(connection->name, sizeof(connection->name), "%s%.*s", verb, (int)length, what);

    connection->name_length =
        (uint8_t)(written < (int)sizeof(connection->name) ? written
                                                          : (int)sizeof(connection->name) - 1);
}

uint16_t connection_server_port(const struct connection *connection)
{
    return connection->role == ROLE_SERVER ? connection->port : connection->peer_port;
}

static void connection_name_by_port(struct connection *connection)
{
    char text[8];
    const int length =
        snprintf(text, sizeof(text), ":%u", (unsigned)connection_server_port(connection));

    connection_set_name(connection, text, (size_t)length);
}

/* Sets the name to that of the file. An abstract address begins with @, as in ss(8). */
static void connection_name_by_path(struct connection *connection,
                                    const struct sockaddr_un *address, socklen_t length)
{
    const char *path = address->sun_path;
    const size_t room = length > offsetof(struct sockaddr_un, sun_path)
                            ? length - offsetof(struct sockaddr_un, sun_path)
                            : 0;
    const char *slash;
    char text[sizeof(address->sun_path) + 1];

    if (room > 1 && !path[0]) {
        text[0] = '@';
        memcpy(text + 1, path + 1, room - 1);
        connection_set_name(connection, text, room);
        return;
    }
    slash = room ? memrchr(path, '/', strnlen(path, room)) : NULL;
    if (slash)
        connection_set_name(connection, slash + 1,
                            strnlen(slash + 1, room - (size_t)(slash + 1 - path)));
    else
        connection_set_name(connection, room ? path : "unix", room ? strnlen(path, room) : 4);
}

/* ---- the side of a connection ---- */

bool connection_is_ephemeral(uint16_t port)
{
    static unsigned first, last; /* the same for all threads */
    unsigned low = 32768, high = 60999;
    char text[32];

    if (!__atomic_load_n(&last, __ATOMIC_ACQUIRE)) {
        if (preload_read_file("/proc/sys/net/ipv4/ip_local_port_range", text, sizeof(text)) > 0)
            (void)sscanf(text, "%u %u", &low, &high);
        __atomic_store_n(&first, low, __ATOMIC_RELAXED);
        __atomic_store_n(&last, high, __ATOMIC_RELEASE);
    }
    return port >= __atomic_load_n(&first, __ATOMIC_RELAXED) &&
           port <= __atomic_load_n(&last, __ATOMIC_RELAXED);
}

/* An accepted socket has the name of the listening socket; a client's socket has none. */
static enum role connection_role_of_unix(socklen_t own_length, socklen_t peer_length)
{
    const bool is_named = own_length > offsetof(struct sockaddr_un, sun_path);
    const bool is_peer_named = peer_length > offsetof(struct sockaddr_un, sun_path);

    if (is_named == is_peer_named)
        return ROLE_NONE;
    return is_named ? ROLE_SERVER : ROLE_CLIENT;
}

static enum role connection_role_by_ports(const struct connection *connection)
{
    const bool is_own_ephemeral = connection_is_ephemeral(connection->port);

    if (is_own_ephemeral == connection_is_ephemeral(connection->peer_port))
        return ROLE_NONE;
    return is_own_ephemeral ? ROLE_CLIENT : ROLE_SERVER;
}

struct connection_ends {
    struct sockaddr_storage own, peer;
    socklen_t own_length, peer_length;
};

/* The client's end of an accepted UNIX socket has no name, so the function does not ask for it. */
static bool connection_find_ends(int fd, enum role role, struct connection_ends *ends)
{
    ends->own_length = ends->peer_length = sizeof(ends->own);
    if (getsockname(fd, (struct sockaddr *)&ends->own, &ends->own_length) != 0)
        return false;
    if (ends->own.ss_family == AF_UNIX && role == ROLE_SERVER)
        return true;
    return getpeername(fd, (struct sockaddr *)&ends->peer, &ends->peer_length) == 0 &&
           ends->own.ss_family == ends->peer.ss_family;
}

static void connection_set_prepared(struct connection *connection)
{
    __atomic_store_n(&connection->is_prepared, true, __ATOMIC_RELEASE);
}

void connection_fill_unix(struct connection *connection, const struct sockaddr_un *listener,
                          socklen_t length)
{
    connection->is_unix = true;
    if (connection->role == ROLE_CLIENT && connection_is_lttng((const void *)listener, length))
        connection->role = ROLE_NONE;
    connection_name_by_path(connection, listener, length);
    connection_set_prepared(connection);
}

/* Asks the kernel for the type only where it is unknown: a client's type was checked in connect(2),
 * and an accepted internet socket is a stream. */
static bool connection_is_untraceable(const struct connection *connection, int fd,
                                      const struct connection_ends *ends)
{
    return !connection_can_be_traced((const struct sockaddr *)&ends->own, ends->own_length) ||
           ((connection->role == ROLE_NONE || ends->own.ss_family == AF_UNIX) &&
            !connection_is_stream(fd));
}

bool connection_prepare(struct connection *connection, int fd)
{
    struct connection_ends ends;
    const bool is_adopted = connection->role == ROLE_NONE;

    if (!connection_find_ends(fd, (enum role)connection->role, &ends))
        return false;
    if (connection_is_untraceable(connection, fd, &ends)) {
        connection->role = ROLE_NONE;
    } else if (ends.own.ss_family == AF_UNIX) {
        bool is_peers;

        if (is_adopted)
            connection->role = (uint8_t)connection_role_of_unix(ends.own_length, ends.peer_length);
        is_peers = connection->role == ROLE_CLIENT;
        connection_fill_unix(connection, (const void *)(is_peers ? &ends.peer : &ends.own),
                             is_peers ? ends.peer_length : ends.own_length);
        return true;
    } else {
        connection->port = blkin_address_text(&ends.own, ends.own_length, connection->ip);
        connection->peer_port =
            blkin_address_text(&ends.peer, ends.peer_length, connection->peer_ip);
        if (is_adopted)
            connection->role = (uint8_t)connection_role_by_ports(connection);
        connection_name_by_port(connection);
    }
    connection_set_prepared(connection);
    return true;
}

/* ---- a quiet process ---- */

#define QUIET_LISTENERS 32

static struct quiet_listener {
    int fd;
    socklen_t length;
    struct sockaddr_storage address;
} connection_listeners[QUIET_LISTENERS];
static unsigned connection_listener_count;

static const struct quiet_listener *connection_find_listener(int fd)
{
    for (unsigned i = 0; i < connection_listener_count; i++) {
        if (connection_listeners[i].fd == fd)
            return &connection_listeners[i];
    }
    return NULL;
}

static bool connection_is_wildcard(const char *ip)
{
    return strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0;
}

void connection_fill_quietly(struct connection *connection, int listener,
                             const struct sockaddr *peer, socklen_t length)
{
    const struct quiet_listener *at = connection_find_listener(listener);
    const struct sockaddr *own = at ? (const struct sockaddr *)&at->address : NULL;
    const struct sockaddr *named = connection->role == ROLE_SERVER ? own : peer;
    const socklen_t named_length = connection->role != ROLE_SERVER ? length : at ? at->length : 0;

    if (named && named->sa_family == AF_UNIX) {
        connection->is_unix = true;
        connection_name_by_path(connection, (const void *)named, named_length);
        connection->may_have_key = false;
    } else {
        connection->peer_port = blkin_address_text(peer, length, connection->peer_ip);
        connection->port = blkin_address_text(own, at ? at->length : 0, connection->ip);
        connection->may_have_key =
            connection->peer_ip[0] && connection->ip[0] && !connection_is_wildcard(connection->ip);
        connection_name_by_port(connection);
    }
    connection_set_prepared(connection);
}

bool connection_note_listener(int fd)
{
    struct quiet_listener *listener = &connection_listeners[connection_listener_count];
    int listens = 0;
    socklen_t length = sizeof(listens);

    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) != 0)
        return false;
    if (listens && connection_listener_count < QUIET_LISTENERS) {
        listener->fd = fd;
        listener->length = sizeof(listener->address);
        if (getsockname(fd, (struct sockaddr *)&listener->address, &listener->length) == 0)
            connection_listener_count++;
    }
    return true;
}
