/*
 * The programs that ask for memories.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "holder_parts.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "users.h"

#include <errno.h>
#include <linux/sockios.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define HOLDER_CLIENTS_MAX 4096
#define HOLDER_SHARES      16 /* a payer may have 1/16 of the clients */

/*
 * A program that asks for a memory. The kernel counts an unread descriptor as the sender's. So
 * clients are limited: programs that never read must not use up the descriptors of this process.
 */
struct holder_client {
    struct holder *holder;
    struct watched watched;
    struct listener_peer peer; /* always busy: the program may not have read the message */
    uint32_t user;
    bool is_unwatched; /* it has asked again or hung up, but has not read the message */
};

static bool holder_has_unread(const struct holder_client *client)
{
    int bytes = 0;

    return ioctl(client->watched.fd, SIOCOUTQ, &bytes) == 0 && bytes > 0;
}

static void holder_end_client(struct holder_client *client)
{
    struct holder *holder = client->holder;

    peers_remove(&holder->clients, &client->peer);
    if (!client->is_unwatched)
        loop_unwatch(holder->loop, &client->watched);
    (void)close(client->watched.fd);
    free(client);
}

static void holder_hang_up(struct listener_peer *peer)
{
    peer->sender->hung_up++;
    holder_end_client(caa_container_of(peer, struct holder_client, peer));
}

/* NULL: out of memory. */
static struct payer *holder_payer(struct holder *holder, uint32_t user)
{
    const struct held *held = held_find(holder->memories, user);
    char name[PAYER_NAME_MAX];

    payer_set_user(name, held ? held->payer : users_owner(user));
    return payers_get(&holder->payers, name);
}

/* Returns false if the program was given no memory. */
static bool holder_answer(struct holder *holder, int fd, uint32_t user, struct payer *payer)
{
    const bool is_unknown = user == holder->unknown_user;
    const bool may_ask =
        !is_unknown && payer && payer->sender.connections < holder->clients.most / HOLDER_SHARES;
    struct held *held = may_ask ? holder_memory_for(holder, user) : NULL;
    const bool is_given = held && memory_send(&held->memory, fd);
    const bool is_refused = !is_given && !(held && (errno == EPIPE || errno == ECONNRESET));

    if (is_given)
        held->given_ms = clock_ms();
    if (payer)
        payer->refused += is_refused;
    holder->counts.unknown += is_unknown;
    holder->counts.given += is_given;
    holder->counts.refused += is_refused;
    return is_given;
}

/* Called when the program asks again, perhaps as another user, or has hung up. */
static void holder_client_ready(void *context)
{
    struct holder_client *client = context;

    if (!holder_has_unread(client)) {
        if (!unix_socket_sender(client->watched.fd, &client->user) ||
            !holder_answer(client->holder, client->watched.fd, client->user,
                           holder_payer(client->holder, client->user)))
            holder_end_client(client);
        return;
    }
    loop_unwatch(client->holder->loop, &client->watched);
    client->is_unwatched = true; /* until it has read the message: see holder_clients_look() */
}

static bool holder_serve(struct holder *holder, int fd)
{
    struct ucred who;
    socklen_t length = sizeof(who);
    struct holder_client *client = calloc(1, sizeof(*client));
    struct payer *payer = NULL;
    bool has_room;

    if (client && getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &length) == 0)
        payer = holder_payer(holder, who.uid);
    has_room = payer && peers_make_room(&holder->clients, &payer->sender);
    if (payer)
        payer->refused += !has_room;
    if (!has_room || !holder_answer(holder, fd, who.uid, payer)) {
        free(client);
        return false;
    }
    *client = (struct holder_client){
        .holder = holder,
        .watched = {.fd = fd, .events = POLLIN, .ready = holder_client_ready, .context = client},
        .user = who.uid};
    peers_add(&holder->clients, &client->peer, fd, &payer->sender);
    client->peer.is_busy = true;
    loop_watch(holder->loop, &client->watched);
    return true;
}

static void holder_accept(void *context, int fd, const union peer_address *from, socklen_t length)
{
    struct holder *holder = context;

    (void)from;
    (void)length;
    if (!holder_serve(holder, fd))
        (void)close(fd);
}

/* Returns the most clients. Unread messages of former clients count as descriptors, too. */
static unsigned holder_clients_max(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return HOLDER_SHARES;
    return limit.rlim_cur / 8 < HOLDER_CLIENTS_MAX ? (unsigned)(limit.rlim_cur / 8)
                                                   : HOLDER_CLIENTS_MAX;
}

void holder_clients_begin(struct holder *holder)
{
    holder->clients = (struct listener_peers){
        .most = holder_clients_max(), .spares_busy = true, .hang_up = holder_hang_up};
    peers_begin(&holder->clients);
    holder->payers = (struct payers){.most = HOLDER_CLIENTS_MAX, .size = sizeof(struct payer)};
    payers_begin(&holder->payers);
}

void holder_clients_accept(struct holder *holder)
{
    holder->accepting = (struct accepting){.take_connection = holder_accept, .context = holder};
    accepting_begin(&holder->accepting, holder->loop, holder->socket.fd);
}

void holder_clients_look(struct holder *holder)
{
    struct holder_client *client;

    cds_list_for_each_entry(client, &holder->clients.list, peer.in_list)
    {
        if (client->is_unwatched && !holder_has_unread(client)) {
            client->is_unwatched = false;
            loop_watch(holder->loop, &client->watched);
        }
    }
}

void holder_clients_end(struct holder *holder)
{
    struct holder_client *client, *next_client;

    accepting_end(&holder->accepting);
    cds_list_for_each_entry_safe(client, next_client, &holder->clients.list, peer.in_list)
        holder_end_client(client);
    payers_end(&holder->payers);
}

const struct payers *holder_payers(const struct holder *holder)
{
    return &holder->payers;
}
