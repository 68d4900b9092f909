/*
 * The start of the process, and of a child of fork(2).
 *
 * Nothing of LTTng is loaded here: many programs drop privileges, close all descriptors or fork
 * before they serve their first request, and most that a preload reaches never serve one. A
 * server loads it when it first waits for connections, which no client waits for: it has made its
 * preparations then, and children that it forks for connections have it already. Other programs
 * load it with their first request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "interaction.h"

#include <pthread.h>
#include <unistd.h>

static pid_t own_pid;

bool preload_is_own_process(void)
{
    return getpid() == own_pid || !*blkin_process_mark_;
}

bool preload_is_new_server;

static bool begins_server;

/* LTTng's provider asks when it is loaded: no client waits. */
PRELOAD_PUBLIC bool blkin_preload_begins_server(void);
bool blkin_preload_begins_server(void)
{
    return __atomic_load_n(&begins_server, __ATOMIC_ACQUIRE);
}

void preload_begin_server(void)
{
    const int saved_errno = preload_enter();

    if (__atomic_exchange_n(&preload_is_new_server, false, __ATOMIC_ACQ_REL) &&
        preload_config()->is_traced) {
        preload_limit_begin();
        __atomic_store_n(&begins_server, true, __ATOMIC_RELEASE);
        blkin_heartbeat();
        __atomic_store_n(&begins_server, false, __ATOMIC_RELEASE);
    }
    preload_leave(saved_errno);
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

void preload_forked(void)
{
    blkin_forked_();
    after_fork();
}

__attribute__((constructor(103))) static void start(void)
{
    own_pid = getpid();
    preload_config_init();
    preload_filter_init();
    (void)pthread_atfork(NULL, NULL, after_fork);
}
