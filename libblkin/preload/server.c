/*
 * Nothing of LTTng is loaded at the start: many programs drop privileges, close all descriptors or
 * fork before they serve their first request, and most that a preload reaches never serve one. A
 * server loads it when it first waits for connections, which no client waits for: it has made its
 * preparations then, and children that it forks for connections have it already. Other programs
 * load it with their first request.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "server.h"

#include "config.h"
#include "interrupt.h"
#include "libblkin/base/signals.h"
#include "real.h"

#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define LOAD_MS 10000 /* the most that is waited for another thread that loads it */

int server_state;
static pid_t server_loader; /* the process: in a child that is forked meanwhile nobody goes on */

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

/* ---- the address space ---- */

static rlim_t server_size_before; /* 0: LTTng was not loaded by a server's wait */

/* In bytes; 0: cannot be seen, as in a root folder of its own. */
static rlim_t server_size(void)
{
    char text[64];

    (void)preload_read_file("/proc/self/statm", text, sizeof(text));
    return strtoul(text, NULL, 10) * (rlim_t)getpagesize();
}

rlim_t server_growth(void)
{
    const rlim_t size = server_size_before ? server_size() : 0;

    return size > server_size_before ? size - server_size_before : 0;
}

/* ---- the begin ---- */

/* LTTng's provider asks when it is loaded: no client waits. */
PRELOAD_PUBLIC bool blkin_preload_begins_server(void);
bool blkin_preload_begins_server(void)
{
    return __atomic_load_n(&server_state, __ATOMIC_ACQUIRE) == SERVER_LOADS &&
           __atomic_load_n(&server_loader, __ATOMIC_RELAXED) == getpid();
}

bool server_begin(bool may_restart)
{
    sigset_t before;
    int saved_errno;

    blkin_block_signals(&before);
    saved_errno = preload_enter();
    __atomic_store_n(&server_loader, getpid(), __ATOMIC_RELAXED); /* all threads write the same */
    if (server_turn(SERVER_NEW, SERVER_LOADS)) {
        if (preload_config()->is_traced) {
            server_size_before = server_size();
            blkin_server_begins_();
        }
        __atomic_store_n(&server_state, SERVER_HAS_LOADED, __ATOMIC_RELEASE);
    }
    preload_leave(saved_errno);
    return interrupt_let_in(&before, may_restart);
}

void server_never_loads(void)
{
    server_size_before = 0;
    __atomic_store_n(&server_state, SERVER_HAS_LOADED, __ATOMIC_RELEASE);
}

void server_await_load(void)
{
    const struct timespec pause = {0, 1000000};

    for (int i = 0; i < LOAD_MS && blkin_preload_begins_server(); i++)
        (void)nanosleep(&pause, NULL);
}
