/*
 * The signals that end babeltrace2.
 *
 * It has a handler for SIGINT only, which interrupts the graph, and none where SIGINT was ignored
 * when it started. SIGTERM and SIGHUP would end it on the spot, with all that waits to be
 * delivered: while a sink is open they are handled here, unless somebody else does or they are
 * ignored, and are passed on as SIGINT. A second one of the same ends the process at once.
 *
 * One signal is enough also while the relay daemon hangs. babeltrace2 says goodbye to it before the
 * sinks end, and would wait for its answer; so a second after the first signal what blocks on the
 * graph's thread is interrupted again, each second until the last sink is closed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SIGNALS_H
#define BLKIN_SIGNALS_H

#include <stdbool.h>

/* Each sink calls both, on the graph's thread. */
void signals_open(void);
void signals_close(void);

/* Has SIGTERM or SIGHUP come? Where SIGINT is ignored, the graph does not know. */
bool signals_ask_to_end(void);

bool signals_ignore_sigint(void);

#endif
