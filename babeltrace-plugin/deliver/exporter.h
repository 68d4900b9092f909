/*
 * The exporter: finished spans in, delivered batches out, each span accounted for (counts.h).
 *
 * The graph's thread calls all functions. The exporter's own threads send, so the graph waits for
 * the network only if on_full says so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_EXPORTER_H
#define BLKIN_OUTPUT_EXPORTER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/span.h"
#include "counts.h"
#include "spool.h"
#include "transport.h"

/* What exporter_add() does while the queue is full. */
enum on_full {
    ON_FULL_AUTO,       /* block until exporter_set_live() is called, then drop */
    ON_FULL_BLOCK,      /* wait for room: back-pressure */
    ON_FULL_DROP_OLDEST /* drop the oldest batch */
};

struct exporter_options {
    struct transport_options transport; /* the exporter sets the protocol in it */
    enum protocol_format format;
    bool require_collector;   /* the collector must answer before exporter_new() returns */
    int64_t batch_spans;      /* a batch has at most this many spans */
    int64_t batch_bytes;      /* and this many bytes */
    int64_t batch_timeout_ms; /* and waits at most this long for them */
    int64_t queue_bytes;      /* memory for spans that are not delivered yet */
    enum on_full on_full;

    /*
     * While the graph waits (the exporter blocks or flushes), the exporter gives up all delivery
     * after this time without success: see exporter_has_failed(). While the graph does not wait, a
     * collector may be away for any time, as long as the queue has room. Then the exporter gives up
     * a single batch after this time, if the collector answers but never takes this batch.
     */
    int64_t retry_timeout_ms;
    int64_t flush_timeout_ms; /* how long exporter_close() may take to deliver what waits */
    int64_t requests;         /* how many HTTP requests run at once; at least 1 */

    /*
     * The spool gets batches that the collector does not take now, or, if the graph does not wait,
     * does not take fast enough. The next exporter sends what this one leaves there.
     */
    struct spool_options spool;
};

/* The exporter calls this on the graph's thread while the graph waits. true ends the wait, and all
 * that is not delivered after flush_timeout_ms is lost. */
typedef bool exporter_interrupted_fn(void *context);

/* Any thread calls this with a message for the operator. */
typedef void exporter_report_fn(void *context, const char *message);

/* A thread that delivers calls this before it sends a batch: of so many spans, or fewer, the
 * sending has begun. */
typedef void exporter_taken_fn(void *context, uint64_t spans);

struct exporter_callbacks {
    exporter_interrupted_fn *interrupted;
    exporter_report_fn *report;
    void *context;
    exporter_taken_fn *taken; /* may be NULL */
};

struct exporter;

/* The protocol of the options, and their endpoint or, if they have none, the protocol's. */
const struct protocol *exporter_protocol(const struct exporter_options *options);
const char *exporter_endpoint(const struct exporter_options *options);

/* Returns NULL with error set, also if what answers is no collector. */
struct exporter *exporter_new(const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks, struct error *error);

/* Copies the span, but not its endpoints: struct span tells how long they must live. */
void exporter_add(struct exporter *exporter, const struct span *span);

/*
 * Checks for an interruption; a caller that adds many spans in a row calls it now and then. From an
 * interruption on, the exporter has flush_timeout_ms for all deliveries. Returns whether delivery
 * ends at a known time.
 */
bool exporter_heed_interruption(struct exporter *exporter);

/* The trace is live: if the graph waited for the collector, LTTng would lose events. */
void exporter_set_live(struct exporter *exporter);

/*
 * Has all delivery failed: was the collector away for retry_timeout_ms while the graph waited? Then
 * error is set, and the exporter counts all spans as undelivered from now on.
 */
bool exporter_has_failed(struct exporter *exporter, struct error *error);

/* Returns false, with error set, if the spool has spans that the disk failed to store. */
bool exporter_is_stored(struct exporter *exporter, struct error *error);

/* Waits until all spans are delivered or in the spool, for any time as long as there is progress.
 */
void exporter_flush(struct exporter *exporter);

/*
 * Delivers for flush_timeout_ms at most, ends the threads, and closes the transports. Only
 * exporter_counts() and exporter_free() may follow. Returns false, with error set, if accepted
 * spans may be lost: the exporter counts them as unsure.
 */
bool exporter_close(struct exporter *exporter, struct error *error);

/* The first so many spans have their outcome. */
uint64_t exporter_settled(struct exporter *exporter);

struct exporter_counts exporter_counts(struct exporter *exporter);

/* Spans that wait are lost, unless exporter_close() was called before. NULL is allowed. */
void exporter_free(struct exporter *exporter);

#endif
