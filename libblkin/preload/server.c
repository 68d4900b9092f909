/*
 * A server looks for the agent's rings when it first waits for connections: no client waits for
 * that, the server has its final user by then, and children that it forks for connections have the
 * rings already. Other programs look with their first request: most programs that a preload reaches
 * never serve one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

#include "config.h"
#include "interrupt.h"
#include "libblkin/base/signals.h"
#include "real.h"

int server_state;

/* Returns false if it is not `from`, or another thread was faster. */
static bool server_turn(int from, int to)
{
    return __atomic_compare_exchange_n(&server_state, &from, to, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_RELAXED);
}

void server_listens(void)
{
    (void)server_turn(SERVER_NONE, SERVER_NEW);
}

bool server_begin(bool may_restart)
{
    sigset_t before;
    int saved_errno;

    blkin_block_signals(&before);
    saved_errno = preload_enter();
    if (server_turn(SERVER_NEW, SERVER_HAS_BEGUN) && preload_config()->is_traced)
        blkin_server_begins_();
    preload_leave(saved_errno);
    return interrupt_let_in(&before, may_restart);
}

void server_never_begins(void)
{
    __atomic_store_n(&server_state, SERVER_HAS_BEGUN, __ATOMIC_RELEASE);
}
