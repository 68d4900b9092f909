/*
 * The first wait of a server, and signals during this library's work in a waiting call such as
 * poll(2). Without the library, such a signal comes while the kernel waits and ends the call with
 * EINTR. A program whose handler only sets a flag relies on that.
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

/* The program listens for connections. */
void server_listens(void);

bool server_begin(bool may_restart);

/* Before a call in which servers wait. True, with errno EINTR: a signal has come, and the call must
 * fail. may_restart: the call is restarted after a handler with SA_RESTART. */
static inline bool server_before_wait(bool may_restart)
{
    return __builtin_expect(server_state == SERVER_NEW, 0) && !preload_is_off() &&
           server_begin(may_restart);
}

/* The process is about to get a filter: server_begin() does nothing. */
void server_never_begins(void);

/* After work with blocked signals (blkin_block_signals()) and after preload_leave(): lets handlers
 * run. True, with errno EINTR: a handler ends the call. may_restart: as above. */
bool server_let_signals_in(const sigset_t *before, bool may_restart);

#endif
