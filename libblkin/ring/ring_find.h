/*
 * The memory of rings into which this process writes, if any.
 *
 * The environment variable BLKIN_RINGS names another socket than RING_SOCKET, or "none".
 * Set-user-ID programs ignore it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_FIND_H
#define BLKIN_RING_FIND_H

#include "ring_map.h"
#include "ring_sequence.h"

enum ring_found {
    RING_NEVER,   /* this process cannot write into rings, or the socket's folder is missing */
    RING_AWAITED, /* none so far: look again once a second */
    RING_SOON,    /* none so far, but the agent was asked: look again soon */
    RING_FOUND,
};

/* Returns the current memory, or NULL. */
static inline const struct ring_map *ring_map(void)
{
    return __atomic_load_n(&ring_process.map, __ATOMIC_ACQUIRE);
}

/* Asks the agent early, because the answer takes a while. Later calls do nothing. */
void ring_find_begin(void);

/* Waits for the agent, so that the program's first spans are in its rings: up to 0.3 s at the
 * program's start; later, where a request waits, up to 5 ms. */
void ring_find_wait(bool is_at_start);

/*
 * Called at the first need and with the periodic work. It takes the agent's answer, and asks again
 * if there is none. It leaves a memory that the agent has left, or that belongs to another user
 * than the process now. A process that can become root again uses root's memory.
 *
 * A quiet process only checks whether the agent has left the memory. The function waits up to 5 ms
 * the first times after a change of the user, for the rings of the next spans. A forked child waits
 * up to 5 ms if the agent has left the parent's memory. Async-signal-safe.
 */
enum ring_found ring_find(void);

/* Called before chroot(2). Connects to the agent and waits for its answer. If the process later
 * becomes another user, it asks on this connection. */
void ring_find_before_chroot(void);

/* Asks for the new user's rings and waits up to 0.9 s, if the process has become another user.
 * Returns false if it has not. */
bool ring_find_after_chroot(void);

/* Reports whether there are rings, and why not: for BLKIN_DEBUG. */
void ring_find_report(void);

/* Returns the state after the last search. */
enum ring_found ring_find_state(void);

/* Called in a child of fork(2), while the child has one thread. */
void ring_find_after_fork(void);

#endif
