/*
 * The exporter: finished spans in, delivered batches out, each span accounted for.
 *
 * spans = accepted + refused + undelivered + too_large + waiting, always.
 *
 * Not thread-safe. exporter_add() and exporter_flush() may block while a collector is not to be
 * reached, for retry_timeout_ms at most, and not again before it has been reached once more.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_EXPORTER_H
#define BLKIN_OUTPUT_EXPORTER_H

#include "../core/span.h"
#include "transport.h"

struct exporter_options {
    int64_t batch_spans;      /* a batch has at most this many spans */
    int64_t batch_timeout_ms; /* and waits at most this long for them */
    int64_t retry_timeout_ms;
};

struct exporter_counts {
    uint64_t spans;       /* given to exporter_add() */
    uint64_t accepted;    /* by the collector, or written to the file */
    uint64_t refused;     /* by the collector */
    uint64_t undelivered; /* given up after retry_timeout_ms */
    uint64_t too_large;   /* could not be encoded for lack of memory */
    uint64_t waiting;     /* in the batch that is not sent yet */
    uint64_t batches;
    uint64_t cut; /* spans of which parts were left out: see limits.h */
};

/* Called while a retry waits: true ends the wait at once. */
typedef bool exporter_interrupted_fn(void *context);

/* Called once for each kind of failure, and again after a success: a message for the operator. */
typedef void exporter_report_fn(void *context, const char *message);

struct exporter_callbacks {
    exporter_interrupted_fn *interrupted;
    exporter_report_fn *report;
    void *context;
};

struct exporter;

/* Takes the transport over, also on failure. Returns NULL when out of memory. */
struct exporter *exporter_new(struct transport *transport, const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks);

/* Closes the transport; flush first. Returns false, with error set, if that lost something. */
bool exporter_free(struct exporter *exporter, struct error *error);

void exporter_add(struct exporter *exporter, const struct span *span);

/* Sends the batch if it has waited long enough. To be called now and then; cheap. */
void exporter_tick(struct exporter *exporter);

/* Sends what waits. */
void exporter_flush(struct exporter *exporter);

const struct exporter_counts *exporter_counts(const struct exporter *exporter);

#endif
