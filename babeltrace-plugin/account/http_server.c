/*
 * Connections and answers of HTTP servers.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "http_server.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void sender_count_hang_up(struct listener_sender *sender)
{
    if (sender)
        sender->hung_up++;
}

/* Shuts the socket down. libmicrohttpd notices that at the next MHD_run(), and closes the socket.
 */
static void http_peers_hang_up(void *context, struct listener_peer *peer)
{
    (void)context;
    sender_count_hang_up(peer->sender);
    (void)shutdown(peer->fd, SHUT_RDWR);
}

void http_peers_begin(struct http_peers *http, struct MHD_Daemon *daemon)
{
    http->daemon = daemon;
    http->peers.hang_up = http_peers_hang_up;
    peers_begin(&http->peers);
}

static void http_peers_forget(struct http_peers *http, struct listener_peer *peer)
{
    peers_remove(&http->peers, peer);
    free(peer);
}

void http_peers_admit(struct http_peers *http, int fd, const union peer_address *from,
                      socklen_t length, struct listener_sender *sender)
{
    struct listener_peer *peer =
        peers_make_room(&http->peers, sender) ? malloc(sizeof(*peer)) : NULL;

    if (!peer) {
        sender_count_hang_up(sender);
        close(fd);
        return;
    }
    peers_add(&http->peers, peer, fd, sender);
    http->admitted = peer;
    (void)MHD_add_connection(http->daemon, fd, &from->any, length);
    if (http->admitted) { /* libmicrohttpd has closed the connection without a notification */
        sender_count_hang_up(sender);
        http_peers_forget(http, peer);
    }
    http->admitted = NULL;
}

void http_peers_notify(void *context, struct MHD_Connection *connection, void **peer_slot,
                       enum MHD_ConnectionNotificationCode code)
{
    struct http_peers *http = context;

    (void)connection;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        *peer_slot = http->admitted;
        http->admitted = NULL;
    } else if (*peer_slot) {
        http_peers_forget(http, *peer_slot);
        *peer_slot = NULL;
    }
}

struct listener_peer *http_peer(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

enum MHD_Result http_answer(struct MHD_Connection *connection, unsigned status, const char *type,
                            char *text, const struct http_header *headers)
{
    struct MHD_Response *response =
        text ? MHD_create_response_from_buffer(strlen(text), text, MHD_RESPMEM_MUST_FREE) : NULL;
    enum MHD_Result result;

    if (!response) {
        free(text);
        return MHD_NO; /* ends the connection */
    }
    (void)MHD_add_response_header(response, "Content-Type", type);
    for (; headers->name; headers++) {
        if (headers->status == 0 || headers->status == status)
            (void)MHD_add_response_header(response, headers->name, headers->value);
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}
