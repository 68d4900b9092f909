/* SPDX-License-Identifier: BSD-2-Clause */
#include "otlp_peers.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void otlp_peer_name_four(char name[PAYER_NAME_MAX], const void *address)
{
    if (*(const uint8_t *)address == 127)
        (void)snprintf(name, PAYER_NAME_MAX, "loopback");
    else
        (void)inet_ntop(AF_INET, address, name, PAYER_NAME_MAX);
}

static void otlp_peer_name_six(char name[PAYER_NAME_MAX], struct in6_addr address)
{
    char text[INET6_ADDRSTRLEN];

    if (IN6_IS_ADDR_V4MAPPED(&address)) {
        otlp_peer_name_four(name, &address.s6_addr[12]);
        return;
    }
    if (IN6_IS_ADDR_LOOPBACK(&address)) {
        (void)snprintf(name, PAYER_NAME_MAX, "loopback");
        return;
    }
    memset(&address.s6_addr[8], 0, 8);
    (void)snprintf(name, PAYER_NAME_MAX, "%s/64",
                   inet_ntop(AF_INET6, &address, text, sizeof(text)));
}

static void otlp_peer_set_name(char name[PAYER_NAME_MAX], int fd, const union peer_address *from)
{
    struct ucred user;
    socklen_t length = sizeof(user);

    name[0] = '\0';
    if (from->any.sa_family == AF_INET)
        otlp_peer_name_four(name, &from->four.sin_addr);
    else if (from->any.sa_family == AF_INET6)
        otlp_peer_name_six(name, from->six.sin6_addr);
    else if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &user, &length) == 0)
        payer_set_user(name, user.uid);
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

    counts.hung_up += peer->payer.sender.hung_up;
    counts.spans_overwritten += sdk_store_held(peer->store).overwritten;
    return counts;
}

struct otlp_counts otlp_peers_counts(const struct otlp_peers *peers)
{
    struct otlp_counts sum = peers->gone;
    const struct otlp_peer *peer;

    cds_list_for_each_entry(peer, &peers->payers.list, payer.in_list)
    {
        const struct otlp_counts counts = otlp_peer_counts(peer);

        otlp_counts_add(&sum, &counts);
    }
    return sum;
}

static bool otlp_peer_begin(void *context, struct payer *payer)
{
    struct otlp_peers *peers = context;
    struct otlp_peer *peer = caa_container_of(payer, struct otlp_peer, payer);

    peer->store = sdk_store_new(&peers->memory);
    return peer->store != NULL;
}

/* Frees the sender's store. The held spans of the sender count as overwritten. */
static void otlp_peer_end(void *context, struct payer *payer)
{
    struct otlp_peers *peers = context;
    struct otlp_peer *peer = caa_container_of(payer, struct otlp_peer, payer);
    struct otlp_counts counts = otlp_peer_counts(peer);

    counts.spans_overwritten += sdk_store_held(peer->store).spans;
    otlp_counts_add(&peers->gone, &counts);
    sdk_store_free(peer->store);
}

struct otlp_peer *otlp_peers_find(struct otlp_peers *peers, int fd, const union peer_address *from)
{
    char name[PAYER_NAME_MAX];
    struct payer *payer;

    otlp_peer_set_name(name, fd, from);
    payer = payers_get(&peers->payers, name);
    return payer ? caa_container_of(payer, struct otlp_peer, payer) : NULL;
}

void otlp_peers_begin(struct otlp_peers *peers, uint64_t memory_bytes)
{
    *peers = (struct otlp_peers){.payers = {.most = OTLP_PEERS_MAX,
                                            .size = sizeof(struct otlp_peer),
                                            .begin = otlp_peer_begin,
                                            .end = otlp_peer_end,
                                            .context = peers}};
    payers_begin(&peers->payers);
    sdk_memory_begin(&peers->memory, memory_bytes);
}

void otlp_peers_end(struct otlp_peers *peers)
{
    payers_end(&peers->payers);
}
