/*
 * Threads: their counts, and their end.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_THREAD_H
#define BLKIN_PRELOAD_THREAD_H

#include <stdbool.h>
#include <stdint.h>

/* From now on, the end of the calling thread calls start_end_thread(), and the end of the process
 * calls start_end_all(). Returns false when out of memory. */
bool thread_follow(void);

/* Returns true if thread_follow() was called: then the end of the process may have spans to
 * record. */
bool thread_is_any_followed(void);

/* ---- the counts: one line on stderr at exit if BLKIN_DEBUG is set ---- */

/* clang-format off */
#define PRELOAD_EACH_COUNT(X)                                                                      \
    X(SERVED, "served") /* answered interactions of servers */                                     \
    X(CALLED, "called") /* answered interactions of clients */                                     \
    X(FILE_CALLS, "files") /* spans of file calls */                                               \
    X(FILE_CAUSELESS, "causeless-files") /* file calls for no request: no span */                  \
    X(UNANSWERED, "unanswered") /* requests without an answer: a span only if they caused calls */ \
    X(UNASKED, "unasked") /* messages without a request, such as greetings: no span */             \
    X(LATE, "late") /* reads and writes after the interaction was recorded: no span */             \
    X(SHORT, "short") /* shorter than min-us: no span */                                           \
    X(OWNED, "owner") /* these five: causes of interactions of clients, see cause.h */             \
    X(ONLY, "only")                                                                                \
    X(BY_CONTENT, "prefix")                                                                        \
    X(GUESSED, "guess")                                                                            \
    X(CAUSELESS, "no-cause")                                                                       \
    X(KEYLESS, "keyless") /* spans without blkin.join: the offset or the peer is unknown */        \
    X(REPLACED, "replaced") /* descriptors that were closed without a wrapper */                   \
    X(NO_MEMORY, "no-memory") /* interactions without a span, because memory was short */
/* clang-format on */

#define PRELOAD_COUNT_(which, name) PRELOAD_##which,
enum preload_count { PRELOAD_EACH_COUNT(PRELOAD_COUNT_) PRELOAD_COUNTS };

/* Adds 1 to a count of the calling thread. */
void preload_count(enum preload_count what);

/* Called at the end of the process. Calls start_end_all(). Unless the process is quiet, prints the
 * counts if BLKIN_DEBUG is set. */
void thread_end_process(void);

/* Called in a child of fork(2). Forgets the threads and counts of the parent. */
void thread_forget_all(void);

/* Maps memory before the process becomes quiet, and may map none. */
void thread_reserve(void);

#endif
