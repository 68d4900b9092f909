/*
 * What a server does at its first wait for connections or requests, and signals that come while
 * this library works in a call in which the program waits, such as poll(2). Without the library,
 * the signal would come while the kernel waits, and end the call with EINTR. A program whose
 * handler only sets a flag relies on that: it would wait on.
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
    SERVER_NEW, /* the program listens, and has not waited since */
    SERVER_HAS_BEGUN,
};

/* The program listens for connections. */
void server_listens(void);

bool server_begin(bool may_restart);

/*
 * Before the calls in which servers wait for connections and requests. True, with errno EINTR: a
 * signal has come meanwhile, and the call is to fail. may_restart: such a call goes on after a
 * handler of SA_RESTART.
 */
static inline bool server_before_wait(bool may_restart)
{
    return __builtin_expect(server_state == SERVER_NEW, 0) && !preload_is_off() &&
           server_begin(may_restart);
}

/* Not in this process: it is about to be under a filter. */
void server_never_begins(void);

/*
 * After work in such a call, during which signals were blocked (blkin_block_signals()), and after
 * preload_leave(): handlers run now. True, with errno EINTR: one of them ends the call.
 * may_restart: the call is one that goes on after a handler of SA_RESTART.
 */
bool server_let_signals_in(const sigset_t *before, bool may_restart);

#endif
