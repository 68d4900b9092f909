/*
 * A filter between a reader (babeltrace2's live source) and the relay daemon's port for viewers.
 *
 * babeltrace2 ends with an error when a stream that joins a session begins before what it has
 * given out already. The streams of a second user do: they are told late, and only with a packet of
 * another stream. The filter holds each time for a moment, asks the relay daemon itself for new
 * streams, and tells babeltrace2 of them before it lets any later time pass.
 *
 * It is a thread of the reader's process, and has one connection.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_VIEWER_H
#define BLKIN_LIVE_VIEWER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Connects to the relay daemon at net://HOST:PORT, starts the thread, and returns the port on
 * 127.0.0.1 where it waits for babeltrace2. is_local: the traces
 * have the clock of this host. from_beginning: what was recorded before it attaches is
 * read, too; but no packets that end before from_ns, since 1970. Returns 0 with errno set.
 */
int viewer_start(const char *live_url, bool is_local, bool from_beginning, int64_t from_ns);

#endif
