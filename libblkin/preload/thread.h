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

/* clang-format off */
#define PRELOAD_EACH_COUNT(X)                                                                      \
    X(SERVED, "served") /* interactions where accepted */                                          \
    X(CALLED, "called") /* where connected */                                                      \
    X(FILE_CALLS, "files") /* spans of file calls */                                               \
    X(FILE_NOBODYS, "nobodys-files") /* that were for no request: no span */                       \
    X(UNANSWERED, "unanswered") /* requests whose connection was closed unanswered: no span */     \
    X(UNASKED, "unasked") /* messages that no request came before, such as greetings: no span */   \
    X(LATE, "late") /* writes that came after their interaction was recorded */                    \
    X(SHORT, "short") /* less than min-us: no span */                                              \
    X(OWNED, "owner") /* causes of client interactions */                                          \
    X(ONLY, "only")                                                                                \
    X(BY_CONTENT, "prefix")                                                                        \
    X(GUESSED, "guess")                                                                            \
    X(CAUSELESS, "no-cause")                                                                       \
    X(KEYLESS, "keyless") /* without blkin.join: the offset or the peer is not known */            \
    X(REPLACED, "replaced") /* descriptors that were closed behind our back */                     \
    X(NO_MEMORY, "no-memory") /* interactions that were not traced for want of memory */
/* clang-format on */

#define PRELOAD_COUNT_(which, name) PRELOAD_##which,
enum preload_count { PRELOAD_EACH_COUNT(PRELOAD_COUNT_) PRELOAD_COUNTS };

/* Adds to the thread's count; any thread. */
void preload_count(enum preload_count what);

/* Prints the account if BLKIN_DEBUG is set. */
void thread_print_counts(void);

/* In a child of fork(2): this thread is the only one, and new. */
void thread_forget_all(void);

/* Room for the threads of a quiet process, and seeds. */
void thread_reserve(void);

#endif
