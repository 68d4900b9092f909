/*
 * Messages on connections: what the wrappers tell, between preload_enter() and preload_leave().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_MESSAGE_H
#define BLKIN_PRELOAD_MESSAGE_H

#include "interaction.h"

/* A thread is about to read: what was answered is over. */
void message_before_read(struct connection *connection);
void message_has_read(struct connection *connection, int fd, struct bytes head, size_t count);
/* The peer has closed its side, or the connection. */
void message_has_read_end(struct connection *connection);

/*
 * A client's request is known before it is sent, as another thread may read the answer; and what a
 * server answers, as another thread may read the next request. Returns that answer's name, or 0.
 * *generation: of the slot's connection; unchanged, if there is none.
 */
pool_name message_before_write(const struct preload_slot *slot, int fd, uint32_t *generation);
/* Of wanted bytes count of an answer were written; 0 if the call has failed. Returns true if these
 * were all. Another thread may have closed the connection meanwhile. */
bool message_has_answered(pool_name written, size_t count, size_t wanted);
/* The same of what is no answer. */
void message_has_written(struct connection *connection, struct bytes head, size_t count);
/* No more will be written. */
void message_stops_sending(struct connection *connection);

/* While tracing is off: gives up the interaction at hand, which can no longer be recorded. */
void message_abandon(struct connection *connection);

/*
 * A connection is being made. is_on: for the request that certainly has caused this, if there is
 * one.
 */
void called_connects(int fd, const struct sockaddr *address, socklen_t length, bool is_on);

/* It is to be written to, as soon as that can be: as where one is being made. */
void called_will_write(struct connection *connection);

/* Its first request is sent, or it ends: no request waits for the connection any more. */
void called_forget_opener(struct connection *connection);

/* The calling thread ends: what it holds is recorded. */
void message_thread_ends(void);

/* In a child of fork(2). */
void message_forget_all(void);

/* ---- messages of a connection that was accepted: served.c ---- */

/* Does this process have clients, or had some? */
bool served_any(void);

void served_has_read(struct connection *connection, int fd, struct bytes head, size_t count);
pool_name served_before_write(struct interaction *interaction);
bool served_has_written(struct interaction *interaction, size_t count, size_t wanted);
void served_has_written_late(struct connection *connection, size_t count);

/*
 * Another thread is in the middle of sending the answer: the next request is here, or the
 * connection's end, before that thread can say that this was the last part.
 */
void served_pass(struct connection *connection, struct interaction *answered);
/* The connection has ended: nothing more comes, except what a thread is sending at this moment. */
void served_end_passing(struct connection *connection);
/* Tracing is off. */
void served_drop_passing(struct connection *connection);

/* The calling thread has left a write, or ends in it: it will not say that it has written. */
void served_end_abandoned(void);

/* In a child of fork(2). */
void served_forget_all(void);

#endif
