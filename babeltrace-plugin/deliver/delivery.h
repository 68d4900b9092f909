/*
 * Delivering one batch: encoding, attempts until it has arrived or is given up, and the search for
 * what a collector refuses in it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_DELIVERY_H
#define BLKIN_OUTPUT_DELIVERY_H

#include "babeltrace-plugin/encode/protocol.h"
#include "body.h"
#include "outbox.h"
#include "parts.h"
#include "retry.h"
#include "spool.h"

#include <stdatomic.h>

/* What the operator is told: of each kind of trouble, a message a minute at most. */
/* What is reported begins with a stable id, BK8001 and so on in this order: see blkin-messages(5).
 * A new kind goes to the end, for an id never changes its meaning. */
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

/*
 * Delivers batches of the outbox, or records of the spool: record is not NULL while it is one. With
 * a spool, a batch that the collector does not take now is put in there, and not tried again.
 */
#define POSTED_MAX 256

struct courier {
    const struct protocol *protocol;
    struct outbox *outbox;
    struct spool *spool; /* NULL: none */
    struct batch *batch;
    struct spool_record *record;
    struct transport *transport;
    struct tap *tap; /* is shown each body once; NULL: none */
    /* After each batch, see exporter.h; NULL: nobody wants to know. */
    void (*settled)(void *context, const struct exporter_counts *counts, uint64_t settled);
    void *context;
    struct encoder *encoder;
    struct encoder *tap_encoder; /* NULL: what is sent is what the tap shows */
    struct body body;            /* what is being sent */
    struct body shown;           /* the same for the tap */
    struct parts parts;          /* of the body, for a transport with partitions */
    struct reply *replies;       /* of those that were posted at once; NULL: it has none */
    size_t body_bytes;           /* more are not sent at once, unless one span alone has them */
    int64_t retry_timeout_ms;
    struct reporter *reporter;
    struct retry retry;
    bool is_unreached; /* the last attempt has failed */
    struct reply reply;
};

/* Settles the batch's spans with the outbox, but those that are given up. */
void deliver_batch(struct courier *courier, struct batch *batch);

/* Settles the record's spans, which are the body, with the spool; none that is to be tried again
 * when the spool is stopped. */
void deliver_record(struct courier *courier, struct spool_record *record);

/* Puts what is left of the batch into the spool. Returns false, with error set, if it takes not all
 * of it. */
bool spool_batch(struct courier *courier, struct batch *batch, struct error *error);

/* Tells who wants to know. */
void say_settled(struct courier *courier);

#endif
