/*
 * The start of the process, and of a child of fork(2).
 *
 * Nothing of LTTng is loaded here: many programs drop privileges, close all descriptors or fork
 * before they serve their first request, and most that a preload reaches never serve one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"

#include <pthread.h>
#include <unistd.h>

static pid_t own_pid;

bool preload_is_own_process(void)
{
    return getpid() == own_pid;
}

/*
 * What was at hand is the parent's: who answers it there records it. The locks of this library are
 * none, so that nothing is left locked; what another thread was changing is left as it is, and
 * lost.
 */
static void after_fork(void)
{
    if (preload_is_filtered)
        return;
    own_pid = getpid();
    preload_forks++;
    interaction_forget_all();
    thread_forget_all();
}

__attribute__((constructor(103))) static void start(void)
{
    own_pid = getpid();
    preload_config_init();
    preload_filter_init();
    (void)pthread_atfork(NULL, NULL, after_fork);
}
