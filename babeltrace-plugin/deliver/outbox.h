/*
 * The outbox: spans in on the graph's thread, batches out on the senders', all of them counted.
 *
 * One mutex, held for a few instructions per span; the sender takes it a few times per batch only,
 * so that it is nearly always free.
 *
 * With a spool there are two kinds that take batches: senders, and the spooler, which puts them on
 * disk. While the spool has something to send first, or the queue of one who does not wait fills,
 * batches are the spooler's, else a sender's; so they stay in order as far as one sender goes.
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
    bool is_blocking; /* when full: wait; else drop the oldest batch */
    bool has_spool;
    bool is_arranged; /* within a batch spans may be sent in any order: see batch_arrange() */
    unsigned threads; /* that call outbox_end() */
};

struct outbox;

/* Returns NULL when out of memory. */
struct outbox *outbox_new(const struct outbox_options *options);
void outbox_free(struct outbox *outbox);

struct exporter_counts outbox_counts(struct outbox *outbox);

/*
 * So many spans, counted from the first one, have their outcome and none of them waits; maybe some
 * later ones too. Those that came into a full queue, or for which there was no memory, are counted
 * with the one before.
 */
uint64_t outbox_settled(struct outbox *outbox);

/* ---- for the thread that fills it ------------------------------------------------------------ */

enum outbox_added {
    OUTBOX_ADDED,
    OUTBOX_FULL,    /* the span is not counted: wait for room */
    OUTBOX_DROPPING /* this span, or the oldest ones for it */
};

enum outbox_added outbox_add(struct outbox *outbox, const struct span *span);

enum outbox_state {
    OUTBOX_HAS_ROOM,
    OUTBOX_IS_EMPTY,  /* every span has its outcome */
    OUTBOX_HAS_ENDED, /* all threads are done: see outbox_end() */
};

/* Waits for the state, but not past until_ms. Returns whether it holds. */
bool outbox_wait(struct outbox *outbox, enum outbox_state state, int64_t until_ms);

void outbox_set_blocking(struct outbox *outbox, bool is_blocking);
bool outbox_is_blocking(struct outbox *outbox);

/* Draining: a batch goes at once, not when it is full or old. */
void outbox_set_draining(struct outbox *outbox, bool is_draining);

/* What is not delivered at this time is undelivered. */
void outbox_stop(struct outbox *outbox, int64_t stop_ms);

/* No more spans will come: when all that waits has its outcome, outbox_take() returns NULL. */
void outbox_close(struct outbox *outbox);

/* Has the sender given up? Then error is set. */
bool outbox_has_failed(struct outbox *outbox, struct error *error);

/* ---- for the senders' threads ---------------------------------------------------------------- */

/*
 * Waits for a batch. Returns NULL when there will be no more: then a sender ends. Or, before it
 * is closed, when the spool has something to send first.
 */
struct batch *outbox_take(struct outbox *outbox);

/* It is closed, and all batches were taken and finished. */
bool outbox_is_done(struct outbox *outbox);

/* That many spans of the batch have their outcome. */
void outbox_settle(struct outbox *outbox, struct batch *batch, enum outcome outcome,
                   uint32_t spans);

/* Takes the batch back; what of it is not settled is undelivered. */
void outbox_finish(struct outbox *outbox, struct batch *batch);

/* All that was accepted may be lost again. */
void outbox_count_unsure(struct outbox *outbox);

/* That many spans had parts left out when they were encoded. */
void outbox_count_cut(struct outbox *outbox, uint32_t spans);

void outbox_count_request(struct outbox *outbox, bool is_retry);

/* Sleeps until then, or until there is reason to try at once. Returns false if it is all over. */
bool outbox_pause(struct outbox *outbox, int64_t until_ms);

/* How long a batch may be tried: see outbox_stop(), and whether what fills the outbox waits. */
struct outbox_patience {
    int64_t stop_ms;
    bool is_limited; /* somebody waits: blocking or draining */
};

struct outbox_patience outbox_patience(struct outbox *outbox);

/* ---- for the spool --------------------------------------------------------------------------- */

/* As outbox_take(), for the spooler. Returns NULL also at until_ms, and when the way changes. */
struct batch *outbox_take_aside(struct outbox *outbox, int64_t until_ms);

/* The disk does not take this one: it is the oldest in the queue again. The next attempt is made
 * after a pause; meanwhile the queue is one without a spool. */
void outbox_put_back(struct outbox *outbox, struct batch *batch);

enum outbox_way {
    OUTBOX_DIRECT, /* the spool is empty */
    OUTBOX_BEHIND, /* there is something in it, and the collector takes it */
    OUTBOX_AWAY,   /* the collector does not answer */
};

void outbox_set_way(struct outbox *outbox, enum outbox_way way);

/* ---- the end --------------------------------------------------------------------------------- */

/* A thread that sends, or spools, is done with all that it does. */
void outbox_end(struct outbox *outbox);

/* Nothing can be delivered: all that waits, and all that comes, is undelivered. */
void outbox_fail(struct outbox *outbox, const struct error *error);

#endif
