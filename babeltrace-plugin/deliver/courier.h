/*
 * A courier: all that one thread needs to deliver spans, and what it tells the operator.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_COURIER_H
#define BLKIN_OUTPUT_COURIER_H

#include "babeltrace-plugin/encode/protocol.h"
#include "body.h"
#include "outbox.h"
#include "parts.h"
#include "retry.h"
#include "spool.h"

#include <stdatomic.h>

/* What the operator is told: of each kind of trouble, a message a minute at most. */
enum report {
    REPORT_UNREACHED, /* trying again */
    REPORT_BACK,
    REPORT_UNDELIVERED,
    REPORT_REFUSED,
    REPORT_WARNING, /* of a collector that has accepted all */
    REPORT_INVALID,
    REPORT_TOO_LARGE,
    REPORT_POSSIBLY_PERSISTED,
    REPORT_DROPPING,
    REPORT_SPOOLING,
    REPORT_SPOOL_FAILS,
    REPORT_SPOOL_LOSES,
    REPORTS
};

/* Of any thread's. */
struct reporter {
    void (*report)(void *context, const char *message);
    void *context;
    _Atomic int64_t next_ms[REPORTS]; /* not before */
};

__attribute__((format(printf, 3, 4))) void reporter_say(struct reporter *reporter, enum report kind,
                                                        const char *format, ...);

/* A transport with partitions gets at most this many messages at once. */
#define POSTED_MAX 256

/*
 * It delivers batches of the outbox, or records of the spool: record is not NULL while it is one.
 * With a spool, a batch that the collector does not take now goes there, and is not tried again.
 */
struct courier {
    const struct protocol *protocol;
    struct outbox *outbox;
    struct spool *spool; /* NULL: none */
    struct tap *tap;     /* is shown each body once; NULL: none */
    /* After each batch, see exporter.h; NULL: nobody wants to know. */
    void (*settled)(void *context, const struct exporter_counts *counts, uint64_t settled);
    void *context;
    struct reporter *reporter;
    int64_t retry_timeout_ms;
    size_t body_bytes; /* more are not sent at once, unless one span alone has them */

    /* From here on each courier has its own; who puts batches into the spool borrows the transport,
     * of which it asks the partitions. */
    struct transport *transport;
    struct encoder *encoder;
    struct encoder *tap_encoder; /* NULL: what is sent is what the tap shows */
    struct batch *batch;
    struct spool_record *record;
    struct body body;      /* what is being sent */
    struct body shown;     /* the same for the tap */
    struct parts parts;    /* of the body, for a transport with partitions */
    struct reply *replies; /* to what was posted at once: POSTED_MAX; NULL: no partitions */
    struct retry retry;
    bool is_unreached; /* the last attempt has failed */
    struct reply reply;
};

#endif
