/*
 * Threads: counts, and their end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_THREAD_H
#define BLKIN_PRELOAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* From now on, the ends of the calling thread and of the process are reported (preload.h). False:
 * out of memory. */
bool thread_follow(void);

/* Returns true if the end of the process has anything to record or count. */
bool thread_is_any_followed(void);

/* ---- the account: one line on stderr at exit if BLKIN_DEBUG is set ---- */

/* clang-format off */
#define PRELOAD_EACH_COUNT(X)                                                                      \
    X(SERVED, "served") /* interactions on accepted connections */                                          \
    X(CALLED, "called") /* interactions on connections that were made */                                                      \
    X(FILE_CALLS, "files") /* spans of file calls */                                               \
    X(FILE_NOBODYS, "nobodys-files") /* file calls for no request: no span */                       \
    X(UNANSWERED, "unanswered") /* requests whose connection was closed unanswered: no span */     \
    X(UNASKED, "unasked") /* messages without a request, such as greetings: no span */   \
    X(LATE, "late") /* writes after their interaction was recorded */                    \
    X(SHORT, "short") /* shorter than min-us: no span */                                              \
    X(OWNED, "owner") /* causes of client interactions */                                          \
    X(ONLY, "only")                                                                                \
    X(BY_CONTENT, "prefix")                                                                        \
    X(GUESSED, "guess")                                                                            \
    X(CAUSELESS, "no-cause")                                                                       \
    X(KEYLESS, "keyless") /* without blkin.join: unknown offset or peer */            \
    X(REPLACED, "replaced") /* descriptors that were closed without a wrapper */                     \
    X(NO_MEMORY, "no-memory") /* interactions that were not traced for lack of memory */
/* clang-format on */

#define PRELOAD_COUNT_(which, name) PRELOAD_##which,
enum preload_count { PRELOAD_EACH_COUNT(PRELOAD_COUNT_) PRELOAD_COUNTS };

/* Adds to the thread's count; any thread. */
void preload_count(enum preload_count what);

/* The process ends: records everything, and prints the account if BLKIN_DEBUG is set. */
void thread_end_process(void);

/* In a child of fork(2): this thread is the only one, and new. */
void thread_forget_all(void);

/* Reserves memory for a quiet process. */
void thread_reserve(void);

#endif
