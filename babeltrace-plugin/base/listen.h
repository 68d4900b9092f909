/*
 * The address of an HTTP server, "[ADDRESS:]PORT", and the limits of any listener's connections.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_LISTEN_H
#define BLKIN_BASE_LISTEN_H

#include "error.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <urcu/list.h>

struct listen_address {
    char host[64]; /* numeric; default: 127.0.0.1 */
    char port[8];
};

/* Parses "9464", "10.0.0.3:9464" or "[::1]:9464". Returns false with error set; the message names
 * key and text. */
bool listen_parse(struct listen_address *address, const char *key, const char *text,
                  struct error *error);

/* Returns a non-blocking listening socket, or -1 with error set. The message names key and text. */
int listen_open(const struct listen_address *address, const char *key, const char *text,
                struct error *error);

#define LISTEN_URL_MAX 96

/* Writes "http://127.0.0.1:9464", with the port that the kernel chose if the address has port 0. */
void listen_url(const struct listen_address *address, int fd, const char *scheme,
                char url[LISTEN_URL_MAX]);

/* ---- connections ----------------------------------------------------------------------------- */

/*
 * Connections of a server. A listener accepts connections, limits their number, and ends slow ones.
 * The listener has no thread and never blocks: its owner polls.
 *
 * Without descriptors or memory a listener backs off for LISTENER_BACKOFF_MS, because poll(2) would
 * return at once again and again.
 */

/* ---- accepting */

#define LISTENER_BACKOFF_MS 200

struct listener {
    int fd;           /* a non-blocking listening socket */
    int64_t until_ms; /* end of the back-off (clock_ms()); 0: no back-off */
};

union peer_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
};

/* Returns a non-blocking descriptor; -1 if no client waits, or during back-off. */
int listener_accept(struct listener *listener, union peer_address *from, socklen_t *length);

/* A sender with several connections: a user or a network address. */
struct listener_sender {
    uint64_t connections; /* without leaving peers */
    uint64_t leaving;
    uint64_t hung_up; /* since the start; the owner counts */
};

/* A client; part of the owner's struct. */
struct listener_peer {
    int fd;
    struct listener_sender *sender; /* NULL: all clients of the listener are equal */
    bool is_busy;                   /* a request is in progress */
    bool is_leaving;                /* was hung up on; peers_remove() follows */
    int64_t since_ms;               /* time of the connect, or of peer_touch() */
    struct cds_list_head in_list;
};

/* The owner sets the members up to hang_up. */
struct listener_peers {
    uint64_t most;    /* connections at one time */
    int64_t time_ms;  /* most time between since_ms and the end of a request */
    bool spares_busy; /* a busy peer is never ended for a new peer of its sender */
    bool spares_idle; /* the time limit ends busy peers only */
    /* Hangs up. The owner calls peers_remove() in this call or later. */
    void (*hang_up)(struct listener_peer *peer);
    /* set by the functions below */
    uint64_t count;            /* without leaving peers */
    struct cds_list_head list; /* the oldest since_ms first */
};

void peers_begin(struct listener_peers *peers);

/*
 * Makes room for one more peer. At the limit, ends a peer of the sender with the most connections:
 * the peer that has been idle for longest, or the oldest peer if all are busy. With spares_busy, no
 * busy peer of `sender` is ended. Returns false if no peer can be ended. sender NULL: all are
 * equal.
 */
bool peers_make_room(struct listener_peers *peers, const struct listener_sender *sender);

void peers_add(struct listener_peers *peers, struct listener_peer *peer, int fd,
               struct listener_sender *sender);
void peers_remove(struct listener_peers *peers, struct listener_peer *peer);

/* Sets since_ms to the current time. */
void peer_touch(struct listener_peers *peers, struct listener_peer *peer);

/* Hangs up on peers whose time is over. Returns the time of the next call, or CLOCK_NEVER. */
int64_t peers_end_late(struct listener_peers *peers);

#endif
