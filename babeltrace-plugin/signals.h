/*
 * The signals that end babeltrace2.
 *
 * It has a handler for SIGINT only, which interrupts the graph, and only where SIGINT was not
 * ignored when it started. SIGTERM and SIGHUP would end it on the spot, with all that waits to be
 * delivered: while a sink is open they are handled here, unless somebody else does or they are
 * ignored, and are passed on as SIGINT. A second one of them ends the process at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SIGNALS_H
#define BLKIN_SIGNALS_H

#include <stdbool.h>

/* Each sink calls both, on the graph's thread. */
void signals_open(void);
void signals_close(void);

/* Has SIGTERM or SIGHUP come? Then, where SIGINT is ignored, the graph does not know. */
bool signals_ask_to_end(void);

bool signals_ignore_sigint(void);

/*
 * The graph is interrupted and is about to end: from now on, until the last signals_close(), what
 * blocks in the trace reader is interrupted again each second. For babeltrace2 says goodbye to the
 * relay daemon, and would wait for the answer of one that hangs.
 */
void signals_insist(void);

#endif
