/*
 * The exporter: finished spans in, delivered batches out, with each span counted (queue.h).
 *
 * One thread, here called the graph as in babeltrace2, calls all functions except
 * exporter_counts(), which any thread may call. In a service, it is the thread of the loop. The
 * exporter's own threads send: the graph waits for the network only if on_full says so.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_EXPORTER_H
#define BLKIN_DELIVER_EXPORTER_H

#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/span.h"
#include "spool.h"
#include "transport.h"

/* The behaviour of exporter_add() while the queue is full. */
enum on_full {
    ON_FULL_AUTO,       /* block until exporter_set_live() is called, then drop */
    ON_FULL_BLOCK,      /* wait for room: back-pressure */
    ON_FULL_DROP_OLDEST /* drop the oldest batch */
};

struct exporter_options {
    struct transport_options transport; /* the exporter sets its protocol */
    enum protocol_format format;
    bool require_collector;   /* the collector must answer before exporter_new() returns */
    int64_t batch_spans;      /* a batch has at most this many spans */
    int64_t batch_bytes;      /* and at most this many bytes */
    int64_t batch_timeout_ms; /* and waits at most this long for more spans */
    int64_t queue_bytes;      /* memory for spans that are not delivered yet */
    enum on_full on_full;

    /*
     * While the graph waits (the exporter blocks or flushes), the exporter gives up all delivery
     * after this time without success: see exporter_has_failed(). While the graph does not wait, a
     * collector may be away for any time, as long as the queue has room. Then the exporter gives up
     * a single batch after this time, if the collector answers but never takes this batch.
     */
    int64_t retry_timeout_ms;
    int64_t flush_timeout_ms; /* the longest time that exporter_close() delivers */
    int64_t requests;         /* HTTP requests at once; at least 1 */

    /* The spool gets batches if the collector is away or, unless the graph waits, too slow. The
     * next exporter sends the rest. */
    struct spool_options spool;
};

/* The exporter calls this function in the graph's thread while the graph waits. true ends the wait:
 * spans that are not delivered after flush_timeout_ms are spooled or, without a spool, lost. */
typedef bool exporter_interrupted_fn(void *context);

/* Reports a message to the operator, from any thread. */
typedef void exporter_report_fn(void *context, const char *message);

/* Called before a batch is sent or spooled: at most `spans` spans have been taken by then. */
typedef void exporter_taken_fn(void *context, uint64_t spans);

struct exporter_callbacks {
    exporter_interrupted_fn *interrupted;
    exporter_report_fn *report;
    void *context;
    exporter_taken_fn *taken; /* may be NULL */
};

struct exporter;

/* Return the protocol of the options, and their endpoint: by default that of the protocol. */
const struct protocol *exporter_protocol(const struct exporter_options *options);
const char *exporter_endpoint(const struct exporter_options *options);

/* Returns NULL with error set, also if the answer is not a collector's. */
struct exporter *exporter_new(const struct exporter_options *options,
                              const struct exporter_callbacks *callbacks, struct error *error);

/* Copies the span without its endpoints: see struct span. */
void exporter_add(struct exporter *exporter, const struct span *span);

/* Notes that the caller adds no span for this time: no request then waits in vain for spans. */
void exporter_note_pause(struct exporter *exporter, int64_t pause_ms);

/*
 * Checks for an interruption. A caller that adds many spans in a row calls this function now and
 * then. After an interruption, all deliveries must end within flush_timeout_ms. Returns whether
 * delivery ends at a known time.
 */
bool exporter_heed_interruption(struct exporter *exporter);

/* Marks the trace as live: LTTng would lose events if the graph waited for the collector. */
void exporter_set_live(struct exporter *exporter);

/*
 * Returns whether all delivery has failed: the collector was away for retry_timeout_ms while the
 * graph waited. Then error is set, and all further spans count as undelivered.
 */
bool exporter_has_failed(struct exporter *exporter, struct error *error);

/* Returns false, with error set, if the spool has spans that the disk failed to store. */
bool exporter_is_stored(struct exporter *exporter, struct error *error);

/* Waits until the queue is empty; then until the spool is, too, or the collector is away. */
void exporter_flush(struct exporter *exporter);

/*
 * Delivers for flush_timeout_ms at most, ends the threads, and closes the transports. Only
 * exporter_counts() and exporter_free() may follow. Returns false, with error set, if accepted
 * spans may be lost: these count as unsure.
 */
bool exporter_close(struct exporter *exporter, struct error *error);

/* Returns a number N: the first N spans all have an outcome. */
uint64_t exporter_settled(struct exporter *exporter);

struct exporter_counts exporter_counts(struct exporter *exporter);

/* Frees the exporter. Without exporter_close(), waiting spans are lost. NULL is allowed. */
void exporter_free(struct exporter *exporter);

#endif
