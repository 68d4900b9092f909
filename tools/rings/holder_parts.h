/*
 * Shared by holder.c (the memories) and holder_clients.c (the programs that ask).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HOLDER_PARTS_H
#define BLKIN_TOOLS_HOLDER_PARTS_H

#include "babeltrace-plugin/base/unix_socket.h"
#include "fdstore.h"
#include "holder.h"

struct holder {
    struct loop *loop;
    struct holder_options options;
    struct holder_callbacks callbacks;
    struct unix_socket socket;
    struct accepting accepting;
    struct timer tick, often;
    unsigned rules_known; /* see held_refresh_rules() */
    struct held *memories;
    struct held *making; /* memories that are being filled: no program has them */
    struct timer make;
    int64_t grow_ms; /* after a failure: the earliest time of the next attempt */
    struct fdstore store;
    struct listener_peers clients; /* struct holder_client */
    struct payers payers;
    uint32_t unknown_user; /* see users.h */
    struct holder_counts counts;
};

/* Returns the user's memory, or makes one. Stores the memory before a program gets it, so that the
 * next process has it, too. NULL: refused, or not stored. */
struct held *holder_memory_for(struct holder *holder, uint32_t user);

/* Call this before memories are taken over: it raises the limit of descriptors. */
void holder_clients_begin(struct holder *holder);
/* Accepts connections at holder->socket. */
void holder_clients_accept(struct holder *holder);
/* Once a second: watches clients again that have read their message. */
void holder_clients_look(struct holder *holder);
void holder_clients_end(struct holder *holder);

#endif
