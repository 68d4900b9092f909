/*
 * The exporter: finished spans in, delivered batches out, each span accounted for (counts.h).
 *
 * All functions are for one thread, the graph's. A thread of the exporter's own sends, so that the
 * graph waits for the network only where it is asked to: on_full.
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
    ON_FULL_AUTO,       /* drop once exporter_set_live() was called, block before */
    ON_FULL_BLOCK,      /* wait for room: back-pressure */
    ON_FULL_DROP_OLDEST /* lose the oldest batch */
};

struct exporter_options {
    struct transport_options transport; /* without the protocol, which is the exporter's to set */
    enum format format;
    bool require_collector;   /* the collector must answer before exporter_new() returns */
    int64_t batch_spans;      /* a batch has at most this many spans */
    int64_t batch_bytes;      /* and this many bytes */
    int64_t batch_timeout_ms; /* and waits at most this long for them */
    int64_t queue_bytes;      /* of memory for spans that are not delivered */
    enum on_full on_full;

    /*
     * A batch that could not be delivered for so long is given up. While the exporter blocks or
     * flushes, all is: see exporter_has_failed(). Else, a collector that is away is waited for as
     * long as the queue has room; it only counts for one that answers, but never this batch.
     */
    int64_t retry_timeout_ms;
    int64_t flush_timeout_ms; /* how long exporter_close() may take to deliver what waits */
    const char *tap;          /* path of a socket, see tap.h; NULL: none */
    int64_t requests;         /* so many at once, over a network; at least 1 */

    /*
     * What the collector does not take now, or not fast enough for one who does not wait, is put
     * there; it has its outcome then. The next exporter sends what this one leaves there.
     */
    struct spool_options spool;
};

/* Called on the graph's thread while it waits: true ends the wait as exporter_close() does. */
typedef bool exporter_interrupted_fn(void *context);

/* A message for the operator, from any thread. */
typedef void exporter_report_fn(void *context, const char *message);

/* The first `settled` spans have their outcome; from a thread that delivers, after each batch. */
typedef void exporter_settled_fn(void *context, const struct exporter_counts *counts,
                                 uint64_t settled);

struct exporter_callbacks {
    exporter_interrupted_fn *interrupted;
    exporter_report_fn *report;
    void *context;
    exporter_settled_fn *settled; /* NULL: nobody wants to know */
};

struct exporter;

/* Both of what the options say: the protocol, and where it goes if they do not tell. */
const struct protocol *exporter_protocol(const struct exporter_options *options);
const char *exporter_endpoint(const struct exporter_options *options);

/* Returns NULL with error set, also if the collector does not answer as one. */
struct exporter *exporter_new(const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks, struct error *error);

/* The span is copied, but its endpoints must live as long as the exporter. */
void exporter_add(struct exporter *exporter, const struct span *span);

/*
 * For who adds many spans at once: from an interruption on, what is not delivered within
 * flush_timeout_ms is not waited for.
 */
void exporter_heed_interruption(struct exporter *exporter);

/* The trace is being written while it is read: who waits here loses events there. */
void exporter_set_live(struct exporter *exporter);

/*
 * The collector was not to be reached for retry_timeout_ms while somebody waited: error is set, and
 * spans are counted as undelivered from now on. It is no use to go on.
 */
bool exporter_has_failed(struct exporter *exporter, struct error *error);

/* Returns false, with error set, if the disk has failed to store something that the spool keeps. */
bool exporter_is_stored(struct exporter *exporter, struct error *error);

/* Delivers what waits, however long that takes as long as there is progress. With a spool: or puts
 * it there. */
void exporter_flush(struct exporter *exporter);

/*
 * Delivers what can be within flush_timeout_ms, then ends the thread and closes the transport. Only
 * exporter_counts() and exporter_free() may follow. Returns false, with error set, if spans that
 * were accepted may be lost: they are counted as unsure.
 */
bool exporter_close(struct exporter *exporter, struct error *error);

struct exporter_counts exporter_counts(struct exporter *exporter);

/* Without exporter_close() before, what waits is lost. NULL is allowed. */
void exporter_free(struct exporter *exporter);

#endif
