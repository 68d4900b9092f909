/*
 * Signals that come while this library works in a call in which the program waits.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interrupt.h"

#include <errno.h>
#include <pthread.h>

/* Those that are ignored, or stop or end the process, end no call. */
static bool interrupt_ends_call(int number, bool may_restart)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL &&
           action.sa_handler != SIG_IGN && !(may_restart && action.sa_flags & SA_RESTART);
}

bool interrupt_let_in(const sigset_t *before, bool may_restart)
{
    const int saved_errno = errno;
    bool ends_call = false;
    sigset_t waiting;

    (void)sigpending(&waiting);
    for (int number = 1; number < NSIG && !ends_call; number++)
        ends_call = sigismember(&waiting, number) == 1 && sigismember(before, number) == 0 &&
                    interrupt_ends_call(number, may_restart);
    (void)pthread_sigmask(SIG_SETMASK, before, NULL);
    errno = ends_call ? EINTR : saved_errno;
    return ends_call;
}
