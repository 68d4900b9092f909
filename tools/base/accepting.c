/*
 * Listeners in a loop.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "accepting.h"

#include <poll.h>

#define ACCEPTED_MAX 8 /* connections in one turn of the loop */

static void accepting_back_off(struct accepting *accepting)
{
    loop_unwatch(accepting->loop, &accepting->watched);
    timer_set(accepting->loop, &accepting->again, LISTENER_BACKOFF_MS);
}

static void accepting_again(void *context)
{
    struct accepting *accepting = context;

    loop_watch(accepting->loop, &accepting->watched);
}

static void accepting_ready(void *context, short events)
{
    struct accepting *accepting = context;

    (void)events;
    for (int i = 0; i < ACCEPTED_MAX; i++) {
        union peer_address from;
        socklen_t length;
        int fd;

        if (accepting->is_crowded && accepting->is_crowded(accepting->context)) {
            accepting_back_off(accepting);
            return;
        }
        fd = listener_accept(&accepting->listener, &from, &length);
        if (fd < 0 && accepting->listener.until_ms)
            accepting_back_off(accepting);
        if (fd < 0)
            return;
        accepting->come_in(accepting->context, fd, &from, length);
    }
}

void accepting_begin(struct accepting *accepting, struct loop *loop, int fd)
{
    accepting->loop = loop;
    accepting->listener = (struct listener){fd, 0};
    accepting->watched = (struct watched){fd, POLLIN, accepting_ready, accepting, NULL};
    accepting->again = (struct timer){.due = accepting_again, .context = accepting};
    loop_watch(loop, &accepting->watched);
}

void accepting_end(struct accepting *accepting)
{
    if (!accepting->loop)
        return;
    loop_unwatch(accepting->loop, &accepting->watched);
    timer_clear(accepting->loop, &accepting->again);
    accepting->loop = NULL;
}
