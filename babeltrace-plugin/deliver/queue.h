/*
 * The queue: the graph's thread adds spans, senders take batches of them, and the queue counts
 * every span.
 *
 * It has one mutex. Adding a span holds the mutex for a few instructions; a sender locks it a few
 * times per batch, so it is nearly always free.
 *
 * With a spool, a second kind of thread takes batches: the spooler, which puts them on disk. A
 * batch goes to the spooler while the spool has spans to send first, or while the queue fills up
 * and the graph does not wait. Otherwise it goes to a sender. So a single sender keeps the spans in
 * order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_OUTPUT_QUEUE_H
#define BLKIN_OUTPUT_QUEUE_H

#include "babeltrace-plugin/base/error.h"
#include "counts.h"
#include "batch.h"

struct queue_options {
    uint32_t batch_spans;
    size_t batch_bytes;
    int64_t batch_timeout_ms;
    size_t queue_bytes;
    bool is_blocking; /* when full: the graph waits; else the oldest batch is dropped */
    bool has_spool;
    bool is_arranged; /* senders may reorder the spans of a batch: see batch_arrange() */
    unsigned threads; /* how many threads call queue_end() */
};

struct span_queue;

/* Returns NULL when out of memory. */
struct span_queue *queue_new(const struct queue_options *options);
void queue_free(struct span_queue *queue);

struct exporter_counts queue_counts(struct span_queue *queue);

/*
 * Returns N such that the first N spans all have their outcome; later ones may have it, too. Spans
 * that found a full queue or no memory count together with the span before them.
 */
uint64_t queue_settled(struct span_queue *queue);

/* How many spans the threads have taken so far: what was put back counts each time. */
uint64_t queue_taken(struct span_queue *queue);

/* ---- for the thread that fills it ------------------------------------------------------------ */

enum queue_added {
    QUEUE_ADDED,
    QUEUE_FULL,    /* the span is neither added nor counted: wait for room */
    QUEUE_DROPPING /* this span was dropped, or the oldest batch was dropped for it */
};

enum queue_added queue_add(struct span_queue *queue, const struct span *span);

enum queue_state {
    QUEUE_HAS_ROOM,
    QUEUE_IS_EMPTY,  /* every span has its outcome */
    QUEUE_HAS_ENDED, /* all threads have called queue_end() */
};

/* Waits for the state, but not past until_ms. Returns whether it holds. */
bool queue_wait(struct span_queue *queue, enum queue_state state, int64_t until_ms);

void queue_set_blocking(struct span_queue *queue, bool is_blocking);
bool queue_is_blocking(struct span_queue *queue);

/* While draining, senders take the open batch at once, and do not wait until it is full or old. */
void queue_set_draining(struct span_queue *queue, bool is_draining);

/* Spans that are not delivered at stop_ms count as undelivered. */
void queue_stop(struct span_queue *queue, int64_t stop_ms);

/* No more spans will come. Senders end when all spans that wait have their outcome. */
void queue_close(struct span_queue *queue);

/* Has a sender given up all delivery? Then error is set. */
bool queue_has_failed(struct span_queue *queue, struct error *error);

/* ---- for the senders' threads ---------------------------------------------------------------- */

/*
 * Waits for a batch. Returns NULL when the spool has spans to send first; or when there will be no
 * more batches, which queue_is_done() tells.
 */
struct batch *queue_take(struct span_queue *queue);

/* Is the queue closed, and are all batches taken and finished? */
bool queue_is_done(struct span_queue *queue);

/* So many spans of the batch get this outcome. */
void queue_settle(struct span_queue *queue, struct batch *batch, enum outcome outcome,
                  uint32_t spans);

/* Takes the batch back; spans of it without an outcome count as undelivered. */
void queue_finish(struct span_queue *queue, struct batch *batch);

/* All accepted spans may be lost: the end of the file could not be written. */
void queue_count_unsure(struct span_queue *queue);

/* The encoder has left out parts of so many spans. */
void queue_count_cut(struct span_queue *queue, uint32_t spans);

void queue_count_request(struct span_queue *queue, bool is_retry);

/* Sleeps until until_ms, the end of queue_stop(), or until there is a reason to retry at once.
 * Returns false if there is no time left to deliver anything. */
bool queue_pause(struct span_queue *queue, int64_t until_ms);

/* How long a batch may be tried. */
struct queue_patience {
    int64_t stop_ms; /* of queue_stop() */
    bool is_limited; /* the graph waits, as the queue is blocking or draining */
};

struct queue_patience queue_patience(struct span_queue *queue);

/* ---- for the spool --------------------------------------------------------------------------- */

/* queue_take() for the spooler. Also returns NULL at until_ms, and when the way changes. */
struct batch *queue_take_aside(struct span_queue *queue, int64_t until_ms);

/* The disk does not take this batch: it becomes the oldest in the queue again. The spooler retries
 * after a pause; until then the queue works as one without a spool. */
void queue_put_back(struct span_queue *queue, struct batch *batch);

enum queue_way {
    QUEUE_DIRECT, /* the spool is empty */
    QUEUE_BEHIND, /* the spool has spans, and the collector takes them */
    QUEUE_AWAY,   /* the collector does not answer */
};

void queue_set_way(struct span_queue *queue, enum queue_way way);

/* ---- the end --------------------------------------------------------------------------------- */

/* Each thread that sends or spools calls this last. */
void queue_end(struct span_queue *queue);

/* Nothing can be delivered: all spans that wait or come later count as undelivered. */
void queue_fail(struct span_queue *queue, const struct error *error);

#endif
