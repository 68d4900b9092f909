/*
 * The signals that end babeltrace2.
 *
 * babeltrace2 has a handler for SIGINT only, which interrupts the graph, and none if SIGINT was
 * ignored at its start. SIGTERM and SIGHUP would end the process at once, with all waiting spans.
 * So an open sink handles both and passes them on as SIGINT, unless they are ignored or have a
 * handler. A second signal of the same kind ends the process at once.
 *
 * The signal itself interrupts no blocking call. After an interruption, babeltrace2 2.0 asks for
 * the next packet at once. It takes the rest of the old answer for the new one, and aborts.
 *
 * One signal is enough even while the relay daemon hangs. Before the sinks end, babeltrace2 sends a
 * last message to the daemon and waits for the answer. So a second after the first signal, and each
 * second until the last sink is closed, blocking calls of the graph's thread are interrupted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SIGNALS_H
#define BLKIN_SIGNALS_H

#include <stdbool.h>

/* Each sink calls both, in the graph's thread. */
void signals_open(void);
void signals_close(void);

/* Returns true after SIGTERM or SIGHUP. If SIGINT is ignored, the graph does not know about them.
 */
bool signals_ask_to_end(void);

bool signals_ignore_sigint(void);

#endif
