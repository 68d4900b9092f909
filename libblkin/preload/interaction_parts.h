/*
 * What the parts of interaction.h share: interaction_*.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_INTERACTION_PARTS_H
#define BLKIN_PRELOAD_INTERACTION_PARTS_H

#include "interaction.h"

/* ---- life ---- */

/* What is in a place of the connection's, with a reference, or NULL. */
struct interaction *interaction_in(struct interaction *const *place);
/* The interaction at hand on the connection, with a reference, or NULL. */
struct interaction *interaction_at_hand(struct connection *connection);

/* One with a reference, whose span is not begun. */
struct interaction *interaction_make(struct connection *connection, struct thread *thread,
                                     uint64_t offset, uint64_t now_ns);
/* Becomes the one at hand, with another reference. False if another thread's is that. */
bool interaction_put_at_hand(struct interaction *interaction);
void interaction_set_endpoints(struct interaction *interaction);
void interaction_add_head(struct interaction *interaction, struct bytes head);

/* It does not wait for its answer any more. Only once, by who has changed its phase. */
void interaction_stop_waiting(struct interaction *interaction);
/* No longer the one at hand, the thread's work or open. The caller has a reference. */
void interaction_detach(struct interaction *interaction);
/* Records an answered one. The caller has a reference. */
void interaction_finish(struct interaction *interaction);
/* There will be no answer. */
void interaction_give_up(struct interaction *interaction);

/* Takes the reference out of a place, if it is still there. */
void interaction_clear(struct interaction **place, struct interaction *interaction);

/* ---- work ---- */

/*
 * The calling thread's on this connection, with a reference: the one that it works for, else one
 * that it has taken and still has to answer, else the one at hand.
 */
struct interaction *interaction_own(struct connection *connection);

/* One thread works for an interaction. The program's own current span stays what it is. */
void interaction_work_for(struct interaction *interaction);
void interaction_stop_work(void);

/* ---- held ---- */

/* A part of the answer: it is held from the first one on. */
void interaction_add_answer(struct interaction *interaction, size_t count);

/* Ends those that are over at now_ns; UINT64_MAX: all whose response is complete so far. */
void interaction_finish_held(struct thread *thread, uint64_t now_ns);

/* Is all of the answer sent, and told of by who has sent it? */
static inline bool interaction_is_whole(const struct interaction *interaction)
{
    return !__atomic_load_n(&interaction->writers, __ATOMIC_SEQ_CST) &&
           interaction_phase(interaction) == PHASE_ANSWERED && !interaction_is_partial(interaction);
}

/* ---- messages ---- */

static inline uint64_t add_bytes(uint64_t *bytes, size_t count)
{
    return __atomic_fetch_add(bytes, count, __ATOMIC_RELAXED);
}

/* Returns the direction of before. */
static inline enum direction turn(struct connection *connection, enum direction direction)
{
    return (enum direction)__atomic_exchange_n(&connection->direction, (uint8_t)direction,
                                               __ATOMIC_RELAXED);
}

/* Where accepted. */
bool served_any(void); /* does this process have clients, or had some? */
void served_has_read(struct connection *connection, int fd, struct bytes head, size_t count);
pool_name served_before_write(struct connection *connection);
void served_has_written(struct connection *connection, pool_name written, size_t count,
                        size_t wanted);
/*
 * Another thread is in the middle of sending the answer: the next request is here, or the
 * connection's end, before that thread can say that this was the last part.
 */
void served_pass(struct connection *connection, struct interaction *answered);
/* The connection has ended: no more is to come, but of who is sending just now. */
void served_end_passing(struct connection *connection);
/* Tracing is off. */
void served_drop_passing(struct connection *connection);

/* Where connected. */
void called_has_read(struct connection *connection, int fd, size_t count);
void called_before_write(struct connection *connection, int fd);
void called_has_written(struct connection *connection, struct bytes head, size_t count);
void called_forget_opener(struct connection *connection);

#endif
