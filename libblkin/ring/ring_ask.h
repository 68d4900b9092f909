/*
 * Asks the agent for the memory of rings. Only ring_ask_wait() waits.
 *
 * The answer may come later. Until then a descriptor is open, for RING_ASK_NS, or for RING_KEPT_NS
 * if the connection is kept. A program may close unknown descriptors and reuse their numbers: so
 * each use first checks that it is still the same socket. The number is high if possible, because
 * some programs expect low ones.
 *
 * syscall(2) makes the system calls: libblkin-preload.so does not mistake these for the program's.
 * One thread at a time; async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_ASK_H
#define BLKIN_RING_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define RING_ASK_NS  UINT64_C(300000000) /* the agent needs a while to make a large memory */
#define RING_KEPT_NS UINT64_C(10000000000)

enum ring_answer {
    RING_NO_ANSWER, /* there is no agent, or it does not answer */
    RING_ANSWER_LATER,
    RING_ANSWER,
};

/* Asks as the current user, on the kept connection or a new one. Does nothing while an answer is
 * expected. */
void ring_ask(const char *path);

/* Before chroot(2), after which the path cannot be reached: keeps the connection after this answer
 * for one more ring_ask(), for RING_KEPT_NS. */
void ring_ask_keep(void);

bool ring_ask_has_kept(void);

/* Once a second: closes a kept connection after its time. */
void ring_ask_expire(void);

/* Waits up to ns for an expected answer. */
void ring_ask_wait(int64_t ns);

/* RING_ANSWER: *descriptor is a memory of *bytes. The caller closes it. */
enum ring_answer ring_ask_look(int *descriptor, uint64_t *bytes);

/* Drops an expected answer, which would be for the previous user. */
void ring_ask_forget(void);

/* The same, and drops a kept connection: in a child of fork(2). */
void ring_ask_stop(void);

/* Closes a descriptor of ring_ask_look(). */
void ring_ask_close(int descriptor);

#endif
