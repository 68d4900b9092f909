/*
 * Messages of a connection that was accepted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_SERVED_H
#define BLKIN_PRELOAD_SERVED_H

#include "interaction.h"

/* Does this process have clients, or had some? */
bool served_any(void);

void served_has_read(struct connection *connection, int fd, struct bytes head, size_t count);

/* Returns what the next two are given; 0: it is no answer. */
pool_name served_before_write(struct connection *connection);
/* Returns true if all was written that was wanted. */
bool served_has_written(struct connection *connection, pool_name written, size_t count,
                        size_t wanted);
/* The same, but another thread has closed the connection meanwhile. */
bool served_has_written_last(pool_name written, size_t count, size_t wanted);

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
