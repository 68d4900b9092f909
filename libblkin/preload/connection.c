/*
 * What is known of connections.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "connection.h"

#include "preload.h"
#include "thread.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#ifndef SO_COOKIE
#define SO_COOKIE 57
#endif

static struct pool connection_pool = {.size = sizeof(struct connection)};

/* The calling thread's requests that nobody has looked at; its address names the thread. */
static __thread struct {
    uint32_t at;       /* connections before this one have none of this thread */
    uint64_t until_ns; /* when the other ones are stale; 0: not known yet */
} connection_unseen __attribute__((tls_model("initial-exec")));

/* ---- references ---- */

static inline bool connection_is_connection(uintptr_t word)
{
    return word > PRELOAD_OTHER;
}

struct connection *connection_of(const struct preload_slot *slot, uint32_t generation)
{
    const uintptr_t word = slot ? __atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) : 0;
    struct connection *connection = (struct connection *)word;

    if (!connection_is_connection(word) ||
        !pool_try(&connection->item, generation ? generation : pool_generation(&connection->item)))
        return NULL;
    if (__atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) == word)
        return connection;
    connection_let_go(connection); /* closed meanwhile */
    return NULL;
}

void connection_let_go(struct connection *connection)
{
    if (pool_let_go(&connection->item))
        pool_give(&connection_pool, connection);
}

/* ---- descriptors come and go ---- */

/* Puts a connection, whose reference becomes the slot's, or another word in place of what is there.
 */
static void connection_set_slot(struct preload_slot *slot, uintptr_t word)
{
    const uintptr_t before = __atomic_exchange_n(&slot->connection, word, __ATOMIC_ACQ_REL);
    struct connection *connection = (struct connection *)before;

    __atomic_store_n(&slot->file, 0, __ATOMIC_RELAXED);
    if (!connection_is_connection(before))
        return;
    if (__atomic_sub_fetch(&connection->slots, 1, __ATOMIC_ACQ_REL) == 0)
        preload_hooks()->connection_ends(connection);
    connection_let_go(connection);
}

static uint64_t connection_cookie_of(int fd)
{
    uint64_t cookie = 0;
    socklen_t length = sizeof(cookie);

    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &length) == 0 ? cookie : 0;
}

static struct connection *connection_take(int fd, enum role role)
{
    struct preload_slot *slot = preload_slot_make(fd);
    struct connection *connection = slot ? pool_take(&connection_pool) : NULL;

    if (!connection) {
        if (slot)
            connection_set_slot(slot, PRELOAD_UNKNOWN);
        return NULL;
    }
    __atomic_store_n(&connection->direction, (uint8_t)DIRECTION_NONE, __ATOMIC_RELAXED);
    __atomic_store_n(&connection->reader, 0, __ATOMIC_RELAXED);
    memset(&connection->role, 0, sizeof(*connection) - offsetof(struct connection, role));
    connection->role = (uint8_t)role;
    connection->slots = 1;
    connection->forks = preload_forks;
    connection->cookie = connection_cookie_of(fd);
    pool_publish(&connection->item);
    connection_set_slot(slot, (uintptr_t)connection);
    return connection;
}

void connection_accepted(int fd)
{
    const int saved_errno = errno;
    struct connection *connection = connection_take(fd, ROLE_SERVER);

    if (connection)
        connection->is_whole = true;
    errno = saved_errno;
}

/* LTTng's own, of the threads that it has in every traced process. */
static bool connection_is_lttng(const struct sockaddr *address, socklen_t length)
{
    static const char name[] = "/lttng-ust-sock-";
    const struct sockaddr_un *at = (const struct sockaddr_un *)(const void *)address;
    const size_t head = offsetof(struct sockaddr_un, sun_path);

    return length > head && memmem(at->sun_path, length - head, name, sizeof(name) - 1);
}

static bool connection_is_stream(int fd)
{
    int type = 0;
    socklen_t length = sizeof(type);

    return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

static bool connection_can_be_traced(const struct sockaddr *address, socklen_t length)
{
    if (!address || length < sizeof(address->sa_family))
        return false;
    return address->sa_family == AF_INET || address->sa_family == AF_INET6 ||
           (address->sa_family == AF_UNIX && !connection_is_lttng(address, length));
}

bool connection_connecting(int fd, const struct sockaddr *address, socklen_t length)
{
    const int saved_errno = errno;
    struct preload_slot *slot = preload_slot(fd);
    struct connection *connection = connection_of(slot, 0);
    bool is_new = false;

    /* asked again how a non-blocking connect goes on */
    if (connection && connection->role == ROLE_CLIENT && connection->is_fresh) {
        connection_let_go(connection);
        errno = saved_errno;
        return false;
    }
    if (connection)
        connection_let_go(connection);
    if (connection_is_stream(fd)) {
        if (connection_can_be_traced(address, length)) {
            connection = connection_take(fd, ROLE_CLIENT);
            is_new = connection != NULL;
        } else if ((slot = preload_slot_make(fd))) {
            connection_set_slot(slot, PRELOAD_OTHER);
        }
    }
    if (is_new)
        connection->is_whole = connection->is_fresh = true;
    errno = saved_errno;
    return is_new;
}

void connection_forget(int fd)
{
    struct preload_slot *slot = preload_slot(fd);

    if (preload_is_known(slot) && preload_is_own_process())
        connection_set_slot(slot, PRELOAD_UNKNOWN);
}

void connection_fd_is_new(int fd)
{
    if (fd >= 0 && !preload_is_off()) {
        const int saved_errno = preload_enter();

        connection_forget(fd);
        preload_leave(saved_errno);
    }
}

void connection_shared(int fd)
{
    struct connection *connection = connection_of(preload_slot(fd), 0);

    if (!connection)
        return;
    connection->is_whole = false;
    connection->key = 0;
    connection->place = 0;
    connection_let_go(connection);
}

void connection_forget_range(unsigned first, unsigned last)
{
    for (uint64_t fd = first; fd <= last && fd < (uint64_t)PRELOAD_LEAF * PRELOAD_LEAVES; fd++) {
        if (preload_slot((int)fd))
            connection_forget((int)fd);
        else
            fd |= PRELOAD_LEAF - 1; /* the rest of a leaf that is not there */
    }
}

void connection_duplicated(int from, int to)
{
    struct connection *connection = connection_of(preload_slot(from), 0);
    struct preload_slot *slot;

    if (!connection) {
        connection_forget(to);
        return;
    }
    slot = preload_slot_make(to);
    if (!slot) {
        connection_let_go(connection);
        return;
    }
    (void)__atomic_add_fetch(&connection->slots, 1, __ATOMIC_ACQ_REL);
    connection_set_slot(slot, (uintptr_t)connection);
}

/* ---- addresses ---- */

static void connection_take_ip(const struct sockaddr_storage *address, char ip[INET6_ADDRSTRLEN],
                               uint16_t *port)
{
    const struct sockaddr_in *v4 = (const void *)address;
    const struct sockaddr_in6 *v6 = (const void *)address;

    if (address->ss_family == AF_INET) {
        (void)inet_ntop(AF_INET, &v4->sin_addr, ip, INET6_ADDRSTRLEN);
        *port = ntohs(v4->sin_port);
    } else {
        if (IN6_IS_ADDR_V4MAPPED(&v6->sin6_addr))
            (void)inet_ntop(AF_INET, &v6->sin6_addr.s6_addr[12], ip, INET6_ADDRSTRLEN);
        else
            (void)inet_ntop(AF_INET6, &v6->sin6_addr, ip, INET6_ADDRSTRLEN);
        *port = ntohs(v6->sin6_port);
    }
}

static void connection_set_name(struct connection *connection, const char *what, size_t length)
{
    const char *verb = connection->role == ROLE_SERVER ? "serve " : "call ";
    int written =
        snprintf(connection->name, sizeof(connection->name), "%s%.*s", verb, (int)length, what);

    connection->name_length =
        (uint8_t)(written < (int)sizeof(connection->name) ? written
                                                          : (int)sizeof(connection->name) - 1);
}

static uint16_t connection_server_port(const struct connection *connection)
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

/* The file's name; an abstract one begins with an @, as ss(8) shows it. */
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

/* ---- which side is it? ---- */

/* Ports that the kernel gives to who connects. */
static bool connection_is_ephemeral(uint16_t port)
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

/* Who accepts has the name of the socket that listens; who connects has none of its own. */
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
    const bool is_own = connection_is_ephemeral(connection->port);

    if (is_own == connection_is_ephemeral(connection->peer_port))
        return ROLE_NONE;
    return is_own ? ROLE_CLIENT : ROLE_SERVER;
}

struct connection_sides {
    struct sockaddr_storage own, peer;
    socklen_t own_length, peer_length;
};

static bool connection_find_ends(int fd, struct connection_sides *ends)
{
    ends->own_length = ends->peer_length = sizeof(ends->own);
    return getsockname(fd, (struct sockaddr *)&ends->own, &ends->own_length) == 0 &&
           getpeername(fd, (struct sockaddr *)&ends->peer, &ends->peer_length) == 0 &&
           ends->own.ss_family == ends->peer.ss_family;
}

/* Fills in what a connected socket's addresses say. False: it is not connected (any more). */
static bool connection_prepare(struct connection *connection, int fd)
{
    struct connection_sides ends;
    const struct sockaddr *own = (const struct sockaddr *)&ends.own;
    const bool is_adopted = connection->role == ROLE_NONE;

    if (!connection_find_ends(fd, &ends))
        return false;
    if (!connection_is_stream(fd) || !connection_can_be_traced(own, ends.own_length)) {
        connection->role = ROLE_NONE;
    } else if (own->sa_family == AF_UNIX) {
        bool is_peers;

        if (is_adopted)
            connection->role = (uint8_t)connection_role_of_unix(ends.own_length, ends.peer_length);
        is_peers = connection->role == ROLE_CLIENT;
        connection->is_unix = true;
        if (is_peers && connection_is_lttng((const struct sockaddr *)&ends.peer, ends.peer_length))
            connection->role = ROLE_NONE;
        connection_name_by_path(connection, (const void *)(is_peers ? &ends.peer : &ends.own),
                                is_peers ? ends.peer_length : ends.own_length);
    } else {
        connection_take_ip(&ends.own, connection->ip, &connection->port);
        connection_take_ip(&ends.peer, connection->peer_ip, &connection->peer_port);
        if (is_adopted)
            connection->role = (uint8_t)connection_role_by_ports(connection);
        connection_name_by_port(connection);
    }
    __atomic_store_n(&connection->is_prepared, true, __ATOMIC_RELEASE);
    return true;
}

/* ---- use ---- */

/* A socket that is of no interest is not looked at again; what is no socket may be a file. */
void connection_adopt(int fd)
{
    const int saved_errno = errno;
    struct preload_slot *slot;
    struct connection *connection;
    int listens = 0;
    socklen_t length = sizeof(listens);

    if (!(slot = preload_slot_make(fd)))
        return;
    if (getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) < 0) {
        __atomic_store_n(&slot->connection, PRELOAD_NO_SOCKET, __ATOMIC_RELAXED);
    } else if (listens || !(connection = connection_take(fd, ROLE_NONE)) ||
               !connection_prepare(connection, fd) || connection->role == ROLE_NONE) {
        connection_set_slot(slot, PRELOAD_OTHER);
    }
    errno = saved_errno;
}

/* UNIX sockets have no port: they are traced if no port is asked for. */
static void connection_check(struct connection *connection, const struct preload_config *config)
{
    connection->is_traced =
        connection->role != ROLE_NONE &&
        (connection->is_unix ? config->range_count == 0
                             : preload_config_has_port(config, connection_server_port(connection)));
    connection->checked_by = config->generation;
}

/* Somebody closed the descriptor without a wrapper: looks at the descriptor again. */
static void connection_replaced(int fd, const struct connection *connection)
{
    struct preload_slot *slot = preload_slot(fd);

    if (slot && __atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) == (uintptr_t)connection)
        connection_set_slot(slot, PRELOAD_UNKNOWN);
    connection_adopt(fd);
    preload_count(PRELOAD_REPLACED);
}

bool connection_is_traced(struct connection *connection, int fd)
{
    const struct preload_config *config = preload_config();

    if (connection->cookie && connection_cookie_of(fd) != connection->cookie) {
        connection_replaced(fd, connection);
        return false;
    }
    if (!__atomic_load_n(&connection->is_prepared, __ATOMIC_ACQUIRE) &&
        !connection_prepare(connection, fd))
        return false;
    if (connection->checked_by != config->generation)
        connection_check(connection, config);
    return connection->is_traced;
}

/* ---- requests that nobody has looked at ---- */

void connection_read_unseen(struct connection *connection)
{
    __atomic_store_n(&connection->reader, (uintptr_t)&connection_unseen, __ATOMIC_RELAXED);
    __atomic_store_n(&connection->direction, (uint8_t)DIRECTION_UNSEEN, __ATOMIC_RELEASE);
    if (connection->item.index < connection_unseen.at)
        connection_unseen.at = connection->item.index;
    connection_unseen.until_ns = 0;
}

static bool connection_is_own_unseen(const struct connection *connection)
{
    return __atomic_load_n(&connection->direction, __ATOMIC_ACQUIRE) == DIRECTION_UNSEEN &&
           __atomic_load_n(&connection->reader, __ATOMIC_RELAXED) == (uintptr_t)&connection_unseen;
}

/* Most are not, which is seen without a reference. */
static bool connection_has_unseen(struct connection *connection)
{
    bool has_unseen;

    if (!connection_is_own_unseen(connection) ||
        !pool_try(&connection->item, pool_generation(&connection->item)))
        return false;
    has_unseen = connection_is_own_unseen(connection) && connection->role == ROLE_SERVER;
    connection_let_go(connection);
    return has_unseen;
}

bool connection_any_unseen(void)
{
    struct connection *connection;
    uint64_t now_ns;

    while ((connection = pool_at(&connection_pool, connection_unseen.at)) &&
           !connection_has_unseen(connection))
        connection_unseen.at++;
    if (!connection)
        return false;
    now_ns = preload_now_ns();
    if (!connection_unseen.until_ns)
        connection_unseen.until_ns = now_ns + PRELOAD_STALE_NS;
    return now_ns < connection_unseen.until_ns;
}
