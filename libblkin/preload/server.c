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
#include "libblkin/base/thread.h"

#include <errno.h>
#include <pthread.h>

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
    return server_let_signals_in(&before, may_restart);
}

void server_never_begins(void)
{
    __atomic_store_n(&server_state, SERVER_HAS_BEGUN, __ATOMIC_RELEASE);
}

/* ---- signals ---- */

/* Those that are ignored, or stop or end the process, end no call. */
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
