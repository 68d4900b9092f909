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

/*
 * Messages for the operator: at most one a minute of each kind. Each begins with a stable id:
 * BK8001 and so on, in this order (see blkin-messages(5)). A new kind goes to the end, because an
 * id never changes its meaning.
 */
enum report {
    REPORT_UNREACHED, /* the sender retries */
    REPORT_BACK,
    REPORT_UNDELIVERED,
    REPORT_REFUSED,
    REPORT_WARNING, /* the collector accepted all spans, but has a remark */
    REPORT_INVALID,
    REPORT_TOO_LARGE,
    REPORT_POSSIBLY_PERSISTED,
    REPORT_DROPPING,
    REPORT_SPOOLING,
    REPORT_SPOOL_FAILS,
    REPORT_SPOOL_LOSES,
    REPORTS
};

/* Any thread may use it. */
struct reporter {
    void (*report)(void *context, const char *message);
    void *context;
    _Atomic int64_t next_ms[REPORTS]; /* no message of this kind before */
};

__attribute__((format(printf, 3, 4))) void reporter_say(struct reporter *reporter, enum report kind,
                                                        const char *format, ...);

/* A transport with partitions gets at most this many messages at once. */
#define POSTED_MAX 256

/*
 * A courier delivers batches of the outbox, or records of the spool: then record is not NULL. With
 * a spool, a batch that the collector does not take at once goes to the spool.
 */
struct courier {
    const struct protocol *protocol;
    struct outbox *outbox;
    struct spool *spool;                          /* NULL: none */
    void (*taken)(void *context, uint64_t spans); /* see exporter.h; may be NULL */
    void *context;
    struct reporter *reporter;
    int64_t retry_timeout_ms;
    size_t body_bytes; /* the limit of a body, unless a single span is larger */

    /* Each courier has its own of all that follows. Only the spooler borrows its transport, to ask
     * for the number of partitions. */
    struct transport *transport;
    struct encoder *encoder;
    struct batch *batch;
    struct spool_record *record;
    struct body body;      /* the spans being sent */
    struct parts parts;    /* of the body, for a transport with partitions */
    struct reply *replies; /* POSTED_MAX replies to posted messages; NULL: no partitions */
    struct retry retry;
    bool is_unreached; /* the last attempt has failed */
    struct reply reply;
};

#endif
