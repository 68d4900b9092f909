/*
 * Looks for the agent's rings when a server first waits for connections: no client waits yet, the
 * server has its final user, and its forked children inherit the rings. Other programs look at
 * their first request, because most programs under a preload never serve one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

#include "config.h"
#include "libblkin/base/thread.h"

#include <errno.h>
#include <pthread.h>

int server_state;

/* Returns false if the state is not `from`, or another thread was faster. */
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
    return server_let_signals_in(&before, may_restart);
}

void server_never_begins(void)
{
    __atomic_store_n(&server_state, SERVER_HAS_BEGUN, __ATOMIC_RELEASE);
}

/* ---- signals ---- */

/* Ignored signals, and those that stop or end the process, interrupt no call. */
static bool server_signal_ends_call(int number, bool may_restart)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN && !(may_restart && action.sa_flags & SA_RESTART);
}

bool server_let_signals_in(const sigset_t *before, bool may_restart)
{
    const int saved_errno = errno;
    bool ends_call = false;
    sigset_t waiting;

    (void)sigpending(&waiting);
    for (int number = 1; number < NSIG && !ends_call; number++)
        ends_call = sigismember(&waiting, number) == 1 && sigismember(before, number) == 0 &&
                    server_signal_ends_call(number, may_restart);
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = ends_call ? EINTR : saved_errno;
    return ends_call;
}
