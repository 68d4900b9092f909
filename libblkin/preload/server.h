/*
 * Work before the first wait of a server, and signals that arrive during the library's own work.
 *
 * Without the library, a signal interrupts a call such as poll(2), which then fails with EINTR. A
 * program whose handler only sets a flag relies on that. So the library ends the call also for a
 * signal that arrives during the library's work.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_SERVER_H
#define BLKIN_PRELOAD_SERVER_H

#include "preload.h"

#include <signal.h>

extern int server_state;
enum {
    SERVER_NONE,
    SERVER_NEW, /* the program listens and has not waited since */
    SERVER_HAS_BEGUN,
};

/* Called when the program listens for connections. */
void server_listens(void);

bool server_begin(bool may_restart);

/* Called before a call in which servers wait. Returns true with errno EINTR if a signal has
 * arrived: the call must fail. may_restart: a handler with SA_RESTART restarts the call */
static inline bool server_before_wait(bool may_restart)
{
    return __builtin_expect(server_state == SERVER_NEW, 0) && !preload_is_off() &&
           server_begin(may_restart);
}

/* Called before the process gets a filter: server_begin() then does nothing. */
void server_never_begins(void);

/* Called after work with blocked signals (blkin_block_signals()) and after preload_leave(). Lets
 * handlers run. Returns true with errno EINTR if a handler ends the call. may_restart: as above */
bool server_let_signals_in(const sigset_t *before, bool may_restart);

#endif
