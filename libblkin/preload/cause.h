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
 * A thread that has taken no request calls for one of another thread, as varnish's threads do that
 * fetch. Which one handed the work over is not seen. If one request of another thread is alike by
 * the rule of the prefix, that one is a guess.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_CAUSE_H
#define BLKIN_PRELOAD_CAUSE_H

#include "interaction.h"

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

/* ---- the open requests of the calling thread ---- */

void cause_opens(struct thread *thread, struct interaction *interaction);
void cause_closes(struct thread *thread, struct interaction *interaction);

/* A handler has left this code at any place by siglongjmp(3): what is lost of the list stays so,
 * and nothing is certain until all others are answered. */
void cause_after_jump(struct thread *thread);

/* Begins the span of what is so caused, and tags it. */
void cause_begin(struct blkin_span *span, const char *name, size_t length, enum blkin_kind kind,
                 struct cause cause);

/* The same of a file call that has been made since. */
void cause_begin_at(struct blkin_span *span, const char *name, struct cause cause,
                    uint64_t start_ns);

/* All there is of the span is what its end records: not what it uses, nor what happens as it does.
 */
bool cause_is_plain(const struct blkin_span *span);

#endif
