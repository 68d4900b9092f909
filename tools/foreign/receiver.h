/*
 * OTLP's HTTP: bodies of POST /v1/traces, bounded in every way, and their answers.
 *
 * A refused request is read to its end before it is answered: many SDKs do not see an answer that
 * comes before.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_FOREIGN_RECEIVER_H
#define BLKIN_TOOLS_FOREIGN_RECEIVER_H

#include "babeltrace-plugin/base/error.h"
#include "options.h"
#include "tools/base/loop.h"
#include "tools/otlp/otlp_decode.h"

/* A message that is taken in steps. */
struct receiver_message {
    struct otlp_decoding decoding;
    uint64_t too_large; /* spans that were refused as such */
};

struct receiver_calls {
    /* May a request be taken? Returns 0, or after how many seconds it may be tried again. */
    unsigned (*busy_s)(void *context);
    /* Takes spans for some ms. Returns false when all were taken. */
    bool (*take)(void *context, struct receiver_message *message);
    void *context;
};

struct receiver;

/* Counts into counts, which live longer. Returns NULL with error set. */
struct receiver *receiver_open(struct loop *loop, const struct foreign_options *options,
                               const struct receiver_calls *calls, struct foreign_counts *counts,
                               struct error *error);
void receiver_close(struct receiver *receiver); /* NULL is allowed */

void receiver_limit(struct receiver *receiver, uint64_t message_bytes, uint64_t connections);

/* "": it listens at none. */
const char *receiver_url(const struct receiver *receiver);
const char *receiver_socket(const struct receiver *receiver);

#endif
