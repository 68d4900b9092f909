/*
 * Keeps a process traceable across fork(2) and daemon(3), with no LD_PRELOAD.
 *
 * Without this, a child has no LTTng listener thread: sessions that start later never see it, and
 * its events bear the parent's pid. lttng_ust_before_fork() takes a lock, so it must not run twice
 * for one fork: where liblttng-ust-fork.so is preloaded it already wraps fork(), and a program that
 * calls lttng_ust_before_fork() itself says so with BLKIN_FORK=off in its environment.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <lttng/ust-fork.h>

static _Thread_local sigset_t saved_signals;

static void before_fork(void)
{
    lttng_ust_before_fork(&saved_signals);
}

static void after_fork_parent(void)
{
    lttng_ust_after_fork_parent(&saved_signals);
}

static void after_fork_child(void)
{
    lttng_ust_after_fork_child(&saved_signals);
}

static int fork_is_wrapped(void)
{
    Dl_info info;
    void *symbol = dlsym(RTLD_DEFAULT, "fork");

    return symbol && dladdr(symbol, &info) && info.dli_fname &&
           strstr(info.dli_fname, "liblttng-ust-fork");
}

__attribute__((constructor)) static void follow_forks(void)
{
    const char *choice = getenv("BLKIN_FORK");

    if (choice && strcmp(choice, "off") == 0)
        return;
    if (!fork_is_wrapped())
        (void)pthread_atfork(before_fork, after_fork_parent, after_fork_child);
}
