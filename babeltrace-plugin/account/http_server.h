/*
 * Connections and answers of HTTP servers with libmicrohttpd. The server accepts connections
 * itself. Without free descriptors, libmicrohttpd would retry at once, for ever. With too many
 * connections, libmicrohttpd would not choose a connection to close.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_ACCOUNT_HTTP_SERVER_H
#define BLKIN_ACCOUNT_HTTP_SERVER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/base/listen.h"

#include <microhttpd.h>
#include <poll.h>
#include <stdint.h>

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

/* ---- a server of a few pages ----------------------------------------------------------------- */

/*
 * A small HTTP server with libmicrohttpd: GET and HEAD of /metrics and a few other pages, one
 * answer per connection.
 *
 * The server has no thread and never blocks: its owner polls, and calls the server when a
 * descriptor is ready. A client has METRICS_CLIENT_MS; the server hangs up on slower clients. At
 * the limit of connections, the client that has been idle for longest is disconnected, so silent
 * clients block nobody.
 */

#define SERVER_CLIENTS    8
#define METRICS_CLIENT_MS 3000

/* Returns the page's text for free(), or NULL when out of memory. */
typedef char *metrics_page_fn(void *context);

struct metrics_server;

/* Listens at "[ADDRESS:]PORT", the value of the setting `key`. Returns NULL with error set. */
struct metrics_server *metrics_server_open(const char *key, const char *where,
                                           metrics_page_fn *page, void *context,
                                           struct error *error);

/* Adds a page with a path such as "/statistics": at most SERVER_PAGES, with /metrics. The caller
 * owns the texts, which must live as long as the server. */
void metrics_server_add(struct metrics_server *server, const char *path, const char *content_type,
                        metrics_page_fn *page);
#define SERVER_PAGES 2

/* Ends all connections. NULL is allowed. */
void metrics_server_close(struct metrics_server *server);

/* Returns a URL such as "http://127.0.0.1:9464/metrics". */
const char *metrics_server_url(const struct metrics_server *server);

#define SERVER_POLLFDS 2

/* Fills all SERVER_POLLFDS of fds; an unused element is -1. Returns the time (clock_ms()) of the
 * next metrics_server_serve() without an event. */
int64_t metrics_server_prepare(struct metrics_server *server, struct pollfd *fds);

/* Serves clients after a poll() of fds. */
void metrics_server_serve(struct metrics_server *server);

#endif
