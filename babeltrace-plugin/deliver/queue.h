/*
 * The queue: the graph's thread adds spans, senders take batches of spans, and the queue counts
 * every span.
 *
 * One mutex protects the queue, and is nearly always free: adding a span takes a few
 * instructions, and a sender locks the mutex a few times per batch.
 *
 * With a spool, the spooler thread takes batches, too, and puts them on disk. A batch goes to the
 * spooler while the spool has older spans, or while the queue fills up and the graph does not wait.
 * If not, the batch goes to a sender. So a single sender sends the spans in order.
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
    bool is_blocking; /* a full queue makes the graph wait; else the oldest batch is dropped */
    bool has_spool;
    bool is_arranged; /* senders may reorder the spans of a batch: see batch_arrange() */
    unsigned threads; /* the number of threads that call queue_end() */
};

struct span_queue;

/* Returns NULL when out of memory. */
struct span_queue *queue_new(const struct queue_options *options);
void queue_free(struct span_queue *queue);

struct exporter_counts queue_counts(struct span_queue *queue);

/* Returns N such that the first N spans all have an outcome. Later spans may have one, too. A span
 * that found a full queue or no memory counts together with the span before. */
uint64_t queue_settled(struct span_queue *queue);

/* Returns the number of spans that threads have taken. A span that was put back counts again. */
uint64_t queue_taken(struct span_queue *queue);

/* ---- called by the thread that adds spans ---------------------------------------------------- */

enum queue_added {
    QUEUE_ADDED,
    QUEUE_FULL,    /* the span is neither added nor counted: the caller waits for room */
    QUEUE_DROPPING /* this span was dropped, or the oldest batch was dropped for it */
};

enum queue_added queue_add(struct span_queue *queue, const struct span *span);

enum queue_state {
    QUEUE_HAS_ROOM,
    QUEUE_HAS_BEGUN, /* queue_begin() was called */
    QUEUE_IS_EMPTY,  /* every span has an outcome */
    QUEUE_HAS_ENDED, /* all threads have called queue_end() */
};

/* Waits for the state until until_ms. Returns whether the queue is in that state. */
bool queue_wait(struct span_queue *queue, enum queue_state state, int64_t until_ms);

void queue_set_blocking(struct span_queue *queue, bool is_blocking);
bool queue_is_blocking(struct span_queue *queue);

/* While draining, senders take the open batch at once, even if it is neither full nor old. */
void queue_set_draining(struct span_queue *queue, bool is_draining);

/* Spans that are not delivered at stop_ms count as undelivered. */
void queue_stop(struct span_queue *queue, int64_t stop_ms);

/* No further spans will come. Senders end when all waiting spans have an outcome. */
void queue_close(struct span_queue *queue);

/* Returns whether a sender has given up all delivery. Then error is set. */
bool queue_has_failed(struct span_queue *queue, struct error *error);

/* ---- called by the senders' threads ---------------------------------------------------------- */

/* A sender has the peer's first answer. */
void queue_begin(struct span_queue *queue);

/* Waits for a batch. Returns NULL when the spool has spans to send first, or after the last batch:
 * see queue_is_done(). */
struct batch *queue_take(struct span_queue *queue);

/* Returns true if the queue is closed, and all batches are taken and finished. */
bool queue_is_done(struct span_queue *queue);

/* Gives `spans` spans of the batch an outcome. */
void queue_settle(struct span_queue *queue, struct batch *batch, enum outcome outcome,
                  uint32_t spans);

/* Takes the batch back. Spans without an outcome count as undelivered. */
void queue_finish(struct span_queue *queue, struct batch *batch);

/* Counts all accepted spans as unsure: the end of the file could not be written. */
void queue_count_unsure(struct span_queue *queue);

/* Counts spans whose parts the encoder has left out. */
void queue_count_cut(struct span_queue *queue, uint32_t spans);

void queue_count_request(struct span_queue *queue, bool is_retry);

/* Sleeps until until_ms, until the time of queue_stop(), or until there is a reason to retry at
 * once. Returns false if no time is left for any delivery. */
bool queue_pause(struct span_queue *queue, int64_t until_ms);

/* The time that a batch may take. */
struct queue_time_limit {
    int64_t stop_ms; /* see queue_stop() */
    bool is_limited; /* the graph waits, because the queue is blocking or draining */
};

struct queue_time_limit queue_time_limit(struct span_queue *queue);

/* ---- called by the spooler ------------------------------------------------------------------- */

/* Same as queue_take(), for the spooler. Also returns NULL at until_ms, and when the route
 * changes. */
struct batch *queue_take_for_spool(struct span_queue *queue, int64_t until_ms);

/* Puts a batch back as the oldest one after a failure of the disk. The spooler retries after a
 * pause. Until then the queue works as one without a spool. */
void queue_put_back(struct span_queue *queue, struct batch *batch);

enum queue_route {
    QUEUE_DIRECT, /* the spool is empty */
    QUEUE_BEHIND, /* the spool has spans, and the collector takes them */
    QUEUE_AWAY,   /* the collector does not answer */
};

void queue_set_route(struct span_queue *queue, enum queue_route route);

/* ---- the end --------------------------------------------------------------------------------- */

/* The last call of each thread that sends or spools. */
void queue_end(struct span_queue *queue);

/* No delivery is possible: all waiting and all further spans count as undelivered. */
void queue_fail(struct span_queue *queue, const struct error *error);

#endif
