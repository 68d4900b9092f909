/*
 * What the files of the exchange share: its state, and who does what with it.
 *
 * connection.c reaches the hub, posting.c sends messages to it, receiving.c gets messages and the
 * names of hosts from it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_EXCHANGE_PARTS_H
#define BLKIN_TOOLS_EXCHANGE_PARTS_H

#include "exchange.h"
#include "message.h"
#include "queue.h"
#include "seen.h"
#include "token.h"
#include "transfer.h"

/* The exchange keeps messages this long for a hub that is away, or that may have lost them: 30 s,
 * and the time until the exchange notices that the hub is back. */
#define EXCHANGE_KEEP_MS    40000
#define EXCHANGE_KEEP_BYTES (16U << 20)
#define EXCHANGE_URL_MAX    2048 /* of a request */

struct exchange {
    struct loop *loop;
    struct exchange_callbacks callbacks;
    char host[MESSAGE_HOST_MAX + 1];
    char agent[17]; /* a random name of this process */

    char url[EXCHANGE_URL_MAX - 1024]; /* of the hub, without a / at its end; "": there is none */
    struct curl_slist *headers;
    struct transfers transfers;
    struct transfer poll, post;
    bool is_connected;
    int64_t since_ns;
    char problem[512]; /* "": none */

    uint64_t last_post;
    struct items waiting, sending, sent;
    struct buffer body;
    uint64_t posted, dropped, refused;

    struct seen seen;        /* "post" of what was received */
    char boot[BOOT_MAX + 1]; /* of the hub, as of the last poll; "": none yet */
    uint64_t after, hosts_version;
    json_t
        *hosts; /* names, ours first: those that the hub told last and, for a while, former ones */
    json_t *told, *former;
    int64_t former_until_ms;
    uint64_t received, dropped_traces, malformed;
};

/* ---- connection.c ---- */

/* Prepares both transfers as the configuration says. Returns false with error set. */
bool exchange_connect(struct exchange *exchange, const struct config *config, struct error *error);

/* Notes how it is, and logs a change. problem is NULL: connected. */
void exchange_state(struct exchange *exchange, const char *problem);

/* The transfer has failed, and is tried again: code tells why, or else what the hub has answered.
 */
void exchange_fail(struct exchange *exchange, struct transfer *transfer, CURLcode code,
                   long status);

/* Starts a request to this URL, or has it tried again. */
void exchange_start(struct exchange *exchange, struct transfer *transfer, const char *url);

/* ---- posting.c ---- */

/* Takes the text of a message, which it frees. */
void exchange_queue(struct exchange *exchange, char *text, size_t length);
void exchange_post_next(void *exchange);
void exchange_post_done(void *exchange, CURLcode code, long status);

/* Posts what waits, and once more what another hub than exchange->boot has taken. */
void exchange_repost(struct exchange *exchange);

/* ---- receiving.c ---- */

void exchange_poll_next(void *exchange);
void exchange_poll_done(void *exchange, CURLcode code, long status);

/* An array of names. */
void exchange_set_hosts(struct exchange *exchange, const json_t *hosts);

#endif
