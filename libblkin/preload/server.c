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
#include "real.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

bool server_is_new;

void server_listens(void)
{
    static bool was_new;

    if (!__atomic_exchange_n(&was_new, true, __ATOMIC_ACQ_REL))
        __atomic_store_n(&server_is_new, true, __ATOMIC_RELEASE);
}

/* ---- the address space ---- */

static rlim_t server_size_before; /* 0: LTTng was not loaded by a server's wait */

/* In bytes, by calls that ld.so has made before; 0: cannot be seen, as in a root folder of its own.
 */
static rlim_t server_size(void)
{
    char text[64];
    const int fd = real()->open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    const ssize_t length = fd < 0 ? -1 : real()->read(fd, text, sizeof(text) - 1);

    if (fd >= 0)
        (void)real()->close(fd);
    if (length <= 0)
        return 0;
    text[length] = '\0';
    return strtoul(text, NULL, 10) * (rlim_t)getpagesize();
}

rlim_t server_growth(void)
{
    const rlim_t size = server_size_before ? server_size() : 0;

    return size > server_size_before ? size - server_size_before : 0;
}

/* ---- the begin ---- */

static bool server_begins;

/* LTTng's provider asks when it is loaded: no client waits. */
PRELOAD_PUBLIC bool blkin_preload_begins_server(void);
bool blkin_preload_begins_server(void)
{
    return __atomic_load_n(&server_begins, __ATOMIC_ACQUIRE);
}

void server_begin(void)
{
    const int saved_errno = preload_enter();

    if (__atomic_exchange_n(&server_is_new, false, __ATOMIC_ACQ_REL) &&
        preload_config()->is_traced) {
        server_size_before = server_size();
        __atomic_store_n(&server_begins, true, __ATOMIC_RELEASE);
        blkin_heartbeat();
        __atomic_store_n(&server_begins, false, __ATOMIC_RELEASE);
    }
    preload_leave(saved_errno);
}
