/*
 * What a server does at its first wait for connections or requests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_SERVER_H
#define BLKIN_PRELOAD_SERVER_H

#include "preload.h"

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

#endif
