/*
 * Connections: the state of each stream socket, found by its descriptor.
 *
 * Some connections are inherited, passed in a message, or made by a bare system call. The library
 * adopts such a connection at its first use. The addresses show whether this process is the client
 * or the server; if they do not, the connection is not traced. Before an interaction begins, the
 * kernel's cookie of the socket shows whether a descriptor was closed without a wrapper.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CONNECTION_H
#define BLKIN_PRELOAD_CONNECTION_H

#include "pool.h"

#include <arpa/inet.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>

/* ---- the table of descriptors, for this file and file.h ---- */

/* Values of a slot that are no connection. */
enum preload_kind {
    PRELOAD_UNKNOWN,   /* not examined yet, or closed */
    PRELOAD_NO_SOCKET, /* a file, a pipe or the like */
    PRELOAD_OTHER,     /* a socket that is never traced */
};

/* The state of a descriptor. Initially zero; never freed. */
struct preload_slot {
    uintptr_t connection; /* a preload_kind or a struct connection * */
    uintptr_t file;       /* of file.c; 0 when the descriptor is closed or replaced */
    void *file_memory;    /* of file.c; stays when the descriptor is closed */
};

/* The table has leaves of slots, mapped at the first need. The table covers any number that
 * RLIMIT_NOFILE allows. */
#define PRELOAD_LEAF   16384
#define PRELOAD_LEAVES 65536

/* Returns the slot, or NULL if there is none yet. fd may be any number. */
struct preload_slot *preload_slot(int fd);

/* Returns the slot, and makes a missing slot. NULL: out of memory, or fd is no descriptor. */
struct preload_slot *preload_slot_make(int fd);

/* Returns true for a socket that was examined. */
static inline bool preload_is_socket(const struct preload_slot *slot)
{
    return slot && __atomic_load_n(&slot->connection, __ATOMIC_RELAXED) > PRELOAD_NO_SOCKET;
}

static inline bool preload_is_connection(const struct preload_slot *slot, const void *connection)
{
    return slot && __atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) == (uintptr_t)connection;
}

/* Returns true if the slot has any state. */
static inline bool preload_is_known(const struct preload_slot *slot)
{
    return slot && (__atomic_load_n(&slot->connection, __ATOMIC_RELAXED) |
                    __atomic_load_n(&slot->file, __ATOMIC_RELAXED));
}

/* ---- connections ---- */

enum role {
    ROLE_NONE,   /* not traced: the side is unknown, or the socket cannot be traced */
    ROLE_SERVER, /* accepted */
    ROLE_CLIENT, /* connected */
};

enum direction {
    DIRECTION_NONE,
    DIRECTION_IN,
    DIRECTION_UNSEEN, /* in, but without an interaction: the message began while tracing was off */
    DIRECTION_OUT,
};

struct interaction; /* see interaction.h */

#define FINISHING_MAX 4 /* older answers of a connection that may be incomplete at a time */

struct connection {
    struct pool_item item; /* referenced by its slots, its interactions and temporary users */
    /* Threads without a reference read `reader` and `direction`, too: change both only by atomic
     * stores. */
    uintptr_t reader;  /* thread that read while tracing was off: its connection_unseen */
    uint8_t direction; /* the direction of the last bytes */
    uint8_t role;      /* the first member that connection_take() clears */
    bool is_prepared;  /* the members below are known */
    bool is_traced;    /* according to checked_by */
    bool may_have_key; /* its bytes are counted from the first one, and no process shares it */
    bool is_fresh;     /* of a client: no request has been sent yet */
    bool is_awaited;   /* the program waits to write: see called_await_write() */
    bool is_unix;
    bool is_key_final;           /* the key is not computed again */
    struct interaction *current; /* referenced */
    /* interactions whose answers are still being sent or are to be recorded; referenced */
    struct interaction *finishing[FINISHING_MAX];
    /* the request that waits to connect or to write here; NULL after the write; referenced */
    struct interaction *opener;
    uint64_t received, sent; /* bytes */
    uint64_t cookie;         /* of the socket, from its first request on; 0: unknown */
    uint64_t key;            /* hash for its interactions' keys; 0: unknown */
    uint64_t location;       /* of this half, see join.h; 0: the key is unique without it */
    unsigned checked_by;     /* generation of the configuration that set is_traced */
    uint32_t slots;          /* number of descriptors */
    uint32_t forks;          /* preload_forks when current and opener were set */
    uint8_t name_length;
    char name[48]; /* name of its spans: "serve :6379" */
    uint16_t port, peer_port;
    char ip[INET6_ADDRSTRLEN], peer_ip[INET6_ADDRSTRLEN];
} __attribute__((aligned(64)));

/* ---- descriptors that are opened and closed ---- */

/* Makes a connection that was accepted. address: the peer's, from accept(2), or NULL. */
void connection_accepted(int fd, int listener, const struct sockaddr *address, socklen_t length);
/* Makes a client's connection. Returns false if none was made: the address or the socket cannot be
 * traced, or the descriptor already has a connection without a request. */
bool connection_connecting(int fd, const struct sockaddr *address, socklen_t length);

/* Forgets the state of a descriptor that was closed or is new, for example from open(2). Does
 * nothing in a child of vfork(2), which has its own descriptors but its parent's memory. */
void connection_forget(int fd);
/* Works like connection_forget(), between preload_enter() and preload_leave(). Works while tracing
 * is off, because tracing may begin at any time. fd may be -1. */
void connection_forget_new(int fd);

/* Called in a quiet process for a new socket that is no stream. */
void connection_set_no_stream(int fd);

/* Called before the descriptors from first to last are closed. */
void connection_forget_range(unsigned first, unsigned last);

/* Called when another process shares the connection. This process no longer sees all bytes, so its
 * spans get no key. */
void connection_shared(int fd);

/* Called when `to` has become a duplicate of `from`. */
void connection_duplicated(int from, int to);

/* ---- use ---- */

static inline uint64_t connection_add_bytes(uint64_t *bytes, size_t count)
{
    return __atomic_fetch_add(bytes, count, __ATOMIC_RELAXED);
}

/* Returns the previous direction. */
static inline enum direction connection_set_direction(struct connection *connection,
                                                      enum direction direction)
{
    if (__atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == (uint8_t)direction)
        return direction;
    return (enum direction)__atomic_exchange_n(&connection->direction, (uint8_t)direction,
                                               __ATOMIC_RELAXED);
}

/* Called when a part of a request was read while tracing was off. */
void connection_read_unseen(struct connection *connection);

/* Returns true if the calling thread has read a request while tracing was off, and has not answered
 * it. */
bool connection_any_unseen(void);

/* A request that has had no answer for this time counts as one that gets none, such as a feed. */
#define PRELOAD_STALE_NS UINT64_C(10000000000)

/* Returns the connection of the slot, with a reference, or NULL. generation: that of the connection
 * before the real call; NULL is returned if it has changed. 0: any. */
struct connection *connection_of(const struct preload_slot *slot, uint32_t generation);

void connection_release(struct connection *connection);

/* Examines an unknown descriptor. A socket that can be traced gets a connection. */
void connection_adopt(int fd);

/* Called before an interaction begins. Returns true if the descriptor still has this socket, and
 * the configuration wants the connection. The first call reads addresses and sets the name. */
bool connection_is_traced(struct connection *connection, int fd);

/* Called before the process becomes quiet. Reserves memory, and examines the descriptors below
 * 1024. */
void connection_reserve(void);

/* ---- the two ends of a connection: connection_ends.c, for connection.c ---- */

/* Returns the kernel's cookie of the socket; 0: unknown, as in a quiet process. */
uint64_t connection_cookie_of(int fd);

bool connection_is_stream(int fd);
bool connection_can_be_traced(const struct sockaddr *address, socklen_t length);
uint16_t connection_server_port(const struct connection *connection);

/* Returns true for an ephemeral port, which the kernel gives to clients. */
bool connection_is_ephemeral(uint16_t port);

/* Sets addresses, name and, if the connection has none, the role. Returns false if the socket is
 * not connected. */
bool connection_prepare(struct connection *connection, int fd);

/* Sets the name to that of the UNIX socket that listens. */
void connection_fill_unix(struct connection *connection, const struct sockaddr_un *listener,
                          socklen_t length);

/* Called in a quiet process. Sets addresses and name without a system call. peer: the address that
 * the program has, or NULL. Without both addresses, the requests have no key. */
void connection_fill_quietly(struct connection *connection, int listener,
                             const struct sockaddr *peer, socklen_t length);

/* Stores the address of a listening socket, for a quiet process. Returns false if fd is no
 * socket. */
bool connection_note_listener(int fd);

/* ---- keys: connection_key.c ---- */

/* Computes the hashes of this host's location, which keys contain. */
void connection_prepare_keys(void);

/* Returns the hash for the keys of the connection's interactions; 0: no key. */
uint64_t connection_key(struct connection *connection, int fd);

#endif
