/*
 * Delivering one batch: encoding, attempts until it has arrived or is given up, and the search for
 * what a collector refuses in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_DELIVERY_H
#define BLKIN_OUTPUT_DELIVERY_H

#include "body.h"
#include "outbox.h"
#include "retry.h"

/* What the operator is told: of each kind of trouble, a message a minute at most. */
enum report {
    REPORT_UNREACHED, /* trying again */
    REPORT_BACK,
    REPORT_UNDELIVERED,
    REPORT_REFUSED,
    REPORT_INVALID,
    REPORT_TOO_LARGE,
    REPORT_DROPPING,
    REPORTS
};

struct reporter {
    void (*report)(void *context, const char *message);
    void *context;
    int64_t next_ms[REPORTS]; /* not before */
};

__attribute__((format(printf, 3, 4))) void reporter_say(struct reporter *reporter, enum report kind,
                                                        const char *format, ...);

struct courier {
    struct outbox *outbox;
    struct transport *transport;
    struct tap *tap; /* is shown each body once; NULL: none */
    struct encoder *encoder;
    struct body body;  /* what is being sent */
    size_t body_bytes; /* more are not sent at once, unless one span alone has them */
    int64_t retry_timeout_ms;
    struct reporter reporter;
    struct retry retry;
    bool is_unreached; /* the last attempt has failed */
    struct reply reply;
};

/* Settles the batch's spans with the outbox, but those that are given up. */
void deliver_batch(struct courier *courier, struct batch *batch);

#endif
