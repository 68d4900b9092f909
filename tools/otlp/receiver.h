/*
 * OTLP's HTTP: bodies of POST /v1/traces, bounded in every way, and their answers.
 *
 * A refused request is read to its end before its answer: many SDKs do not see an earlier answer.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_RECEIVER_H
#define BLKIN_TOOLS_OTLP_RECEIVER_H

#include "babeltrace-plugin/base/error.h"
#include "otlp_decode.h"
#include "otlp_peers.h"
#include "tools/base/loop.h"

/* A message that is taken in steps. */
struct receiver_message {
    struct otlp_peer *peer; /* the sender */
    struct otlp_decoding decoding;
    uint64_t too_large; /* spans that were refused as such */
};

struct receiver_calls {
    /* May a request be taken? Returns 0, or the number of seconds after which to try again. */
    unsigned (*busy_s)(void *context, struct otlp_peer *peer);
    /* Takes spans for some ms. Returns false when all were taken. */
    bool (*take)(void *context, struct receiver_message *message);
    void *context;
};

struct receiver;

/* Listens at an address and at the path of a Unix socket, of which either may be NULL or "". The
 * peers, with their counts, live longer. Returns NULL with error set. */
struct receiver *receiver_open(struct loop *loop, const char *listen, const char *socket,
                               const struct receiver_calls *calls, struct otlp_peers *senders,
                               struct error *error);
void receiver_close(struct receiver *receiver); /* NULL is allowed */

void receiver_limit(struct receiver *receiver, uint64_t message_bytes, uint64_t connections);

/* "": no port. */
const char *receiver_url(const struct receiver *receiver);
const char *receiver_socket(const struct receiver *receiver);

#endif
