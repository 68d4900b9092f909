/*
 * Accepts and ends connections.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "listener.h"

#include "monotonic.h"

#include <errno.h>

int listener_accept(struct listener *listener, union peer_address *from, socklen_t *length)
{
    int fd;

    if (listener->until_ms > clock_ms())
        return -1;
    listener->until_ms = 0;
    *length = sizeof(*from);
    do
        fd = accept4(listener->fd, &from->any, length, SOCK_NONBLOCK | SOCK_CLOEXEC);
    while (fd < 0 && (errno == EINTR || errno == ECONNABORTED));
    if (fd < 0 && errno != EAGAIN)
        listener->until_ms = clock_ms() + LISTENER_BACKOFF_MS;
    return fd;
}

void peers_begin(struct listener_peers *peers)
{
    peers->count = 0;
    CDS_INIT_LIST_HEAD(&peers->list);
}

static void peers_hang_up(struct listener_peers *peers, struct listener_peer *peer)
{
    peer->is_leaving = true;
    peers->count--;
    if (peer->sender) {
        peer->sender->connections--;
        peer->sender->leaving++;
    }
    peers->hang_up(peers->context, peer);
}

bool peers_make_room(struct listener_peers *peers, const struct listener_sender *sender)
{
    const struct listener_sender *from = sender;
    struct listener_peer *peer, *oldest = NULL;

    if (peers->count < peers->most)
        return true;
    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        if (peer->sender && peer->sender->connections > from->connections + (from == sender))
            from = peer->sender;
    }
    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        if (peer->sender == from && !peer->is_leaving &&
            (!oldest || (oldest->is_busy && !peer->is_busy)))
            oldest = peer;
    }
    if (!oldest || (oldest->is_busy && peers->spares_busy && from == sender))
        return false;
    peers_hang_up(peers, oldest);
    return true;
}

void peers_add(struct listener_peers *peers, struct listener_peer *peer, int fd,
               struct listener_sender *sender)
{
    *peer = (struct listener_peer){.fd = fd, .sender = sender, .since_ms = clock_ms()};
    cds_list_add_tail(&peer->in_list, &peers->list);
    peers->count++;
    if (sender)
        sender->connections++;
}

void peers_remove(struct listener_peers *peers, struct listener_peer *peer)
{
    peers->count -= !peer->is_leaving;
    if (peer->sender) {
        peer->sender->connections -= !peer->is_leaving;
        peer->sender->leaving -= peer->is_leaving;
    }
    cds_list_del(&peer->in_list);
}

void peer_touch(struct listener_peers *peers, struct listener_peer *peer)
{
    peer->since_ms = clock_ms();
    cds_list_del(&peer->in_list);
    cds_list_add_tail(&peer->in_list, &peers->list);
}

int64_t peers_end_late(struct listener_peers *peers)
{
    const int64_t now_ms = clock_ms();
    struct listener_peer *peer, *next;

    cds_list_for_each_entry_safe(peer, next, &peers->list, in_list)
    {
        if (peer->is_leaving || (!peer->is_busy && peers->spares_idle))
            continue;
        if (peer->since_ms + peers->time_ms > now_ms)
            return peer->since_ms + peers->time_ms;
        peers_hang_up(peers, peer);
    }
    return CLOCK_NEVER;
}
