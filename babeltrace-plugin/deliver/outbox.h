/*
 * The outbox: the graph's thread adds spans, senders take batches of them, and the outbox counts
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
#ifndef BLKIN_OUTPUT_OUTBOX_H
#define BLKIN_OUTPUT_OUTBOX_H

#include "babeltrace-plugin/base/error.h"
#include "counts.h"
#include "queue.h"

struct outbox_options {
    uint32_t batch_spans;
    size_t batch_bytes;
    int64_t batch_timeout_ms;
    size_t queue_bytes;
    bool is_blocking; /* when full: the graph waits; else the oldest batch is dropped */
    bool has_spool;
    bool is_arranged; /* senders may reorder the spans of a batch: see batch_arrange() */
    unsigned threads; /* how many threads call outbox_end() */
};

struct outbox;

/* Returns NULL when out of memory. */
struct outbox *outbox_new(const struct outbox_options *options);
void outbox_free(struct outbox *outbox);

struct exporter_counts outbox_counts(struct outbox *outbox);

/*
 * Returns N such that the first N spans all have their outcome; later ones may have it, too. Spans
 * that found a full queue or no memory count together with the span before them.
 */
uint64_t outbox_settled(struct outbox *outbox);

/* How many spans the threads have taken so far: what was put back counts each time. */
uint64_t outbox_taken(struct outbox *outbox);

/* ---- for the thread that fills it ------------------------------------------------------------ */

enum outbox_added {
    OUTBOX_ADDED,
    OUTBOX_FULL,    /* the span is neither added nor counted: wait for room */
    OUTBOX_DROPPING /* this span was dropped, or the oldest batch was dropped for it */
};

enum outbox_added outbox_add(struct outbox *outbox, const struct span *span);

enum outbox_state {
    OUTBOX_HAS_ROOM,
    OUTBOX_IS_EMPTY,  /* every span has its outcome */
    OUTBOX_HAS_ENDED, /* all threads have called outbox_end() */
};

/* Waits for the state, but not past until_ms. Returns whether it holds. */
bool outbox_wait(struct outbox *outbox, enum outbox_state state, int64_t until_ms);

void outbox_set_blocking(struct outbox *outbox, bool is_blocking);
bool outbox_is_blocking(struct outbox *outbox);

/* While draining, senders take the open batch at once, and do not wait until it is full or old. */
void outbox_set_draining(struct outbox *outbox, bool is_draining);

/* Spans that are not delivered at stop_ms count as undelivered. */
void outbox_stop(struct outbox *outbox, int64_t stop_ms);

/* No more spans will come. Senders end when all spans that wait have their outcome. */
void outbox_close(struct outbox *outbox);

/* Has a sender given up all delivery? Then error is set. */
bool outbox_has_failed(struct outbox *outbox, struct error *error);

/* ---- for the senders' threads ---------------------------------------------------------------- */

/*
 * Waits for a batch. Returns NULL when the spool has spans to send first; or when there will be no
 * more batches, which outbox_is_done() tells.
 */
struct batch *outbox_take(struct outbox *outbox);

/* Is the outbox closed, and are all batches taken and finished? */
bool outbox_is_done(struct outbox *outbox);

/* So many spans of the batch get this outcome. */
void outbox_settle(struct outbox *outbox, struct batch *batch, enum outcome outcome,
                   uint32_t spans);

/* Takes the batch back; spans of it without an outcome count as undelivered. */
void outbox_finish(struct outbox *outbox, struct batch *batch);

/* All accepted spans may be lost: the end of the file could not be written. */
void outbox_count_unsure(struct outbox *outbox);

/* The encoder has left out parts of so many spans. */
void outbox_count_cut(struct outbox *outbox, uint32_t spans);

void outbox_count_request(struct outbox *outbox, bool is_retry);

/* Sleeps until until_ms, the end of outbox_stop(), or until there is a reason to retry at once.
 * Returns false if there is no time left to deliver anything. */
bool outbox_pause(struct outbox *outbox, int64_t until_ms);

/* How long a batch may be tried. */
struct outbox_patience {
    int64_t stop_ms; /* of outbox_stop() */
    bool is_limited; /* the graph waits, as the outbox is blocking or draining */
};

struct outbox_patience outbox_patience(struct outbox *outbox);

/* ---- for the spool --------------------------------------------------------------------------- */

/* outbox_take() for the spooler. Also returns NULL at until_ms, and when the way changes. */
struct batch *outbox_take_aside(struct outbox *outbox, int64_t until_ms);

/* The disk does not take this batch: it becomes the oldest in the queue again. The spooler retries
 * after a pause; until then the outbox works as one without a spool. */
void outbox_put_back(struct outbox *outbox, struct batch *batch);

enum outbox_way {
    OUTBOX_DIRECT, /* the spool is empty */
    OUTBOX_BEHIND, /* the spool has spans, and the collector takes them */
    OUTBOX_AWAY,   /* the collector does not answer */
};

void outbox_set_way(struct outbox *outbox, enum outbox_way way);

/* ---- the end --------------------------------------------------------------------------------- */

/* Each thread that sends or spools calls this last. */
void outbox_end(struct outbox *outbox);

/* Nothing can be delivered: all spans that wait or come later count as undelivered. */
void outbox_fail(struct outbox *outbox, const struct error *error);

#endif
