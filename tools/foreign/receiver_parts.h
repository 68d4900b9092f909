/*
 * What the files of the receiver share: connections (receiver_clients.c) and requests (receiver.c).
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOREIGN_RECEIVER_PARTS_H
#define BLKIN_TOOLS_FOREIGN_RECEIVER_PARTS_H

#include "babeltrace-plugin/base/listen.h"
#include "babeltrace-plugin/base/unix_socket.h"
#include "upload.h"
#include "receiver.h"
#include "tools/http/http.h"

#include <urcu/list.h>

/* A connection. */
struct foreign_client {
    int fd;
    bool is_busy;     /* a request is under way */
    bool is_leaving;  /* it was shut down: libmicrohttpd closes it */
    int64_t since_ms; /* it came, or its last request has begun or ended */
    struct cds_list_head in_list;
};

struct receiver {
    struct loop *loop;
    struct receiver_calls calls;
    struct foreign_counts *counts;
    uint64_t message_bytes, most_clients;
    struct http http;
    struct http_door tcp, local;
    bool has_tcp, has_local;
    struct unix_socket local_socket;
    char url[LISTEN_URL_MAX];
    struct timer tick;
    struct cds_list_head clients;    /* the one whose since_ms is the oldest first */
    uint64_t client_count;           /* without those that leave */
    struct foreign_client *admitted; /* while libmicrohttpd takes it */
    uint64_t body_bytes;             /* memory of all bodies */
    struct cds_list_head waiting;    /* requests that wait for the next turn: suspended */
    struct timer turn;
    uint64_t turn_run; /* of libmicrohttpd, */
    int64_t turn_ns;   /* which began then */
    bool is_ending;
};

/* ---- receiver_clients.c ---- */

/* A come_in() of a door. */
void receiver_admit(void *receiver, int fd, const union http_address *from, socklen_t length);
/* A MHD_NotifyConnectionCallback. */
void receiver_notify(void *receiver, struct MHD_Connection *connection, void **place,
                     enum MHD_ConnectionNotificationCode code);
/* A request of its begins or ends. */
void receiver_set_busy(struct receiver *receiver, struct MHD_Connection *connection, bool is_busy);
/* Requests that have taken too long are ended. */
void receiver_end_late(struct receiver *receiver);

#endif
