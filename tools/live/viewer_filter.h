/*
 * Between babeltrace2 and the relay daemon's port for viewers: a filter that mends what babeltrace2
 * 2.0 and 2.1 do not see in the relay daemon's answers.
 *
 * When programs of another user begin to record, streams join the session. The relay daemon tells
 * so with a flag in its answers to "the next index of this stream", but before LTTng 2.13.12 not
 * where that stream is inactive, and babeltrace2 does not look for it there. So babeltrace2 goes on
 * with the time of inactive streams, and fails at the first events of new ones, which are earlier:
 * it converts a time that it never had, "Cannot convert cycles to nanoseconds from origin". The
 * filter asks for new streams itself whenever a stream is inactive. If there are any, babeltrace2
 * gets an index of an empty packet with the flag, then the new streams when it asks for them.
 *
 * The protocol is that of lttng-viewer-abi.h (LTTng-tools 2.4 and later): a request, then its
 * answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_VIEWER_FILTER_H
#define BLKIN_TOOLS_VIEWER_FILTER_H

#include <stdbool.h>

/*
 * Starts the filter in a thread of this process, before the relay daemon at host and port.
 * *own_port is where it listens, on 127.0.0.1; it serves one viewer after the other until the
 * process ends. Returns false with errno set.
 */
bool viewer_filter_start(const char *host, const char *port, unsigned *own_port);

#endif
