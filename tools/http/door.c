/*
 * Where connections are accepted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "http.h"

#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#define ACCEPTED_MAX 4 /* in each turn of the loop */

static void door_rest(struct http_door *door)
{
    loop_unwatch(door->loop, &door->listening);
    door->rests = true;
}

static void door_is_called(void *context, short events)
{
    struct http_door *door = context;

    (void)events;
    if (door->is_crowded && door->is_crowded(door->context)) {
        door_rest(door);
        return;
    }
    for (unsigned i = 0; i < ACCEPTED_MAX; i++) {
        union http_address from;
        socklen_t length = sizeof(from);
        const int fd =
            accept4(door->listening.fd, &from.any, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd < 0) {
            /* poll() would return at once, again and again: the next tick ends the rest */
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                door_rest(door);
            return;
        }
        door->come_in(door->context, fd, &from, length);
    }
}

void http_door_wake(struct http_door *door)
{
    if (door->rests)
        loop_watch(door->loop, &door->listening);
    door->rests = false;
}

void http_door_open(struct http_door *door, struct loop *loop, int fd)
{
    door->loop = loop;
    door->listening = (struct watched){fd, POLLIN, door_is_called, door, NULL};
    door->rests = false;
    loop_watch(loop, &door->listening);
}

void http_door_close(struct http_door *door)
{
    loop_unwatch(door->loop, &door->listening);
    close(door->listening.fd);
}
