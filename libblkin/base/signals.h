/*
 * Signals, while work of the library's must not be interrupted by a handler of the program's.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SIGNALS_H
#define BLKIN_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/*
 * Blocks the calling thread's signals; they come when pthread_sigmask() sets those of before again.
 * A signal of the thread's own doing (a fault, a system call that a filter traps) kills a thread
 * that blocks it.
 */
static inline void blkin_block_signals(sigset_t *before)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t others;

    (void)sigfillset(&others);
    for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
        (void)sigdelset(&others, own[i]);
    (void)pthread_sigmask(SIG_BLOCK, &others, before);
}

#endif
