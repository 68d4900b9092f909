/*
 * The one way in which a process takes connections: it accepts them, limits how many there are, and
 * ends those that take too long. It has no thread and never blocks: its owner polls.
 *
 * Without descriptors or memory a listener backs off for BACKOFF_MS: poll(2) would return at once,
 * again and again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_LISTENER_H
#define BLKIN_BASE_LISTENER_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <urcu/list.h>

/* ---- accepting */

#define LISTENER_BACKOFF_MS 200

struct listener {
    int fd;           /* listens, and does not block */
    int64_t until_ms; /* it backs off until then (clock_ms()); 0: it does not */
};

union peer_address {
    struct sockaddr any;
    struct sockaddr_in four;
    struct sockaddr_in6 six;
    struct sockaddr_un local;
};

/* Returns the descriptor, which does not block; -1: nobody is there, or it backs off now. */
int listener_accept(struct listener *listener, union peer_address *from, socklen_t *length);

/* ---- the connections that there are */

/* A part of its owner's struct. */
struct listener_peer {
    int fd;
    bool is_busy;     /* a request is under way */
    bool is_leaving;  /* it was hung up on, and peers_remove() is due */
    int64_t since_ms; /* it came, or peer_touch() */
    struct cds_list_head in_list;
};

/* The members up to context are the owner's. */
struct listener_peers {
    uint64_t most;
    int64_t time_ms;  /* a peer has, since it came or was touched */
    bool spares_busy; /* a busy peer does not have to leave for a new one */
    bool spares_idle; /* only the time of a busy peer ends */
    /* Hangs up: peers_remove() follows, in this call or later. */
    void (*hang_up)(void *context, struct listener_peer *peer);
    void *context;
    /* its own */
    uint64_t count;            /* without those that leave */
    struct cds_list_head list; /* the one whose since_ms is the oldest first */
};

void peers_begin(struct listener_peers *peers);

/* For one more: where there are too many, the one that has been idle for longest leaves; if all are
 * busy, the oldest one. Returns false if busy ones are spared. */
bool peers_make_room(struct listener_peers *peers);

void peers_add(struct listener_peers *peers, struct listener_peer *peer, int fd);
void peers_remove(struct listener_peers *peers, struct listener_peer *peer);

/* It is the newest one. */
void peer_touch(struct listener_peers *peers, struct listener_peer *peer);

/* Hangs up on those whose time is over. Returns when it is to be called again; CLOCK_NEVER. */
int64_t peers_end_late(struct listener_peers *peers);

#endif
