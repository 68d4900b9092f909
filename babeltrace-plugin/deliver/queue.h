/*
 * The queue: the graph's thread adds spans, senders take batches of spans, and the queue counts
 * every span.
 *
 * One mutex protects the queue, and is nearly always free: adding a span takes a few
 * instructions, and a sender locks the mutex a few times per batch.
 *
 * With a spool, the spooler thread takes batches, too, and puts them on disk: while the collector
 * is away, and at the end of delivery. If the graph does not wait, the spooler also takes batches
 * while the spool has older spans, or while the queue fills up. A sender takes a batch only while
 * the spool is empty. So a single sender sends the spans in order.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_DELIVER_QUEUE_H
#define BLKIN_DELIVER_QUEUE_H

#include "babeltrace-plugin/base/buffer.h"
#include "babeltrace-plugin/base/error.h"
#include "babeltrace-plugin/spans/span.h"

#include <stdint.h>

/* ---- counts ---------------------------------------------------------------------------------- */

/*
 * The counts of spans. Each finished span has one outcome, or waits for its outcome. A transport's
 * answer to a batch is the outcome of all its spans, or OUTCOME_AGAIN.
 *
 *     spans = the sum of outcome[] + waiting + held, always
 *
 * A span that went into the spool is counted as OUTCOME_SPOOLED here. The spool, which may have
 * spans of an earlier exporter, has its own counts:
 *
 *     spans = found + put in = the sum of outcome[] + expired + corrupt + waiting, always
 */
enum outcome {
    OUTCOME_ACCEPTED,           /* by the collector, or written to the file */
    OUTCOME_REFUSED,            /* the collector refused the batch, and a retry is useless */
    OUTCOME_INVALID,            /* the collector refused this very span (400) */
    OUTCOME_TOO_LARGE,          /* same (413) */
    OUTCOME_POSSIBLY_PERSISTED, /* Kafka: the message may be in the log, so no retry */
    OUTCOME_UNDELIVERED,        /* given up: the collector was away for too long */
    OUTCOME_DROPPED,            /* the queue was full */
    OUTCOME_NO_MEMORY,          /* no memory to copy or to encode the span */
    OUTCOME_SKIPPED,            /* an earlier run has delivered the span: stages/chain.h */
    OUTCOME_SAMPLED_OUT,        /* with its trace, by tail sampling: stages/tail_stage.h */
    OUTCOME_SPOOLED,            /* on disk; the spool's counts have the span from now on */
    OUTCOMES,
    OUTCOME_AGAIN = OUTCOMES /* none yet: the span may be sent again */
};

struct spool_counts {
    uint64_t in_use;            /* 1: there is a spool */
    uint64_t spans;             /* found, and put in later */
    uint64_t found;             /* left by an earlier exporter */
    uint64_t outcome[OUTCOMES]; /* dropped: the spool was full */
    uint64_t expired;           /* too old */
    uint64_t corrupt;           /* in records that have a wrong checksum, or end too early */
    uint64_t unknown;           /* their reader was killed; 0 in the spool's own counts */
    uint64_t waiting;
    uint64_t unreadable; /* pieces of files that are no record, of an unknown number of spans */
    uint64_t errors;     /* records that the disk did not take: their spans stay in the queue */
    uint64_t bytes;      /* on disk */
    uint64_t lost_own;   /* spans of this exporter that left the spool, and were not accepted */
};

struct exporter_counts {
    uint64_t spans;
    uint64_t outcome[OUTCOMES];
    uint64_t waiting;
    uint64_t held;     /* in the stages before the exporter; set by the account, 0 here */
    uint64_t cut;      /* spans with parts left out, see encoder.h; also counted above */
    uint64_t unsure;   /* accepted by a file whose end failed, so perhaps not in the file */
    uint64_t requests; /* attempts to send */
    uint64_t retries;  /* requests after a failure */
    struct spool_counts spool;
};

/* ---- batches --------------------------------------------------------------------------------- */

/*
 * Batches of finished spans, and a list of them: the batch that is being filled, and the full
 * batches, oldest first. Not thread-safe.
 */

/* A position in a batch. Zeros are the position of the first span. */
struct batch_position {
    size_t offset;
    uint32_t index;
};

/* Spans that wait together, one after the other in one block of memory. */
struct batch {
    struct batch *next;
    struct buffer buffer;            /* each span is followed by its log */
    uint32_t count;                  /* spans without an outcome; in the queue, all spans */
    int64_t first_ms;                /* when the first span arrived */
    uint64_t first;                  /* how many spans arrived before the first span */
    uint32_t taken;                  /* spans in the batch when a thread last took the batch */
    struct batch_position next_span; /* the first span that is not encoded yet */

    uint32_t ordered; /* the number of elements of `order`; 0: spans are sent as they arrived */
    uint32_t *order;  /* the offsets of spans, as they are sent: see batch_arrange() */
    size_t order_room;
};

/* Returns the span at the position, and moves the position to the next span. NULL: no more
 * spans. */
const struct span *batch_span(struct batch *batch, struct batch_position *position);

/* Returns true if spans are left that are not encoded yet. */
bool batch_has_more(const struct batch *batch);

/*
 * Sorts the spans by resource. Spans of one resource keep their order. The order does not change
 * when out of memory, nor after spans of the batch were encoded: the spooler may have put back a
 * batch of which the disk took a part.
 */
void batch_arrange(struct batch *batch);

struct batch_list {
    uint32_t batch_spans; /* a batch is full with this many spans */
    size_t batch_bytes;   /* or this many bytes of memory */
    struct batch *open;   /* being filled; NULL: the next span begins one */
    struct batch *first;  /* full batches, the oldest first */
    struct batch *last;
    struct batch *pool; /* empty batches, for reuse */
    unsigned pool_length;
    size_t bytes; /* of all spans in the list */
};

/* Frees all batches of the list. */
void batch_list_clear(struct batch_list *batches);

/* Adds a copy of the span. number: the number of earlier spans. Returns false when out of memory:
 * the list stays as it is. */
bool batch_list_add(struct batch_list *batches, const struct span *span, uint64_t number);

/* Takes the oldest batch out, and the open batch only if also_open. The caller owns the batch.
 * Returns NULL if there is no such batch. */
struct batch *batch_list_take(struct batch_list *batches, bool also_open);

/* Puts a taken batch back as the oldest full batch. */
void batch_list_put_back(struct batch_list *batches, struct batch *batch);

/* Takes an empty batch back, for reuse. */
void batch_list_recycle(struct batch_list *batches, struct batch *batch);

/* ---- the queue ------------------------------------------------------------------------------- */

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

/* No further span will come for pause_ms. If this is longer than batch_timeout_ms, senders take the
 * open batch at once. */
void queue_note_pause(struct span_queue *queue, int64_t pause_ms);

/* Spans that are not delivered at stop_ms go to the spool; without one, they are undelivered. */
void queue_stop(struct span_queue *queue, int64_t stop_ms);

/* No further spans will arrive. Senders end when all waiting spans have an outcome. */
void queue_close(struct span_queue *queue);

/* Returns whether a sender has given up all delivery. Then error is set. */
bool queue_has_failed(struct span_queue *queue, struct error *error);

/* ---- called by the senders' threads ---------------------------------------------------------- */

/* Called when the main sender has the peer's first answer. */
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

/* Returns true unless the queue drains or stops. */
bool queue_is_patient(struct span_queue *queue);

/* Sleeps until until_ms, until the time of queue_stop(), or until there is a reason to retry at
 * once: the queue is no more as patient as it was before the last attempt. Returns false if no
 * time is left for any delivery. */
bool queue_pause(struct span_queue *queue, int64_t until_ms, bool was_patient);

/* The time that a batch may take. */
struct queue_time_limit {
    int64_t stop_ms; /* see queue_stop() */
    bool is_limited; /* the graph waits, because the queue is blocking or draining */
};

struct queue_time_limit queue_time_limit(struct span_queue *queue);

/* ---- called by the spooler ------------------------------------------------------------------- */

/* Same as queue_take(), for the spooler. Also returns NULL at until_ms, when the route changes, and
 * after queue_call_spooler(). */
struct batch *queue_take_for_spool(struct span_queue *queue, int64_t until_ms);

/* The spooler has something else to do earlier than it knows. */
void queue_call_spooler(struct span_queue *queue);

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
