/*
 * Senders of spans.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "otlp_peers.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_ROOM sizeof(((struct otlp_peer *)NULL)->name)

static void otlp_peer_name_four(char name[NAME_ROOM], const void *address)
{
    if (*(const uint8_t *)address == 127)
        (void)snprintf(name, NAME_ROOM, "loopback");
    else
        (void)inet_ntop(AF_INET, address, name, NAME_ROOM);
}

static void otlp_peer_name_six(char name[NAME_ROOM], struct in6_addr address)
{
    char text[INET6_ADDRSTRLEN];

    if (IN6_IS_ADDR_V4MAPPED(&address)) {
        otlp_peer_name_four(name, &address.s6_addr[12]);
        return;
    }
    if (IN6_IS_ADDR_LOOPBACK(&address)) {
        (void)snprintf(name, NAME_ROOM, "loopback");
        return;
    }
    memset(&address.s6_addr[8], 0, 8);
    (void)snprintf(name, NAME_ROOM, "%s/64", inet_ntop(AF_INET6, &address, text, sizeof(text)));
}

static void otlp_peer_set_name(char name[NAME_ROOM], int fd, const union peer_address *from)
{
    struct ucred user;
    socklen_t length = sizeof(user);

    name[0] = '\0';
    if (from->any.sa_family == AF_INET)
        otlp_peer_name_four(name, &from->four.sin_addr);
    else if (from->any.sa_family == AF_INET6)
        otlp_peer_name_six(name, from->six.sin6_addr);
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) == 0)
        (void)snprintf(name, NAME_ROOM, "user %u", (unsigned)user.uid);
}

static void otlp_counts_add(struct otlp_counts *sum, const struct otlp_counts *counts)
{
    uint64_t *to = &sum->requests;
    const uint64_t *from = &counts->requests;

    for (size_t i = 0; i < sizeof(*sum) / sizeof(*to); i++)
        to[i] += from[i];
}

struct otlp_counts otlp_peer_counts(const struct otlp_peer *peer)
{
    struct otlp_counts counts = peer->counts;

    counts.hung_up += peer->sender.hung_up;
    counts.spans_overwritten += sdk_store_held(peer->store).overwritten;
    return counts;
}

struct otlp_counts otlp_peers_counts(const struct otlp_peers *peers)
{
    struct otlp_counts sum = peers->gone;
    const struct otlp_peer *peer;

    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        const struct otlp_counts counts = otlp_peer_counts(peer);

        otlp_counts_add(&sum, &counts);
    }
    return sum;
}

/* Removes a sender and its spans, which count as overwritten. */
static void otlp_peer_drop(struct otlp_peers *peers, struct otlp_peer *peer)
{
    struct otlp_counts counts = otlp_peer_counts(peer);

    counts.spans_overwritten += sdk_store_held(peer->store).spans;
    otlp_counts_add(&peers->gone, &counts);
    sdk_store_free(peer->store);
    cds_list_del(&peer->in_list);
    peers->count--;
    free(peer);
}

/* Of the senders without open connections, drops the one that connected longest ago. Returns false
 * if there is none. */
static bool otlp_peers_make_room(struct otlp_peers *peers)
{
    struct otlp_peer *peer, *oldest = NULL;

    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        if (peer->sender.connections + peer->sender.leaving == 0 &&
            (!oldest || peer->came_ms < oldest->came_ms))
            oldest = peer;
    }
    if (oldest)
        otlp_peer_drop(peers, oldest);
    return oldest != NULL;
}

static struct otlp_peer *otlp_peers_known(const struct otlp_peers *peers, const char *name)
{
    struct otlp_peer *peer;

    cds_list_for_each_entry(peer, &peers->list, in_list)
    {
        if (strcmp(peer->name, name) == 0)
            return peer;
    }
    return NULL;
}

struct otlp_peer *otlp_peers_find(struct otlp_peers *peers, int fd, const union peer_address *from)
{
    char name[NAME_ROOM];
    struct otlp_peer *peer;

    otlp_peer_set_name(name, fd, from);
    peer = otlp_peers_known(peers, name);
    if (!peer && peers->count >= OTLP_PEERS_MAX && !otlp_peers_make_room(peers)) {
        (void)snprintf(name, sizeof(name), "others");
        peer = otlp_peers_known(peers, name);
    }
    if (!peer && (peer = calloc(1, sizeof(*peer)))) {
        peer->store = sdk_store_new(&peers->memory);
        if (!peer->store) {
            free(peer);
            return NULL;
        }
        memcpy(peer->name, name, sizeof(name));
        cds_list_add_tail(&peer->in_list, &peers->list);
        peers->count++;
    }
    if (peer)
        peer->came_ms = clock_ms();
    return peer;
}

void otlp_peers_begin(struct otlp_peers *peers, uint64_t memory_bytes)
{
    *peers = (struct otlp_peers){.count = 0};
    CDS_INIT_LIST_HEAD(&peers->list);
    sdk_memory_begin(&peers->memory, memory_bytes);
}

void otlp_peers_end(struct otlp_peers *peers)
{
    struct otlp_peer *peer, *next;

    cds_list_for_each_entry_safe(peer, next, &peers->list, in_list) otlp_peer_drop(peers, peer);
}
