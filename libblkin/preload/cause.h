/*
 * Which request has caused a call. The rules, in this order:
 *
 * 1. Owner: the connection was opened for that request.
 *
 * 2. Only: no other request is open on this thread, and the thread has heard of the request since
 * it last waited. Open: read, not answered, and not waiting for a call of its own.
 *
 * 3. Prefix: the call forwards the request: the longest common first bytes, at least 8 of the 39
 * that are kept, and no other open request has as many.
 *
 * Rules 2 and 3 do not apply while the thread has to answer requests that it read before tracing
 * began.
 *
 * 4. Guess. All open requests are then ambiguous: nothing about them is certain by elimination.
 *
 * A thread without requests calls for another thread, as varnish's fetching threads do. The library
 * does not see the hand-over. If exactly one request of another thread matches by prefix, it is the
 * guess.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CAUSE_H
#define BLKIN_PRELOAD_CAUSE_H

#include "interaction.h"

/* How the cause of a call was found. */
enum preload_cause {
    PRELOAD_NO_CAUSE,      /* unknown: the call is a trace of its own */
    PRELOAD_BY_PROGRAM,    /* the program's own current span */
    PRELOAD_BY_OWNER,      /* rule 1 */
    PRELOAD_BY_BEING_ONLY, /* rule 2 */
    PRELOAD_BY_PREFIX,     /* rule 3: the same first bytes */
    PRELOAD_BY_GUESS,
};

struct cause {
    enum preload_cause how;
    struct interaction *interaction; /* not referenced; NULL: none, or the program's span */
};

/* head: the first bytes of the call's request. */
struct cause cause_of_call(const struct connection *connection, struct bytes head);

/* For a call without a cause on this thread: a matching request of another thread, with a
 * reference, or NULL. */
struct interaction *cause_elsewhere(struct bytes head);

/* For a new connection: a certain cause, or NULL. */
struct interaction *cause_of_connect(void);

/* For a file call, which the thread makes for the request that it works for. */
struct cause cause_of_file_call(void);

/* Begins and tags the span of a call. */
void cause_begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                 struct cause cause);

/* The same for a file call that has already ended. */
void cause_begin_at(struct blkin_span *span, const char *name, struct cause cause,
                    uint64_t start_ns);

/*
 * Begins a span for the thread's current work: below its request, with the tag "blkin.cause". If
 * the cause is only a guess and guesses are not linked, the span is a trace of its own with the tag
 * "blkin.guess". Returns the rule; PRELOAD_NO_CAUSE: no span was begun.
 */
enum preload_cause cause_begin_child(struct blkin_span *span, const char *name, size_t length,
                                     enum blkin_kind kind);

/* Returns the number of requests that this thread has read and not answered: its work may be for
 * all of them. */
unsigned cause_sharers(void);

#endif
