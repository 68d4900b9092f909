/*
 * Asks the agent for the memory of rings: connects, receives one message, and closes the
 * connection. Only ring_ask_wait() waits.
 *
 * The socket is open until the answer, for RING_ANSWER_NS at most: on a busy host the agent may
 * get no CPU for a while. A kept connection is open for RING_KEPT_NS longer. A program may close
 * descriptors that it does not know, and reuse their numbers. So each use first checks that the
 * descriptor is still the same socket. The number is high if possible, because some programs expect
 * low numbers for their own descriptors.
 *
 * The functions use syscall(2) for calls that libblkin-preload.so wraps, so the preload ignores
 * them. Only one thread at a time may call these functions. They are async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_ASK_H
#define BLKIN_RING_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define RING_ASK_NS    UINT64_C(300000000) /* the agent needs a while to make a large memory */
#define RING_ANSWER_NS UINT64_C(5000000000)
#define RING_KEPT_NS   UINT64_C(10000000000) /* servers change their user soon after chroot(2) */

enum ring_answer {
    RING_NO_ANSWER,    /* there is no agent, or it does not answer */
    RING_ANSWER_LATER, /* the agent may still answer */
    RING_ANSWER,
};

/* Asks for the rings of the current user, on the kept connection or a new one. Does nothing while
 * an answer is expected. */
void ring_ask(const char *path);

/* Called before chroot(2), which makes the path unreachable. Keeps the connection for RING_KEPT_NS
 * after the expected answer, for another ring_ask(). */
void ring_ask_keep(void);

bool ring_ask_has_kept(void);

/* Called once a second. Closes a kept connection after its time. */
void ring_ask_expire(void);

/* Waits up to ns for an expected answer. */
void ring_ask_wait(int64_t ns);

/* Receives the answer. RING_ANSWER: *descriptor is a memory of *bytes; the caller closes it. */
enum ring_answer ring_ask_receive(int *descriptor, uint64_t *bytes);

/* Called when the process has become another user. Drops an expected answer for the previous
 * user. */
void ring_ask_forget(void);

/* Closes the connection, even a kept one. Called in a child of fork(2), too. */
void ring_ask_stop(void);

/* Closes a descriptor that ring_ask_receive() has returned. */
void ring_ask_close(int descriptor);

#endif
