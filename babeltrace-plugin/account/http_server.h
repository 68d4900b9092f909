/*
 * Connections and answers of HTTP servers with libmicrohttpd. The server accepts connections
 * itself. Without free descriptors, libmicrohttpd would retry at once, for ever. With too many
 * connections, libmicrohttpd would not choose a connection to close.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_HTTP_SERVER_H
#define BLKIN_ACCOUNT_HTTP_SERVER_H

#include "babeltrace-plugin/base/listener.h"

#include <microhttpd.h>

/* Since 0.9.77, MHD_add_connection() only queues the connection, unless a flag says that there is
 * one thread. */
#if MHD_VERSION >= 0x00097707
#define HTTP_ONE_THREAD MHD_USE_NO_THREAD_SAFETY
#else
#define HTTP_ONE_THREAD 0U
#endif

/* For MHD_start_daemon(), with the server's other flags. */
#define HTTP_FLAGS (MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | HTTP_ONE_THREAD)

struct http_peers {
    struct listener_peers peers; /* the owner sets its limits */
    struct MHD_Daemon *daemon;
    struct listener_peer *admitted; /* the connection that is passed to libmicrohttpd */
};

/* The server owns the daemon, which may be NULL. */
void http_peers_begin(struct http_peers *http, struct MHD_Daemon *daemon);

/* Passes an accepted connection to libmicrohttpd. The sender, if not NULL, counts its connections
 * that were hung up on or refused. */
void http_peers_admit(struct http_peers *http, int fd, const union peer_address *from,
                      socklen_t length, struct listener_sender *sender);

/* The daemon's MHD_OPTION_NOTIFY_CONNECTION, with a struct http_peers. */
void http_peers_notify(void *http, struct MHD_Connection *connection, void **peer_slot,
                       enum MHD_ConnectionNotificationCode code);

struct listener_peer *http_peer(struct MHD_Connection *connection);

struct http_header {
    unsigned status; /* only for this status; 0: for all */
    const char *name, *value;
};

/* Answers, and frees the text. A text NULL (out of memory) ends the connection. The headers end
 * with a name of NULL. */
enum MHD_Result http_answer(struct MHD_Connection *connection, unsigned status, const char *type,
                            char *text, const struct http_header *headers);

#endif
