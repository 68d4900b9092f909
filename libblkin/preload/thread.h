/*
 * Threads: random numbers, counts, and their end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_THREAD_H
#define BLKIN_PRELOAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/*
 * From now on the end of the calling thread is told (preload.h), and so is the process's. False: no
 * memory.
 */
bool thread_follow(void);

/* Is there anything to record or to count at the end of the process? */
bool thread_is_any_followed(void);

/* 64 random bits for a thread that is followed, of splitmix64: not for secrets. */
uint64_t thread_random(void);

/* ---- the account: one line on stderr at exit if BLKIN_DEBUG is set ---- */

enum preload_count {
    PRELOAD_SERVED,       /* interactions where accepted */
    PRELOAD_CALLED,       /* where connected */
    PRELOAD_FILE_CALLS,   /* spans of file calls */
    PRELOAD_FILE_NOBODYS, /* that were for no request: no span */
    PRELOAD_UNANSWERED,   /* a request whose connection was closed without an answer: no span */
    PRELOAD_UNASKED,      /* messages that no request came before, such as greetings: no span */
    PRELOAD_LATE,         /* writes that came after their interaction was recorded */
    PRELOAD_SHORT,        /* less than min-us: no span */
    PRELOAD_OWNED,        /* causes of client interactions */
    PRELOAD_ONLY,
    PRELOAD_BY_CONTENT,
    PRELOAD_GUESSED,
    PRELOAD_CAUSELESS,
    PRELOAD_KEYLESS,   /* interactions without blkin.join: the offset or the peer is not known */
    PRELOAD_REPLACED,  /* descriptors that were closed behind our back */
    PRELOAD_NO_MEMORY, /* interactions that were not traced for want of memory */
    PRELOAD_COUNTS
};

/* Adds to the thread's count; any thread. */
void preload_count(enum preload_count what);

/* Prints the account if BLKIN_DEBUG is set. */
void thread_print_counts(void);

/* In a child of fork(2): this thread is the only one, and new. */
void thread_forget_all(void);

/* Room for the threads of a quiet process, and seeds. */
void thread_reserve(void);

#endif
