/*
 * A connection to another daemon of the example storage stack, made when it is needed.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#define _GNU_SOURCE
#include "peer.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int peer_resolve(struct peer_address *address, const char *text)
{
    address->text = text;
    return net_resolve(text, &address->net);
}

void peer_init(struct peer *peer, const struct peer_address *address, int timeout_s)
{
    *peer = (struct peer){.address = address, .timeout_s = timeout_s, .fd = -1};
}

void peer_close(struct peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

/* A late reply would be taken for that to the next request: hence a new connection. */
int peer_fail(struct peer *peer, int error)
{
    if (!peer->was_reported)
        fprintf(stderr, "%s: %s: %s\n", program_invocation_short_name, peer->address->text,
                strerror(error));
    peer->was_reported = 1;
    peer_close(peer);
    return error;
}

int peer_send(struct peer *peer, const struct wire_message *request, const void *data)
{
    int rc = 0;

    if (peer->fd < 0)
        rc = peer->fd = net_connect(&peer->address->net, peer->timeout_s, NULL);
    if (rc >= 0)
        rc = wire_send_request(peer->fd, request, data);
    return rc < 0 ? peer_fail(peer, -rc) : 0;
}

int peer_receive(struct peer *peer, const struct wire_message *request, void *data)
{
    int status = 0;
    int rc = wire_receive_reply(peer->fd, request, data, &status);

    if (rc < 0)
        return peer_fail(peer, -rc);
    peer->was_reported = 0;
    return status;
}
