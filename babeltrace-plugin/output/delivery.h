/*
 * Delivering one batch: attempts until it has arrived or is given up, and the search for what a
 * collector refuses in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_DELIVERY_H
#define BLKIN_OUTPUT_DELIVERY_H

#include "batch.h"
#include "outbox.h"
#include "reporter.h"
#include "retry.h"

struct courier {
    struct outbox *outbox;
    struct transport *transport;
    const struct encoder *encoder;
    int64_t retry_timeout_ms;
    struct reporter reporter;
    struct retry retry;
    bool is_unreached; /* the last attempt has failed */
    struct reply reply;
};

/* Settles the batch's spans with the outbox, but those that are given up. */
void deliver_batch(struct courier *courier, struct batch *batch);

#endif
