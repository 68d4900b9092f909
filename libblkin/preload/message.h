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
 * server answers, as another thread may read the next request. Returns what has_written is given.
 */
pool_name message_before_write(struct connection *connection, int fd);
/* Of wanted bytes count were written; 0 if the call has failed. Returns true if these were all of
 * an answer. */
bool message_has_written(struct connection *connection, pool_name written, struct bytes head,
                         size_t count, size_t wanted);
/* The same, but another thread has closed the connection meanwhile. */
bool message_has_written_last(pool_name written, size_t count, size_t wanted);
/* No more will be written. */
void message_stops_sending(struct connection *connection);

/* The last descriptor is closed, or was behind our back. */
void message_connection_ends(struct connection *connection);

/* While tracing is off: gives up the interaction at hand, which can no longer be recorded. */
void message_abandon(struct connection *connection);

/* The calling thread ends: what it holds is recorded. */
void message_thread_ends(void);

/* In a child of fork(2). */
void message_forget_all(void);

#endif
