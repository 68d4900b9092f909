/*
 * What has caused a call: the rule of four steps.
 *
 * 1. Owner: the connection was opened for that request.
 * 2. Only: no other request is open on this thread, that is, taken, not answered, and not waiting
 *    for the answer to a call of its own; and it was heard of since the thread last waited.
 * 3. Prefix: the call sends the request on: the longest common first bytes, 8 or more of the 39
 * that are kept, and no other open request has as many.
 *    Neither is certain while the thread has requests to answer that it took before there was a
 *    session.
 * 4. Else a guess. All that were open are ambiguous from then on: which of them has called is not
 *    known, so that nothing about them is certain by elimination.
 *
 * A thread that has taken no request calls for a request of another thread, as varnish's fetching
 * threads do. The library does not see which thread handed the work over. If exactly one request of
 * another thread matches by the rule of the prefix, that request is a guess.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CAUSE_H
#define BLKIN_PRELOAD_CAUSE_H

#include "interaction.h"

/* How the cause of a call was found. */
enum preload_cause {
    PRELOAD_NO_CAUSE,      /* no request is known: a trace of its own */
    PRELOAD_BY_PROGRAM,    /* the program's own current span (it uses libblkin) */
    PRELOAD_BY_OWNER,      /* the connection was opened for that request */
    PRELOAD_BY_BEING_ONLY, /* the only one that it can be */
    PRELOAD_BY_PREFIX,     /* the request is sent on: the same first bytes */
    PRELOAD_BY_GUESS,
};

struct cause {
    enum preload_cause how;
    struct interaction *interaction; /* the request, not referenced; NULL: none, or the program's */
};

/* Of the first bytes of a client's request. */
struct cause cause_of_call(const struct connection *connection, struct bytes head);

/* No request of this thread has caused the call: one of another thread's that is alike, with a
 * reference, or NULL. */
struct interaction *cause_elsewhere(struct bytes head);

/* Of a new connection: certain, or none. */
struct interaction *cause_of_connect(void);

/* Of a file call, which is made at once by who works for a request. */
struct cause cause_of_file_call(void);

/* Begins the span of what is so caused, and tags it. */
void cause_begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                 struct cause cause);

/* The same of a file call that has been made since. */
void cause_begin_at(struct blkin_span *span, const char *name, struct cause cause,
                    uint64_t start_ns);

/*
 * Begins a span of what the thread does now for the request that it works for: below it and tagged
 * with "blkin.cause", or, if that is a guess only and guesses are not linked, as a trace of its own
 * with "blkin.guess". Returns how it was found; PRELOAD_NO_CAUSE: no span was begun.
 */
enum preload_cause cause_begin_child(struct blkin_span *span, const char *name, size_t length,
                                     enum blkin_kind kind);

/* How many requests this thread has taken and not answered: what it does may be for all of them. */
unsigned cause_sharers(void);

#endif
