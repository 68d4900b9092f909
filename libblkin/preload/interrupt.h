/*
 * Signals that come while this library works in a call in which the program waits, such as poll(2).
 * Without the library, the signal would come while the kernel waits, and end the call with EINTR. A
 * program whose handler only sets a flag relies on that: it would wait on.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_INTERRUPT_H
#define BLKIN_PRELOAD_INTERRUPT_H

#include <signal.h>
#include <stdbool.h>

/*
 * After such work, during which signals were blocked (blkin_block_signals()), and after
 * preload_leave(): handlers run now. True, with errno EINTR: one of them ends the call.
 * may_restart: the call is one that goes on after a handler of SA_RESTART.
 */
bool interrupt_let_in(const sigset_t *before, bool may_restart);

#endif
