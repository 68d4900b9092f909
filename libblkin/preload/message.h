/*
 * Messages on connections, reported by the wrappers between preload_enter() and preload_leave().
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_MESSAGE_H
#define BLKIN_PRELOAD_MESSAGE_H

#include "interaction.h"

/* Called before a read. Ends earlier answers of the thread. */
void message_before_read(struct connection *connection);
void message_after_read(struct connection *connection, int fd, struct bytes head, size_t count);
/* Called when a read returned the end of the stream. Ends a complete answer. */
void message_after_read_end(struct connection *connection);

/*
 * Called before a write, because another thread may read the answer or the next request at once. A
 * client's write makes an interaction. Returns the name of the interaction that a server's write
 * answers, else 0. *generation: that of the slot's connection; unchanged if there is none.
 */
pool_name message_before_write(const struct preload_slot *slot, int fd, uint32_t *generation);
/* Called after `count` of `wanted` bytes of an answer were written; 0: the call has failed. Returns
 * true if all were written. Another thread may have closed the connection meanwhile. */
bool message_after_answer(pool_name written, size_t count, size_t wanted);
/* Called after a write for which message_before_write() returned 0. */
void message_after_write(struct connection *connection, struct bytes head, size_t count);
/* Called before the program shuts down its side: the answer is complete. */
void message_end_sending(struct connection *connection);

/* Called when tracing is off. Gives up the connection's interactions. */
void message_give_up_connection(struct connection *connection);

/* Called when the program connects. is_on: also finds the request that is certainly the cause. */
void called_connect(int fd, const struct sockaddr *address, socklen_t length, bool is_on);

/* Called when the program waits to write on a client's connection. Finds the request that is
 * certainly the cause. */
void called_await_write(struct connection *connection);

/* Called when a request was sent, or the connection ends. */
void called_forget_opener(struct connection *connection);

/* Called at the end of the thread. Records its answered interactions. */
void message_end_thread(void);

/* Called in a child of fork(2). */
void message_forget_all(void);

/* ---- messages on an accepted connection: served.c ---- */

/* Returns true if this process has read a request. */
bool served_any(void);

void served_after_read(struct connection *connection, int fd, struct bytes head, size_t count);
pool_name served_before_write(struct interaction *interaction);
bool served_after_write(struct interaction *interaction, size_t count, size_t wanted);
void served_after_late_write(struct connection *connection, size_t count);

/* Called at the next request or at the end of the connection, while another thread is sending the
 * answer. Moves the interaction to connection->finishing. */
void served_move_to_finishing(struct connection *connection, struct interaction *answered);
/* Records the interactions in connection->finishing whose answers are complete. */
void served_try_finish_all(struct connection *connection);
/* Called when tracing is off. Gives up the interactions in connection->finishing. */
void served_drop_finishing(struct connection *connection);

/* Called when the calling thread has left a write by siglongjmp(3), or ends. */
void served_end_abandoned(void);

/* Called in a child of fork(2). */
void served_forget_all(void);

#endif
