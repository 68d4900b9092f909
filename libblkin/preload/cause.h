/*
 * Finds the request that has caused a call. The rules, in this order:
 *
 * 1. Owner: the connection was opened for that request.
 *
 * 2. Only: no other request is open on this thread, and the thread has read for this request since
 * its last wait. An open request was read, is not answered, and waits for no call of its own. In
 * some event loops, the request just read is certain even beside others: see cause_by_order().
 *
 * 3. Prefix: the call forwards the request. At least the first 8 bytes are equal, of 39 that are
 * compared, and no other open request has as long a common prefix.
 *
 * 4. Guess: all open requests are then marked as ambiguous, and rule 2 excludes them.
 *
 * Rules 2 and 3 do not apply while the thread has to answer requests that it read before tracing
 * began.
 *
 * A thread without requests calls for another thread, as varnish's fetching threads do. The library
 * does not see how the threads pass the request. If exactly one request of the other threads
 * matches by prefix, that request is the guess.
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

/* Called for a call without a cause on this thread. Returns the request of another thread that
 * matches by prefix, with a reference, or NULL. */
struct interaction *cause_elsewhere(struct bytes head);

/* Returns the certain cause of a new connection, or NULL. */
struct interaction *cause_of_connect(void);

/* Returns the thread's current work, or the program's span, as the cause of a file call. */
struct cause cause_of_file_call(void);

/* Begins the span of a call, and tags it with the cause. */
void cause_begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                 struct cause cause);

/* Begins the span of a file call that has already ended, and tags the span with the cause. */
void cause_begin_at(struct blkin_span *span, const char *name, struct cause cause,
                    uint64_t start_ns);

/*
 * Begins a span below the thread's current work, with the tag "blkin.cause". If the cause is a
 * guess and guesses are not linked, the span is a trace of its own with the tag "blkin.guess".
 * Returns the rule; PRELOAD_NO_CAUSE: no span was begun.
 */
enum preload_cause cause_begin_child(struct blkin_span *span, const char *name, size_t length,
                                     enum blkin_kind kind);

/* Returns the number of requests that this thread's work may be for: the open ones that it has read
 * for since it last waited, plus 1 for all from before tracing. 0: the thread has no work. */
unsigned cause_sharers(void);

#endif
