/*
 * What an exchange is made of: what it knows, and the client that reaches the hub.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_EXCHANGE_BACKEND_H
#define BLKIN_TOOLS_EXCHANGE_BACKEND_H

#include "exchange.h"
#include "message.h"
#include "seen.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* So long messages are kept for another side that is away, or that may have lost them: 30 s, and
 * the time until it is noticed that it is back. */
#define EXCHANGE_KEEP_MS    40000
#define EXCHANGE_KEEP_BYTES (16U << 20)

struct http;

struct exchange {
    struct loop *loop;
    struct exchange_callbacks callbacks;
    char host[MESSAGE_HOST_MAX + 1];
    char agent[17]; /* of this process, by chance */
    uint64_t last_post;
    struct seen seen;  /* "post" of what was received */
    struct http *http; /* NULL: we are alone */
    char url[1024];    /* for messages */
    bool is_connected;
    int64_t since_ns;
    char problem[512]; /* "": none */
    json_t *hosts; /* names, ours too: those that were told last and, for a while, former ones */
    json_t *told, *former;
    int64_t former_until_ms;
    uint64_t posted, received, dropped, dropped_traces, refused, malformed;
};

struct http *exchange_http_open(struct exchange *exchange, const struct config *config,
                                struct error *error);
/* Takes the text of a message, which it frees. */
void exchange_http_post(struct http *http, char *text, size_t length);
void exchange_http_close(struct http *http);

/* ---- what the client tells ---- */

void exchange_received(struct exchange *exchange, const json_t *message);

/* The cap has dropped these traces (an array of ids) of this request of ours. */
void exchange_capped(struct exchange *exchange, const json_t *request, const json_t *traces);

/* problem is NULL: connected. */
void exchange_state(struct exchange *exchange, const char *problem);

/* An array of names. */
void exchange_hosts(struct exchange *exchange, const json_t *hosts);

/* Another hub is there: those who have not come to it yet are still there for a while. */
void exchange_hosts_may_change(struct exchange *exchange);
/* Have all of them come, or have had the time? */
bool exchange_hosts_are_back(struct exchange *exchange);

#endif
