/*
 * What the files of the hub's HTTP share: connections (gate.c accepts them, clients.c bounds their
 * number), what recorders get, wait for and post (messages.c), libmicrohttpd in the loop, and
 * answers (server.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_HUB_PARTS_H
#define BLKIN_TOOLS_HUB_PARTS_H

#include "server.h"
#include "tools/http/http.h"

#define BODY_MAX   MESSAGE_MAX
#define STRANGER_S 10 /* a connection has so long to show who it is */

/* A connection. */
struct client {
    struct MHD_Connection *connection; /* NULL: it is at the gate */
    int fd;
    union peer_address from;
    socklen_t from_length;
    struct in6_addr address; /* of IPv6 the network's half: the owner of one address has them all */
    int64_t since_ms;        /* of a stranger: it came, or it was allowed a request */
    struct clients *of;      /* the list that it is in; NULL: it is being closed */
    struct cds_list_head in_clients;
    /* the gate's: */
    bool has_shaken_hands;
    struct client_queue *queue; /* NULL: none */
    struct cds_list_head in_queue;
};

/* The oldest one first. */
struct client_queue {
    struct cds_list_head clients;
    unsigned count;
};

#define STRANGERS_MAX 1024 /* with TLS, 30 KiB each */
#define GATE_PLACES   1024

/* Where connections are accepted. */
struct gate {
    struct accepting door;
    struct watched epoll; /* TLS connections whose ClientHello has not come */
    struct timer again;
    unsigned most; /* connections of all kinds */
    unsigned at_gate;
    struct client_queue ready, under_way; /* the ClientHello has come; the handshake has begun */
    struct client *admitted;              /* while libmicrohttpd takes it */
    uint64_t seed;
    unsigned of_address[GATE_PLACES]; /* handshakes that are under way, by hash of the address */
    unsigned ready_of[GATE_PLACES];   /* those that are ready, by the same */
    unsigned ready_places;            /* in use of these */
};

struct request {
    struct server *server;
    struct MHD_Connection *connection;
    struct buffer body;
    bool is_too_long, is_too_much; /* for a body; for all bodies together */
    /* one that waits: */
    struct host *host; /* NULL: it does not wait */
    int64_t until_ms;
    struct cds_list_head in_waiting;
};

struct server {
    struct loop *loop;
    struct http http;
    struct board *board;
    struct access *access;
    server_page_fn *page;
    void *page_context;
    struct timer tick, wake;
    struct clients strangers; /* connections that have not shown who they are */
    struct gate gate;
    struct cds_list_head waiting; /* requests */
    size_t waiting_count;
    struct pollfd *fds; /* of those who wait */
    size_t fds_room;
    size_t upload_bytes;
    int64_t woken_ms;
    uint64_t told_version; /* of the hosts: all who waited then know it */
    struct server_counts counts;
};

/* ---- server.c ---- */

/* text is freed, also if this fails; NULL: there was no memory for it. */
enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *type,
                       char *text);
enum MHD_Result answer_json(struct MHD_Connection *connection, unsigned status, json_t *json);
/* And counts it. */
enum MHD_Result deny(struct server *server, struct MHD_Connection *connection, unsigned status,
                     const char *why);

/* ---- gate.c ---- */

/* fd listens. Returns false with errno set. */
bool gate_open(struct server *server, int fd, unsigned most);
/* fd is closed, too. */
void gate_close(struct server *server);
void gate_tick(struct server *server);
/* libmicrohttpd has taken it: the gate is told when its handshake ends. */
void gate_watch_handshake(struct client *client);
/* It is in none of the gate's queues then. */
void gate_leave(struct server *server, struct client *client);

/* ---- clients.c ---- */

/* A stranger that was accepted; closes the oldest one, if there are too many. NULL: no memory. */
struct client *clients_new(struct server *server, int fd, const union peer_address *from,
                           socklen_t length);
/* Of one that libmicrohttpd does not know. The descriptor stays open. */
void clients_free(struct server *server, struct client *client);
/* It is freed, or libmicrohttpd sees that its other end has gone, and tells. */
void clients_hang_up(struct server *server, struct client *client);
/* The stranger's request is allowed: its time begins again. */
void clients_go_on(struct MHD_Connection *connection);
/* Strangers that have taken too long are closed, also those that send a byte now and then. */
void clients_look_for_slow(struct server *server);

/* A MHD_NotifyConnectionCallback. */
void clients_notify(void *server, struct MHD_Connection *connection, void **place,
                    enum MHD_ConnectionNotificationCode code);
/* The connection speaks for this host. Closes the host's oldest one, if there are too many. */
void clients_know(struct server *server, struct MHD_Connection *connection, struct host *host);

/* ---- messages.c ---- */

void waiting_end(struct request *request);
/* Its handler is called again, and answers. */
void waiting_resume(struct request *request);
/* Those for whom there are messages. */
void waiting_wake(struct server *server);
/* Those who have waited for long enough, and all, if other hosts are there now. */
void waiting_answer_late(struct server *server, int64_t now_ms);
/* libmicrohttpd does not look at suspended connections: whose other end has gone is seen here. */
void waiting_look_for_gone(struct server *server);

/* The host whose name the request has; NULL after it has answered. */
struct host *messages_host(struct server *server, struct MHD_Connection *connection,
                           enum MHD_Result *result);
const char *messages_host_name(struct MHD_Connection *connection);
/* May it post now? An earlier post may have been too much for a while. */
bool messages_may_post(struct host *host);
enum MHD_Result messages_give(struct request *request);
void messages_take_body(struct request *request, const char *data, size_t size);
enum MHD_Result messages_take(struct request *request);

#endif
