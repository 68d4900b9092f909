/*
 * Holds the memories of all users' rings, and gives them to programs that ask at a Unix socket.
 *
 * Whose program asks is what SO_PEERCRED says. A user's memory is made when the first program of
 * that user asks, and is small. While programs write much, it gets a larger successor, as far as
 * the user's share goes (shares.h): in steps, between which others are served. When no program has
 * it any more, it goes. A client is sent one message, which fits into any socket: nobody is waited
 * for.
 *
 * Memories outlive this process: they are in a store (fdstore.h) before any program has them. When
 * this one ends in order, programs are told, and ask again when another one runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_HOLDER_H
#define BLKIN_TOOLS_RINGS_HOLDER_H

#include "held.h"
#include "tools/base/loop.h"

#include <jansson.h>

struct holder;

struct holder_callbacks {
    void (*came)(void *context, struct held *held);
    /* After this it is closed. It may have got more since it was read last. */
    void (*goes)(void *context, struct held *held);
    void *context;
};

struct holder_counts {
    uint64_t given;
    uint64_t made;
    uint64_t taken_over; /* of the process before */
    uint64_t refused;    /* beyond a limit, or there was no memory: the program asks again */
    uint64_t unknown;    /* of these, of users that are not told apart: see users.h */
    uint64_t unusable;   /* of the process before, and damaged */
    const char *keeper;  /* who has memories when this process is killed: see fdstore.h */
    bool is_stored;      /* surely: has the service been given a memory back, or $FDSTORE? */
    bool may_be_stored;  /* systemd before 254 has no $FDSTORE */
    unsigned users;
    unsigned clients;
    uint64_t bytes; /* of all memories now */
};

/*
 * Listens, and takes over what the process before has left in the store. Returns NULL with error
 * set. The callbacks may be called before it returns.
 */
struct holder *holder_open(struct loop *loop, const struct holder_options *options,
                           const struct holder_callbacks *callbacks, struct error *error);

/* Another size or other limits: memories of another size are left when their successors are there.
 * The socket stays where it is. */
void holder_reload(struct holder *holder, const struct holder_options *options);

/* In order: programs are told that nobody reads any more. systemd's store keeps the memories for a
 * restart; a process of our own ends. */
void holder_close(struct holder *holder);

struct holder_counts holder_counts(const struct holder *holder);
/* For the status: do memories outlive a kill? null: systemd before 254 does not tell. */
json_t *holder_outlives(const struct holder_counts *counts);

/* The first, and the next one. */
struct held *holder_first(const struct holder *holder);

#endif
