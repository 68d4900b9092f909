/*
 * Holds the memories of all users' rings, and gives them to programs that ask at a Unix socket.
 *
 * The kernel tells the user of a program (SO_PEERCRED). The holder makes a small memory when the
 * first program of a user asks. While programs write much, a larger memory replaces it, within the
 * user's share (shares.h). Large memories are made in steps, between which other programs are
 * served. The holder drops a memory that no program has had for idle_ms. Sending never blocks: a
 * client has at most one small message to read.
 *
 * Memories outlive this process: the holder stores each memory (fdstore.h) before a program gets
 * it. At a normal end, the holder marks all memories as left. Programs ask again when the next
 * process runs.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_HOLDER_H
#define BLKIN_TOOLS_RINGS_HOLDER_H

#include "held.h"
#include "tools/base/loop.h"
#include "tools/base/payer.h"

struct holder;

struct holder_callbacks {
    /* Called when programs may begin to write to the memory. */
    void (*added)(void *context, struct held *held);
    /* Called before the memory is closed. Programs may have written to it since it was last read.
     */
    void (*removing)(void *context, struct held *held);
    void *context;
};

struct holder_counts {
    uint64_t given;      /* answers to programs, with a memory */
    uint64_t made;       /* memories */
    uint64_t taken_over; /* memories of the previous process */
    /* answers without a memory. Not counted: connections beyond their limit, and programs that left
     * before the answer */
    uint64_t refused;
    uint64_t unknown;   /* of `refused`: unknown users, see users.h */
    uint64_t unusable;  /* damaged memories of the previous process */
    const char *keeper; /* fdstore_keeper() */
    bool is_stored;     /* certain: an fdserver runs, $FDSTORE is set, or taken_over is not 0 */
    bool may_be_stored; /* systemd may have a store: before version 254 it sets no $FDSTORE */
    unsigned users;
    unsigned clients;
    uint64_t bytes; /* of all memories now */
};

/*
 * Listens, and takes over the memories that the previous process left in the store. The callbacks
 * may be called before the function returns. Returns NULL with error set.
 */
struct holder *holder_open(struct loop *loop, const struct holder_options *options,
                           const struct holder_callbacks *callbacks, struct error *error);

/* Takes new options, except path, fdserver and answer_ms. A memory of another size is left when its
 * successor exists. */
void holder_reload(struct holder *holder, const struct holder_options *options);

/* Leaves all memories. systemd's store still has them for a restart; an fdserver ends. */
void holder_close(struct holder *holder);

struct holder_counts holder_counts(const struct holder *holder);

/* Returns the users that have asked for memories, with their connections. */
const struct payers *holder_payers(const struct holder *holder);

/* Returns the first memory; `next` links all memories. */
struct held *holder_first(const struct holder *holder);

#endif
