/*
 * Connections: what is known of each stream socket, found by its descriptor.
 *
 * One that the wrappers have not seen from its begin, as it was inherited, passed in a message or
 * made by a bare system call, is adopted at its first use: which side it is, its addresses tell,
 * and where they do not it is left alone. One that was closed behind our back is found out before
 * an interaction begins on it, by the kernel's cookie of the socket.
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

/* ---- the table of descriptors: what this file and file.h know of each ---- */

/* What else than a connection's pointer is in a slot. */
enum preload_kind {
    PRELOAD_UNKNOWN,   /* not looked at yet, or closed */
    PRELOAD_NO_SOCKET, /* a file, a pipe, whatever */
    PRELOAD_OTHER,     /* a socket of no interest */
};

/* One per descriptor; made at the first need, never freed, all zeros at first. */
struct preload_slot {
    uintptr_t connection; /* a preload_kind, or a pointer */
    uintptr_t file;       /* file.h's own; 0 again once the descriptor is closed or replaced */
    void *file_memory;    /* file.h's own; stays */
};

/* Any number that RLIMIT_NOFILE allows: leaves of slots, mapped at the first need. */
#define PRELOAD_LEAF   16384
#define PRELOAD_LEAVES 65536

/* The slot, or NULL if there is none yet. Any number may come. */
struct preload_slot *preload_slot(int fd);

/* The same, made if need be; NULL if there is no memory or fd is no descriptor. */
struct preload_slot *preload_slot_make(int fd);

/* True for one that the wrappers of sockets take; false: file.h may have it. */
static inline bool preload_is_socket(const struct preload_slot *slot)
{
    return slot && __atomic_load_n(&slot->connection, __ATOMIC_RELAXED) > PRELOAD_NO_SOCKET;
}

static inline bool preload_is_connection(const struct preload_slot *slot, const void *connection)
{
    return slot && __atomic_load_n(&slot->connection, __ATOMIC_ACQUIRE) == (uintptr_t)connection;
}

/* Is there anything to forget when the descriptor is closed? */
static inline bool preload_is_known(const struct preload_slot *slot)
{
    return slot && (__atomic_load_n(&slot->connection, __ATOMIC_RELAXED) |
                    __atomic_load_n(&slot->file, __ATOMIC_RELAXED));
}

/* ---- connections ---- */

enum role {
    ROLE_NONE,   /* not traced: neither side, or not a port of the configuration */
    ROLE_SERVER, /* accepted */
    ROLE_CLIENT, /* connected */
};

enum direction {
    DIRECTION_NONE,
    DIRECTION_IN,
    DIRECTION_UNSEEN, /* in, of a message that is no interaction: nobody has seen its begin */
    DIRECTION_OUT,
};

struct interaction; /* interaction.h: here they are only kept, and begin as NULL */

#define PASSING_MAX 4 /* threads that answer on one connection, each in the middle of it */

struct connection {
    struct pool_item item; /* references: its slots, its interactions, who looks at it */
    /* These two are looked at without a reference, too: changed by atomic stores only. */
    uintptr_t reader;  /* of what nobody looked at: the thread's connection_unseen */
    uint8_t direction; /* of the last bytes */
    uint8_t role;      /* the first of what connection_take() clears */
    bool is_prepared;  /* what follows is known */
    bool is_traced;    /* by checked_by */
    bool is_whole;     /* seen from its first byte */
    bool is_fresh;     /* no request was sent yet */
    bool is_awaited;   /* it is to be written to as soon as that can be: see called_will_write() */
    bool is_unix;
    bool is_key_final;        /* no need to try again for the key */
    struct interaction *open; /* the one at hand; referenced */
    /* whose answers are being sent while that is at hand, or wait to be recorded; referenced */
    struct interaction *passing[PASSING_MAX];
    struct interaction
        *opener;             /* for which it was connected, until its first request; referenced */
    uint64_t received, sent; /* bytes */
    uint64_t cookie;         /* of the socket, from its first request on; 0: the kernel has none */
    uint64_t key;            /* of what its interactions' keys begin with; 0: not to be had */
    uint64_t place;          /* where this end is, if the key alone is no proof: see JOIN_TAG */
    unsigned checked_by;     /* generation of the configuration that has set is_traced */
    uint32_t slots;          /* descriptors */
    uint32_t forks;          /* preload_forks when open and opener were set */
    uint8_t name_length;
    char name[48]; /* of its interactions' spans: "serve :6379" */
    uint16_t port, peer_port;
    char ip[INET6_ADDRSTRLEN], peer_ip[INET6_ADDRSTRLEN];
} __attribute__((aligned(64)));

/* ---- descriptors come and go ---- */

/*
 * A new connection: accepted, or about to be connected. errno is kept. address: of the peer, as
 * accept(2) has told it to the program; NULL: it has not asked.
 */
void connection_accepted(int fd, int listener, const struct sockaddr *address, socklen_t length);
/* Returns false if it is none that could be traced. */
bool connection_connecting(int fd, const struct sockaddr *address, socklen_t length);

/* A new descriptor, of open(2) say: what was known of one of this number is over. In a child of
 * vfork(2), whose descriptors are its own, but whose memory is its parent's: nothing. */
void connection_forget(int fd);
/* The same outside of preload_enter(), also where nothing is recorded: that may begin at any time.
 * fd may be what a call that has failed returned. */
void connection_fd_is_new(int fd);

/* In a quiet process, a new descriptor of a socket without connections. */
void connection_is_no_stream(int fd);

/* All from first to last are about to be closed. */
void connection_forget_range(unsigned first, unsigned last);

/*
 * Another process has the connection, too. How many bytes go by is no longer known, so its spans
 * get no key.
 */
void connection_shared(int fd);

/* to is now the same as from. */
void connection_duplicated(int from, int to);

/* ---- use ---- */

static inline uint64_t connection_add_bytes(uint64_t *bytes, size_t count)
{
    return __atomic_fetch_add(bytes, count, __ATOMIC_RELAXED);
}

/* Returns the direction of before. */
static inline enum direction connection_turn(struct connection *connection,
                                             enum direction direction)
{
    if (__atomic_load_n(&connection->direction, __ATOMIC_RELAXED) == (uint8_t)direction)
        return direction;
    return (enum direction)__atomic_exchange_n(&connection->direction, (uint8_t)direction,
                                               __ATOMIC_RELAXED);
}

/* A part of a request was read, and nobody looks. */
void connection_read_unseen(struct connection *connection);

/* Is there a request that the calling thread has read while nobody looked, and not answered? */
bool connection_any_unseen(void);

#define PRELOAD_STALE_NS \
    UINT64_C(10000000000) /* a request that waits so long gets no answer, such as a feed */

/*
 * The connection of the slot, with a reference, or NULL. generation is the one from before the real
 * call, which the connection must still have; 0: any.
 */
struct connection *connection_of(const struct preload_slot *slot, uint32_t generation);

void connection_let_go(struct connection *connection);

/* Looks at an unknown descriptor. A socket that can be traced gets a connection. */
void connection_adopt(int fd);

/*
 * Before an interaction begins: is it still the same socket, is it to be traced? Finds out
 * addresses and names at the first time.
 */
bool connection_is_traced(struct connection *connection, int fd);

/* In a process that is about to be quiet: room, and what is known of each descriptor. */
void connection_reserve(void);

/* ---- the two ends of a connection: connection_ends.c, for connection.c ---- */

/* The kernel's number of the socket; 0: it has none. */
uint64_t connection_cookie_of(int fd);

bool connection_is_stream(int fd);
bool connection_can_be_traced(const struct sockaddr *address, socklen_t length);
uint16_t connection_server_port(const struct connection *connection);

/* Is it an ephemeral port, as the kernel gives to clients? */
bool connection_is_ephemeral(uint16_t port);

/* Fills in what a connected socket's addresses say. False: it is not connected (any more). */
bool connection_prepare(struct connection *connection, int fd);

/* The same by the address of the UNIX socket that listens. */
void connection_fill_unix(struct connection *connection, const struct sockaddr_un *listener,
                          socklen_t length);

/*
 * In a quiet process: by what is known without a system call. peer: NULL, or as the program has it.
 * Without both addresses, the requests have no key.
 */
void connection_fill_quietly(struct connection *connection, int listener,
                             const struct sockaddr *peer, socklen_t length);

/* Keeps the address of a socket that listens, for a quiet process. False: it is no socket. */
bool connection_note_listener(int fd);

/* ---- keys: connection_key.c ---- */

/* What all keys have in common is found out now. */
void connection_prepare_keys(void);

/* The hash that the key of an interaction begins with, or 0. */
uint64_t connection_key(struct connection *connection, int fd);

#endif
