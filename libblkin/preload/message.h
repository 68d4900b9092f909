/*
 * Messages on connections, reported by the wrappers between preload_enter() and preload_leave().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_MESSAGE_H
#define BLKIN_PRELOAD_MESSAGE_H

#include "interaction.h"

/* A thread is about to read: earlier answers are over. */
void message_before_read(struct connection *connection);
void message_has_read(struct connection *connection, int fd, struct bytes head, size_t count);
/* The peer has closed its side or the connection: a complete answer is over. */
void message_has_read_end(struct connection *connection);

/*
 * Called before a write, because another thread may read the answer or the next request at once. It
 * makes a client's interaction; for an answer it returns the interaction's name, else 0.
 * *generation: that of the slot's connection; unchanged if there is none.
 */
pool_name message_before_write(const struct preload_slot *slot, int fd, uint32_t *generation);
/* `count` of `wanted` bytes of an answer were written; 0: the call has failed. True: all were
 * written. Another thread may have closed the connection meanwhile. */
bool message_has_answered(pool_name written, size_t count, size_t wanted);
/* The same for bytes that are no answer. */
void message_has_written(struct connection *connection, struct bytes head, size_t count);
/* No more will be written. */
void message_stops_sending(struct connection *connection);

/* Tracing is off: gives up the connection's current interaction. */
void message_abandon(struct connection *connection);

/* A connection is being made. is_on: find the request that has certainly caused it. */
void called_connects(int fd, const struct sockaddr *address, socklen_t length, bool is_on);

/* The program waits to write on the connection: finds the cause, like for a new connection. */
void called_will_write(struct connection *connection);

/* The first request was sent, or the connection ends: its opener no longer waits for it. */
void called_forget_opener(struct connection *connection);

/* The calling thread ends: records what it holds. */
void message_thread_ends(void);

/* In a child of fork(2). */
void message_forget_all(void);

/* ---- messages on an accepted connection: served.c ---- */

/* Returns true if this process has had clients. */
bool served_any(void);

void served_has_read(struct connection *connection, int fd, struct bytes head, size_t count);
pool_name served_before_write(struct interaction *interaction);
bool served_has_written(struct interaction *interaction, size_t count, size_t wanted);
void served_has_written_late(struct connection *connection, size_t count);

/* The next request or the end of the connection comes while another thread is still sending the
 * answer. */
void served_pass(struct connection *connection, struct interaction *answered);
/* The connection has ended: nothing more will be sent, except by a thread that is sending now. */
void served_end_passing(struct connection *connection);
/* Tracing is off. */
void served_drop_passing(struct connection *connection);

/* The calling thread has left a write without its end, or ends itself. */
void served_end_abandoned(void);

/* In a child of fork(2). */
void served_forget_all(void);

#endif
