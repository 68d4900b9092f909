/*
 * Holds the memories of all users' rings, and gives them to programs that ask at a Unix socket.
 *
 * SO_PEERCRED tells the user of a program. The holder makes a small memory when the first program
 * of a user asks. While programs write much, a larger memory replaces it, within the user's share
 * (shares.h). Large memories are made in steps, between which other programs are served. The holder
 * drops a memory that no program has any more. Sending never blocks: a client gets one small
 * message.
 *
 * Memories outlive this process: the holder stores each one (fdstore.h) before a program gets it.
 * When the process ends normally, programs are told, and ask again when another one runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_HOLDER_H
#define BLKIN_TOOLS_RINGS_HOLDER_H

#include "held.h"
#include "tools/base/loop.h"
#include "tools/base/payer.h"

#include <jansson.h>

struct holder;

struct holder_callbacks {
    void (*came)(void *context, struct held *held);
    /* The memory is closed after this call. Programs may have written to it since it was last read.
     */
    void (*goes)(void *context, struct held *held);
    void *context;
};

struct holder_counts {
    uint64_t given;
    uint64_t made;
    uint64_t taken_over; /* from the previous process */
    uint64_t refused;    /* over a limit, or out of memory: the program asks again */
    uint64_t unknown;    /* of `refused`: unknown users, see users.h */
    uint64_t unusable;   /* damaged memories of the previous process */
    const char *keeper;  /* the store that has the memories: see fdstore.h */
    bool is_stored;      /* certain: the store has given a memory back, or $FDSTORE is set */
    bool may_be_stored;  /* possible: systemd before 254 sets no $FDSTORE */
    unsigned users;
    unsigned clients;
    uint64_t bytes; /* of all memories now */
};

/*
 * Listens, and takes over the memories that the previous process left in the store. Returns NULL
 * with error set. May call the callbacks before it returns.
 */
struct holder *holder_open(struct loop *loop, const struct holder_options *options,
                           const struct holder_callbacks *callbacks, struct error *error);

/* Applies new sizes and limits: memories of another size are left when their successors exist. The
 * socket's path does not change. */
void holder_reload(struct holder *holder, const struct holder_options *options);

/* Tells programs that nobody reads any more. systemd's store keeps the memories for a restart; an
 * fdserver ends. */
void holder_close(struct holder *holder);

struct holder_counts holder_counts(const struct holder *holder);
/* For the status: true if memories outlive a kill; null if unknown (systemd before 254). */
json_t *holder_outlives(const struct holder_counts *counts);

/* The users that have asked for memories, with their connections. */
const struct payers *holder_payers(const struct holder *holder);

/* The first memory; `next` leads to the others. */
struct held *holder_first(const struct holder *holder);

#endif
