/*
 * A filter between a reader (babeltrace2's live source) and the relay daemon's port for viewers.
 *
 * babeltrace2 fails when a new stream begins before the time of events that babeltrace2 has already
 * delivered. The streams of a second user begin so: the relay daemon announces them late, with a
 * packet of another stream. The filter delays each packet, and asks the relay daemon for new
 * streams. It announces the streams to babeltrace2 before it passes a packet with a later time.
 *
 * The filter is a thread of the reader, and serves one connection.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_LIVE_VIEWER_H
#define BLKIN_LIVE_VIEWER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Connects to the relay daemon at net://HOST:PORT, starts the thread, and returns the port on
 * 127.0.0.1 for babeltrace2. is_local: the traces use this host's clock. from_beginning: reads
 * older packets, too, except those that end before from_ns (since 1970). Returns 0 with errno set.
 */
int viewer_start(const char *live_url, bool is_local, bool from_beginning, int64_t from_ns);

#endif
