/*
 * Which memory of rings this process writes into, if any.
 *
 * The environment variable BLKIN_RINGS names another socket than RING_SOCKET, or "none".
 * Set-user-ID programs do not heed it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_FIND_H
#define BLKIN_RING_FIND_H

#include "ring_map.h"
#include "ring_sequence.h"

enum ring_found {
    RING_NEVER,   /* this process cannot write into rings, or nobody has made the socket's folder */
    RING_AWAITED, /* none so far: look again */
    RING_SOON,    /* none so far, but the agent has been asked: look again soon */
    RING_FOUND,
};

/* NULL: there is none. */
static inline const struct ring_map *ring_map(void)
{
    return __atomic_load_n(&ring_process.map, __ATOMIC_ACQUIRE);
}

/* The first time, it asks the agent: early, as the answer takes a while. Does nothing later. */
void ring_find_begin(void);

/* Waits for an agent that is there: so a program's first spans are in its rings. At the program's
 * start for 0.3 s at most, else, as a request waits, for 5 ms. */
void ring_find_wait(bool is_at_start);

/*
 * At the end of loading, and with each chores: takes the agent's answer, asks again where there is
 * none, leaves a memory that the agent has left, and at once that of a user who this process is no
 * more. A process that can become root again is root's. In a quiet process it only sees whether the
 * agent has left the memory. Waits only the first times after the process has become another user:
 * 5 ms, so that the next spans are in that user's rings. Async-signal-safe.
 */
enum ring_found ring_find(void);

/* Before chroot(2): as another user, this process then asks for rings through a connection that is
 * made now. Waits for an agent that is there. */
void ring_find_before_chroot(void);

/* The process may have become another user since: waits for that one's rings, for 0.9 s at most.
 * False: it has not called the former, or there is nothing to be done. */
bool ring_find_after_chroot(void);

/* Says whether there are rings, or why not: for BLKIN_DEBUG. */
void ring_find_report(void);

/* What it has found, without looking. */
enum ring_found ring_find_state(void);

/* In a child of fork(2), while it has one thread. */
void ring_find_after_fork(void);

#endif
