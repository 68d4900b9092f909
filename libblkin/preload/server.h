/*
 * When a server loads LTTng: at its first wait for connections or requests.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_SERVER_H
#define BLKIN_PRELOAD_SERVER_H

#include "preload.h"

#include <sys/resource.h>

extern int server_state;
enum {
    SERVER_NONE,
    SERVER_NEW,   /* the program listens: its next wait loads LTTng */
    SERVER_LOADS, /* some thread does */
    SERVER_HAS_LOADED,
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

/* Returns when no other thread loads LTTng, or after 10 s: for a call that would hinder it. */
void server_await_load(void);

/* Not in this process: it is about to be under a filter. */
void server_never_loads(void);

/* What the address space has grown by since LTTng was loaded there; 0: it was not, or not at all.
 */
rlim_t server_growth(void);

#endif
