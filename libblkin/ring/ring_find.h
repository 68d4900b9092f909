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
    RING_NEVER,   /* this process cannot write into rings, or must not (BLKIN_RINGS=none); or the
                     socket's folder is missing */
    RING_AWAITED, /* no rings so far: the caller looks again once a second */
    RING_SOON,    /* the agent was asked and has not answered: the caller looks again soon. Without
                     a memory, records wait: see ring_early.h */
    RING_FOUND,
};

/* Returns the current memory, or NULL. */
static inline const struct ring_map *ring_map(void)
{
    return __atomic_load_n(&ring_process.map, __ATOMIC_ACQUIRE);
}

/* Asks the agent, without waiting for the answer. Later calls do nothing. */
void ring_find_begin(void);

/* Waits for the agent's answer. At the program's start it waits up to 0.3 s, so that the program's
 * first spans are in the rings. A later wait delays a request, and takes 5 ms at most. */
void ring_find_wait(bool is_at_start);

/*
 * Called at the first need and with the periodic work. Receives the agent's answer, or asks again.
 * Leaves a memory that the agent has left, or that belongs to another user than the process has
 * now. A process that can become root again uses root's memory.
 *
 * Waits up to 5 ms in two cases: after the first two changes of the user, and in a forked child if
 * the agent has left or replaced the parent's memory. Waits up to 0.9 s on a kept connection. A
 * quiet process only checks whether the agent has left the memory. Async-signal-safe.
 */
enum ring_found ring_find(void);

/* Called before chroot(2). Asks the agent, waits for its answer, and keeps the connection for a
 * later change of the user. */
void ring_find_before_chroot(void);

/* Called when the process may have become another user. On a kept connection, asks for the new
 * user's rings, and waits up to 0.9 s. Returns false if no connection is kept. */
bool ring_find_after_chroot(void);

/* Reports whether there are rings, and if not, why: for BLKIN_DEBUG. */
void ring_find_report(void);

/* Returns the state after the last search. */
enum ring_found ring_find_state(void);

/* Called when the process becomes quiet. Closes the connection to the agent: later, the children of
 * a quiet process would close it. */
void ring_find_end(void);

/* Called in a child of fork(2), while the child has one thread. */
void ring_find_after_fork(void);

#endif
