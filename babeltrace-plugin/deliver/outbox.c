/*
 * The outbox: a queue, a lock, and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "outbox.h"

#include "babeltrace-plugin/base/lock.h"

#include <stdlib.h>

#define SPOOL_BATCH_MS 200  /* a batch on its way to disk waits so long for more spans */
#define SPOOL_RETRY_MS 1000 /* from a failure of the disk to the next attempt */

enum taker { SENDER, SPOOLER, TAKERS };

struct outbox {
    pthread_mutex_t lock;
    pthread_cond_t for_sender; /* there may be something to do */
    pthread_cond_t for_spooler;
    pthread_cond_t for_pause;  /* there may be reason to try at once */
    pthread_cond_t for_filler; /* there may be room, or nothing left */
    struct queue queue;
    struct outbox_options options;
    struct exporter_counts counts;
    struct batch *in_flight[TAKERS]; /* lists of those that were taken */
    size_t in_flight_bytes;
    uint64_t taken; /* spans */
    enum outbox_way way;
    bool is_spool_failing;
    int64_t spool_retry_ms; /* while it is failing */
    unsigned ended;
    int64_t stop_ms;
    bool is_draining;
    bool is_stopping;
    bool is_closed;
    bool has_failed;
    struct error failure;
};

struct outbox *outbox_new(const struct outbox_options *options)
{
    struct outbox *outbox = calloc(1, sizeof(*outbox));

    if (!outbox)
        return NULL;
    pthread_mutex_init(&outbox->lock, NULL);
    condition_init(&outbox->for_sender);
    condition_init(&outbox->for_spooler);
    condition_init(&outbox->for_pause);
    condition_init(&outbox->for_filler);
    outbox->options = *options;
    /* one batch is being filled while another one is being sent */
    if (outbox->options.queue_bytes < 2 * options->batch_bytes)
        outbox->options.queue_bytes = 2 * options->batch_bytes;
    outbox->queue.batch_spans = options->batch_spans;
    outbox->queue.batch_bytes = options->batch_bytes;
    outbox->stop_ms = CLOCK_NEVER;
    return outbox;
}

void outbox_free(struct outbox *outbox)
{
    if (!outbox)
        return;
    queue_clear(&outbox->queue);
    pthread_cond_destroy(&outbox->for_filler);
    pthread_cond_destroy(&outbox->for_pause);
    pthread_cond_destroy(&outbox->for_spooler);
    pthread_cond_destroy(&outbox->for_sender);
    pthread_mutex_destroy(&outbox->lock);
    free(outbox);
}

/* All threads that take batches look again. */
static void outbox_wake(struct outbox *outbox)
{
    pthread_cond_broadcast(&outbox->for_sender);
    pthread_cond_broadcast(&outbox->for_pause);
    pthread_cond_signal(&outbox->for_spooler);
}

/* ---- the account ----------------------------------------------------------------------------- */

struct exporter_counts outbox_counts(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    return outbox->counts;
}

/* So many waiting spans get this outcome. The caller holds the lock. */
static void outbox_settle_locked(struct outbox *outbox, enum outcome outcome, uint32_t spans)
{
    outbox->counts.outcome[outcome] += spans;
    outbox->counts.waiting -= spans;
}

/* Takes the oldest batch out of the queue. Returns false if there is none. */
static bool outbox_discard_oldest(struct outbox *outbox, enum outcome outcome, bool also_open)
{
    struct batch *batch = queue_take(&outbox->queue, also_open);

    if (!batch)
        return false;
    outbox_settle_locked(outbox, outcome, batch->count);
    queue_recycle(&outbox->queue, batch);
    return true;
}

static void outbox_discard_all(struct outbox *outbox)
{
    while (outbox_discard_oldest(outbox, OUTCOME_UNDELIVERED, true))
        ;
}

void outbox_settle(struct outbox *outbox, struct batch *batch, enum outcome outcome, uint32_t spans)
{
    LOCK_GUARD(&outbox->lock);
    outbox_settle_locked(outbox, outcome, spans);
    batch->count -= spans;
    if (outcome == OUTCOME_SPOOLED)
        outbox->is_spool_failing = false;
}

static uint64_t outbox_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * Senders settle the spans of a batch from left to right. A batch that is sent in another order
 * counts when all of its spans are settled.
 */
static uint64_t outbox_settled_before(const struct outbox *outbox, const struct batch *batch,
                                      uint64_t spans)
{
    if (batch->count == 0)
        return spans;
    return outbox_min(spans, outbox->options.is_arranged
                                 ? batch->first
                                 : batch->first + batch->taken - batch->count);
}

uint64_t outbox_settled(struct outbox *outbox)
{
    uint64_t spans;

    LOCK_GUARD(&outbox->lock);
    spans = outbox->counts.spans;
    for (enum taker i = SENDER; i < TAKERS; i++) {
        for (const struct batch *batch = outbox->in_flight[i]; batch; batch = batch->next)
            spans = outbox_settled_before(outbox, batch, spans);
    }
    if (outbox->queue.first)
        spans = outbox_min(spans, outbox->queue.first->first);
    if (outbox->queue.open)
        spans = outbox_min(spans, outbox->queue.open->first);
    return spans;
}

uint64_t outbox_taken(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    return outbox->taken;
}

void outbox_count_cut(struct outbox *outbox, uint32_t spans)
{
    LOCK_GUARD(&outbox->lock);
    outbox->counts.cut += spans;
}

void outbox_count_unsure(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    outbox->counts.unsure = outbox->counts.outcome[OUTCOME_ACCEPTED];
}

void outbox_count_request(struct outbox *outbox, bool is_retry)
{
    LOCK_GUARD(&outbox->lock);
    outbox->counts.requests++;
    outbox->counts.retries += is_retry;
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool outbox_is_late(const struct outbox *outbox)
{
    return outbox->is_stopping && clock_ms() >= outbox->stop_ms;
}

static bool outbox_has_spool(const struct outbox *outbox)
{
    return outbox->options.has_spool && !outbox->is_spool_failing;
}

/* Is it too late to deliver anything? A spool takes batches at any time. */
static bool outbox_is_over(const struct outbox *outbox)
{
    return outbox->has_failed || (outbox_is_late(outbox) && !outbox_has_spool(outbox));
}

static bool outbox_is_full(const struct outbox *outbox)
{
    return outbox->queue.bytes + outbox->in_flight_bytes >= outbox->options.queue_bytes;
}

/* Spans come faster than the collector takes them, and the graph does not wait for it. */
static bool outbox_is_pressed(const struct outbox *outbox)
{
    return !outbox->options.is_blocking &&
           outbox->queue.bytes + outbox->in_flight_bytes >= outbox->options.queue_bytes / 2;
}

/* Does the next batch go to the spool? If the graph waits, a slow collector is no reason. */
static bool outbox_goes_aside(const struct outbox *outbox)
{
    if (!outbox_has_spool(outbox))
        return false;
    return outbox_is_late(outbox) || outbox_is_pressed(outbox) || outbox->way == OUTBOX_AWAY ||
           (outbox->way == OUTBOX_BEHIND &&
            (!outbox->options.is_blocking || outbox->is_closed || outbox->is_stopping));
}

/* Does the next batch go to a sender? */
static bool outbox_goes_directly(const struct outbox *outbox)
{
    if (!outbox->options.has_spool)
        return true;
    if (outbox->in_flight[SPOOLER] || outbox_goes_aside(outbox))
        return false;
    return outbox->way == OUTBOX_DIRECT || outbox->is_closed;
}

static void outbox_take_in(struct outbox *outbox, const struct span *span)
{
    const bool was_empty = !outbox->queue.open && !outbox->queue.first;
    const struct batch *const last = outbox->queue.last;

    if (!queue_add(&outbox->queue, span, outbox->counts.spans++)) {
        outbox->counts.outcome[OUTCOME_NO_MEMORY]++;
        return;
    }
    outbox->counts.waiting++;
    if (!was_empty && outbox->queue.last == last)
        return;
    if (outbox_goes_directly(outbox))
        pthread_cond_signal(&outbox->for_sender);
    else
        pthread_cond_signal(&outbox->for_spooler);
}

/* A span that never gets into the queue. */
static void outbox_count_lost(struct outbox *outbox, enum outcome outcome)
{
    outbox->counts.spans++;
    outbox->counts.outcome[outcome]++;
}

enum outbox_added outbox_add(struct outbox *outbox, const struct span *span)
{
    enum outbox_added added = OUTBOX_ADDED;

    LOCK_GUARD(&outbox->lock);
    if (outbox_is_over(outbox)) {
        outbox_count_lost(outbox, OUTCOME_UNDELIVERED);
    } else if (!outbox_is_full(outbox)) {
        outbox_take_in(outbox, span);
    } else if (outbox->options.is_blocking) {
        added = OUTBOX_FULL;
    } else {
        added = OUTBOX_DROPPING;
        if (outbox_discard_oldest(outbox, OUTCOME_DROPPED, false) && !outbox_is_full(outbox))
            outbox_take_in(outbox, span);
        else
            outbox_count_lost(outbox, OUTCOME_DROPPED); /* the other batches are being sent */
    }
    return added;
}

static bool outbox_holds(const struct outbox *outbox, enum outbox_state state)
{
    switch (state) {
    case OUTBOX_HAS_ROOM:
        return !outbox_is_full(outbox) || outbox_is_over(outbox);
    case OUTBOX_IS_EMPTY:
        return outbox->counts.waiting == 0;
    case OUTBOX_HAS_ENDED:
        return outbox->ended >= outbox->options.threads;
    }
    return true;
}

bool outbox_wait(struct outbox *outbox, enum outbox_state state, int64_t until_ms)
{
    bool done;

    LOCK_GUARD(&outbox->lock);
    while (!(done = outbox_holds(outbox, state)) && clock_ms() < until_ms)
        condition_wait(&outbox->for_filler, &outbox->lock, until_ms);
    return done;
}

void outbox_set_blocking(struct outbox *outbox, bool is_blocking)
{
    LOCK_GUARD(&outbox->lock);
    outbox->options.is_blocking = is_blocking;
}

bool outbox_is_blocking(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    return outbox->options.is_blocking;
}

void outbox_set_draining(struct outbox *outbox, bool is_draining)
{
    LOCK_GUARD(&outbox->lock);
    outbox->is_draining = is_draining;
    outbox_wake(outbox);
}

void outbox_stop(struct outbox *outbox, int64_t stop_ms)
{
    LOCK_GUARD(&outbox->lock);
    outbox->is_stopping = true;
    outbox->stop_ms = clock_earlier(outbox->stop_ms, stop_ms);
    outbox_wake(outbox);
}

void outbox_close(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    outbox->is_closed = true;
    outbox_wake(outbox);
}

bool outbox_has_failed(struct outbox *outbox, struct error *error)
{
    LOCK_GUARD(&outbox->lock);
    if (outbox->has_failed)
        *error = outbox->failure;
    return outbox->has_failed;
}

/* ---- emptying -------------------------------------------------------------------------------- */

static bool outbox_is_hurried(const struct outbox *outbox)
{
    return outbox->is_draining || outbox->is_stopping || outbox->is_closed;
}

/* When senders take the open batch although it is not full. */
static int64_t outbox_open_due_ms(const struct outbox *outbox, int64_t timeout_ms)
{
    if (!outbox->queue.open)
        return CLOCK_NEVER;
    return outbox_is_hurried(outbox) ? 0 : outbox->queue.open->first_ms + timeout_ms;
}

static bool outbox_is_empty(const struct outbox *outbox)
{
    return !outbox->queue.open && !outbox->queue.first;
}

static bool outbox_has_nothing_left(const struct outbox *outbox)
{
    return outbox->is_closed && outbox_is_empty(outbox) && !outbox->in_flight[SENDER] &&
           !outbox->in_flight[SPOOLER];
}

bool outbox_is_done(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    return outbox_has_nothing_left(outbox);
}

static struct batch *outbox_take_from_queue(struct outbox *outbox, enum taker taker, bool also_open)
{
    struct batch *batch = queue_take(&outbox->queue, also_open);

    if (!batch)
        return NULL;
    batch->taken = batch->count;
    outbox->taken += batch->count;
    batch->next = outbox->in_flight[taker];
    outbox->in_flight[taker] = batch;
    outbox->in_flight_bytes += batch->buffer.length;
    return batch;
}

struct batch *outbox_take(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    for (;;) {
        int64_t due_ms = CLOCK_NEVER;
        struct batch *batch;

        if (outbox_is_over(outbox))
            outbox_discard_all(outbox);
        if (outbox_goes_directly(outbox)) {
            due_ms = outbox_open_due_ms(outbox, outbox->options.batch_timeout_ms);
            batch = outbox_take_from_queue(outbox, SENDER, due_ms <= clock_ms());
            if (batch)
                return batch;
        }
        if (outbox->is_closed ? outbox_has_nothing_left(outbox) : outbox->way != OUTBOX_DIRECT)
            return NULL;
        if (outbox->options.has_spool && outbox_is_hurried(outbox) && !outbox_is_late(outbox))
            due_ms = clock_earlier(due_ms, outbox->stop_ms);
        condition_wait(&outbox->for_sender, &outbox->lock, due_ms);
    }
}

/* When the spooler should look again although no thread wakes it. */
static int64_t outbox_aside_due_ms(const struct outbox *outbox)
{
    int64_t due_ms = CLOCK_NEVER;

    if (outbox->is_spool_failing)
        due_ms = outbox_is_late(outbox) ? CLOCK_NEVER : outbox->spool_retry_ms;
    else if (outbox_goes_aside(outbox))
        due_ms = outbox_open_due_ms(outbox, SPOOL_BATCH_MS);
    return outbox->is_stopping && !outbox_is_late(outbox) ? clock_earlier(due_ms, outbox->stop_ms)
                                                          : due_ms;
}

struct batch *outbox_take_aside(struct outbox *outbox, int64_t until_ms)
{
    struct batch *batch = NULL;
    enum outbox_way way;

    LOCK_GUARD(&outbox->lock);
    way = outbox->way;
    while (!batch && !outbox_has_nothing_left(outbox) && clock_ms() < until_ms &&
           outbox->way == way) {
        if (outbox_is_over(outbox))
            outbox_discard_all(outbox);
        if (outbox->is_spool_failing && clock_ms() >= outbox->spool_retry_ms &&
            !outbox_is_late(outbox))
            outbox->is_spool_failing = false;
        if (outbox_goes_aside(outbox))
            batch = outbox_take_from_queue(
                outbox, SPOOLER, outbox_open_due_ms(outbox, SPOOL_BATCH_MS) <= clock_ms());
        if (!batch && !outbox_has_nothing_left(outbox))
            condition_wait(&outbox->for_spooler, &outbox->lock,
                           clock_earlier(until_ms, outbox_aside_due_ms(outbox)));
    }
    return batch;
}

/* No thread has the batch any more. */
static void outbox_release(struct outbox *outbox, struct batch *batch)
{
    for (enum taker i = SENDER; i < TAKERS; i++) {
        struct batch **at = &outbox->in_flight[i];

        while (*at && *at != batch)
            at = &(*at)->next;
        if (*at)
            *at = batch->next;
    }
    batch->next = NULL;
    outbox->in_flight_bytes -= batch->buffer.length;
    if (outbox->options.has_spool || outbox->is_closed)
        outbox_wake(outbox);
}

void outbox_finish(struct outbox *outbox, struct batch *batch)
{
    LOCK_GUARD(&outbox->lock);
    outbox_settle_locked(outbox, OUTCOME_UNDELIVERED, batch->count);
    outbox_release(outbox, batch);
    queue_recycle(&outbox->queue, batch);
    pthread_cond_signal(&outbox->for_filler);
}

void outbox_put_back(struct outbox *outbox, struct batch *batch)
{
    LOCK_GUARD(&outbox->lock);
    outbox->is_spool_failing = true;
    outbox->spool_retry_ms = clock_ms() + SPOOL_RETRY_MS;
    if (!outbox->options.is_arranged)
        batch->first += batch->taken - batch->count;
    outbox_release(outbox, batch);
    queue_put_back(&outbox->queue, batch);
    if (outbox_is_over(outbox))
        outbox_discard_all(outbox);
    pthread_cond_signal(&outbox->for_filler);
}

void outbox_set_way(struct outbox *outbox, enum outbox_way way)
{
    LOCK_GUARD(&outbox->lock);
    if (outbox->way != way) {
        outbox->way = way;
        outbox_wake(outbox);
    }
}

void outbox_end(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    outbox->ended++;
    pthread_cond_signal(&outbox->for_filler);
}

bool outbox_pause(struct outbox *outbox, int64_t until_ms)
{
    bool was_patient, goes_on;

    LOCK_GUARD(&outbox->lock);
    was_patient = !outbox->is_stopping && !outbox->is_draining;
    /* a spool takes spans also when it is late, but nothing is worth a pause any more */
    while (!outbox_is_over(outbox) && !outbox_is_late(outbox) && clock_ms() < until_ms &&
           was_patient == (!outbox->is_stopping && !outbox->is_draining))
        condition_wait(&outbox->for_pause, &outbox->lock, clock_earlier(until_ms, outbox->stop_ms));
    goes_on = !outbox_is_over(outbox);
    return goes_on;
}

struct outbox_patience outbox_patience(struct outbox *outbox)
{
    LOCK_GUARD(&outbox->lock);
    return (struct outbox_patience){
        .stop_ms = outbox->stop_ms,
        .is_limited = outbox->options.is_blocking || outbox->is_draining,
    };
}

void outbox_fail(struct outbox *outbox, const struct error *error)
{
    LOCK_GUARD(&outbox->lock);
    outbox->has_failed = true;
    outbox->failure = *error;
    outbox_discard_all(outbox);
    outbox_wake(outbox);
    pthread_cond_signal(&outbox->for_filler);
}
