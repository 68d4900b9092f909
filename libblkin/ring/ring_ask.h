/*
 * Asking the recorder's agent for the memory of rings, without waiting, but for ring_ask_wait().
 *
 * The answer may come later: until then a descriptor is open, at most until the first look after
 * RING_ASK_NS, or RING_KEPT_NS where it is kept. Programs close descriptors that they do not know,
 * and may have another one under its number meanwhile: so it is used only while it is the same
 * socket. Its number is high where that is possible: some programs expect low ones.
 *
 * The system calls are made by syscall(2): libblkin-preload.so does not take them for the
 * program's. One thread at a time; async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_ASK_H
#define BLKIN_RING_ASK_H

#include <stdbool.h>
#include <stdint.h>

#define RING_ASK_NS  UINT64_C(300000000) /* a large memory takes the agent a while */
#define RING_KEPT_NS UINT64_C(10000000000)

enum ring_answer {
    RING_NO_ANSWER, /* nobody is there, or says anything */
    RING_ANSWER_LATER,
    RING_ANSWER,
};

/* As the user of now, by the connection that is kept or by a new one. Does nothing while an answer
 * is awaited. */
void ring_ask(const char *path);

/* Before chroot(2), which takes the path away: after the answer that is awaited, the connection
 * stays for one more ring_ask(), for RING_KEPT_NS at most. */
void ring_ask_keep(void);

bool ring_ask_has_kept(void);

/* Once a second: closes a connection that was kept for long enough. */
void ring_ask_expire(void);

/* Waits for an answer that is awaited, so long at most. */
void ring_ask_wait(int64_t ns);

/* RING_ANSWER: *descriptor, to be closed, is of a memory of *bytes. */
enum ring_answer ring_ask_look(int *descriptor, uint64_t *bytes);

/* No answer is awaited any more, as it would be for the user of before. */
void ring_ask_forget(void);

/* The same, and no connection is kept: in a child of fork(2). */
void ring_ask_stop(void);

/* Closes what ring_ask_look() has given. */
void ring_ask_close(int descriptor);

#endif
