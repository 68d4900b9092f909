/*
 * Connections: the state of each stream socket, found by its descriptor.
 *
 * A connection that the wrappers have not seen from its beginning is adopted at its first use. It
 * may be inherited, passed in a message, or made by a bare system call. Its addresses tell which
 * side it is; if they do not, it is not traced. The kernel's cookie of the socket reveals, before
 * an interaction begins, that a descriptor was closed without a wrapper.
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
    PRELOAD_OTHER,     /* a socket of no interest */
};

/* The state of a descriptor. Initially zero; made at the first need, and never freed. */
struct preload_slot {
    uintptr_t connection; /* a preload_kind or a pointer */
    uintptr_t file;       /* for file.h; 0 again when the descriptor is closed or replaced */
    void *file_memory;    /* for file.h; stays */
};

/* Leaves of slots are mapped at the first need. They cover any number that RLIMIT_NOFILE allows. */
#define PRELOAD_LEAF   16384
#define PRELOAD_LEAVES 65536

/* Returns the slot, or NULL if there is none yet. fd may be any number. */
struct preload_slot *preload_slot(int fd);

/* The same, but makes a missing slot. NULL: out of memory, or fd is no descriptor. */
struct preload_slot *preload_slot_make(int fd);

/* Returns true for a socket, which the wrappers of sockets handle. For other descriptors, file.h
 * may do it. */
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
    ROLE_NONE,   /* not traced: neither side, or a port that is not configured */
    ROLE_SERVER, /* accepted */
    ROLE_CLIENT, /* connected */
};

enum direction {
    DIRECTION_NONE,
    DIRECTION_IN,
    DIRECTION_UNSEEN, /* like DIRECTION_IN, but without an interaction: the begin of the message was
                         not seen */
    DIRECTION_OUT,
};

struct interaction; /* see interaction.h */

#define PASSING_MAX 4 /* threads that answer on one connection at the same time */

struct connection {
    struct pool_item item; /* referenced by its slots, its interactions and temporary users */
    /* These two are also read without a reference: change them only by atomic stores. */
    uintptr_t reader;  /* thread that read while tracing was off: its connection_unseen */
    uint8_t direction; /* the direction of the last bytes */
    uint8_t role;      /* the first member that connection_take() clears */
    bool is_prepared;  /* the members below are known */
    bool is_traced;    /* according to checked_by */
    bool is_whole;     /* the wrappers have seen its first byte */
    bool is_fresh;     /* no request has been sent yet */
    bool is_awaited;   /* the program waits to write: see called_will_write() */
    bool is_unix;
    bool is_key_final;        /* the key is not computed again */
    struct interaction *open; /* the current interaction; referenced */
    /* interactions whose answers are still being sent or are to be recorded; referenced */
    struct interaction *passing[PASSING_MAX];
    struct interaction *opener; /* the request for which the connection was opened, until its first
                                   request; referenced */
    uint64_t received, sent;    /* bytes */
    uint64_t cookie;            /* of the socket, from its first request on; 0: unknown */
    uint64_t key;               /* hash for its interactions' keys; 0: unknown */
    uint64_t place;             /* location of this end, if the key is not unique: see JOIN_TAG */
    unsigned checked_by;        /* generation of the configuration that set is_traced */
    uint32_t slots;             /* number of descriptors */
    uint32_t forks;             /* preload_forks when open and opener were set */
    uint8_t name_length;
    char name[48]; /* name of its spans: "serve :6379" */
    uint16_t port, peer_port;
    char ip[INET6_ADDRSTRLEN], peer_ip[INET6_ADDRSTRLEN];
} __attribute__((aligned(64)));

/* ---- descriptors come and go ---- */

/* Makes a connection that was accepted, or is about to be connected. Keeps errno. address: the
 * peer from accept(2), or NULL */
void connection_accepted(int fd, int listener, const struct sockaddr *address, socklen_t length);
/* Returns false if the connection cannot be traced. */
bool connection_connecting(int fd, const struct sockaddr *address, socklen_t length);

/* Called for a new descriptor, for example of open(2). Forgets an older one of the same number.
 * Does nothing in a child of vfork(2), which has its own descriptors but its parent's memory. */
void connection_forget(int fd);
/* The same outside of preload_enter(). Also works while tracing is off, because tracing may
 * begin at any time. fd may be -1. */
void connection_fd_is_new(int fd);

/* Called in a quiet process for a new socket without a connection. */
void connection_is_no_stream(int fd);

/* Called before the descriptors from first to last are closed. */
void connection_forget_range(unsigned first, unsigned last);

/* Called when another process shares the connection. The byte counts are no longer complete, so
 * its spans get no key. */
void connection_shared(int fd);

/* Called when `to` has become a duplicate of `from`. */
void connection_duplicated(int from, int to);

/* ---- use ---- */

static inline uint64_t connection_add_bytes(uint64_t *bytes, size_t count)
{
    return __atomic_fetch_add(bytes, count, __ATOMIC_RELAXED);
}

/* Returns the previous direction. */
static inline enum direction connection_turn(struct connection *connection,
                                             enum direction direction)
{
    if (__atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == (uint8_t)direction)
        return direction;
    return (enum direction)__atomic_exchange_n(&connection->direction, (uint8_t)direction,
                                               __ATOMIC_RELAXED);
}

/* Called when a part of a request was read while tracing was off. */
void connection_read_unseen(struct connection *connection);

/* Returns true if the calling thread has read, and not answered, a request while tracing was off.
 */
bool connection_any_unseen(void);

#define PRELOAD_STALE_NS \
    UINT64_C(10000000000) /* a request this old will get no answer, for example a feed */

/* Returns the connection of the slot, with a reference, or NULL. generation: the connection's
 * before the real call, which must still be the same; 0: any. */
struct connection *connection_of(const struct preload_slot *slot, uint32_t generation);

void connection_release(struct connection *connection);

/* Examines an unknown descriptor. A socket that can be traced gets a connection. */
void connection_adopt(int fd);

/* Called before an interaction begins. Returns true if the socket is still the same and is to be
 * traced. The first call finds out addresses and names. */
bool connection_is_traced(struct connection *connection, int fd);

/* Called before the process becomes quiet. Reserves memory, and examines all descriptors. */
void connection_reserve(void);

/* ---- the two ends of a connection: connection_ends.c, for connection.c ---- */

/* Returns the kernel's number of the socket; 0: it has none. */
uint64_t connection_cookie_of(int fd);

bool connection_is_stream(int fd);
bool connection_can_be_traced(const struct sockaddr *address, socklen_t length);
uint16_t connection_server_port(const struct connection *connection);

/* Returns true for an ephemeral port, which the kernel gives to clients. */
bool connection_is_ephemeral(uint16_t port);

/* Fills in the addresses of a connected socket. Returns false if the socket is not connected. */
bool connection_prepare(struct connection *connection, int fd);

/* The same for the address of the UNIX socket that listens. */
void connection_fill_unix(struct connection *connection, const struct sockaddr_un *listener,
                          socklen_t length);

/* Called in a quiet process. Fills in all that needs no system call. peer: the program's own
 * knowledge, or NULL. Without both addresses, the requests have no key. */
void connection_fill_quietly(struct connection *connection, int listener,
                             const struct sockaddr *peer, socklen_t length);

/* Keeps the address of a listening socket, for a quiet process. Returns false if fd is no
 * socket. */
bool connection_note_listener(int fd);

/* ---- keys: connection_key.c ---- */

/* Computes the common part of all keys now. */
void connection_prepare_keys(void);

/* Returns the hash for the keys of interactions, or 0. */
uint64_t connection_key(struct connection *connection, int fd);

#endif
