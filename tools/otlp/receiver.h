/*
 * Receives spans by HTTP (OTLP): reads the bodies of POST /v1/traces, and answers. Limits the size,
 * the time, the memory and the number of requests.
 *
 * Reads a refused request to its end before the answer, because many SDKs miss an earlier answer.
 * Only a request whose head says that the body is too large is answered at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_OTLP_RECEIVER_H
#define BLKIN_TOOLS_OTLP_RECEIVER_H

#include "babeltrace-plugin/base/error.h"
#include "otlp_decode.h"
#include "otlp_peers.h"
#include "tools/base/loop.h"

/* A request whose spans are taken in steps. */
struct receiver_message {
    struct otlp_peer *sender;
    struct otlp_decoding decoding;
    uint64_t too_large; /* spans that were refused as too large */
    uint64_t no_memory; /* spans that were refused because memory ran out */
};

struct receiver_calls {
    /* Returns 0 if the sender may send a request now, else the seconds after which to retry. */
    unsigned (*busy_s)(void *context, struct otlp_peer *peer);
    /* Takes spans for some ms. Returns false when all were taken, or at a fault. */
    bool (*take)(void *context, struct receiver_message *message);
    void *context;
};

struct receiver;

/* Listens at an address and at the path of a Unix socket. Either may be NULL or "". `senders` must
 * outlive the receiver. Returns NULL with error set. */
struct receiver *receiver_open(struct loop *loop, const char *listen, const char *socket,
                               const struct receiver_calls *calls, struct otlp_peers *senders,
                               struct error *error);
void receiver_close(struct receiver *receiver); /* NULL is allowed */

/* Return the URL and the path of the Unix socket; "": not used. */
const char *receiver_url(const struct receiver *receiver);
const char *receiver_socket(const struct receiver *receiver);

#endif
