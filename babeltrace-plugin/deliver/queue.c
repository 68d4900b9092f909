/* SPDX-License-Identifier: BSD-2-Clause */
#include "queue.h"

#include "babeltrace-plugin/base/thread.h"

#include <stdlib.h>

#define SPOOL_BATCH_MS 200  /* a batch for the spool waits this long for more spans */
#define SPOOL_RETRY_MS 1000 /* the pause after a failure of the disk */

enum taker { SENDER, SPOOLER, TAKERS };

struct span_queue {
    pthread_mutex_t lock;
    pthread_cond_t for_sender; /* there may be work */
    pthread_cond_t for_spooler;
    pthread_cond_t for_pause;  /* there may be a reason to retry at once */
    pthread_cond_t for_filler; /* there may be room, or no span left */
    struct batch_list batches;
    struct queue_options options;
    struct exporter_counts counts;
    struct batch *in_flight[TAKERS]; /* lists of taken batches */
    size_t in_flight_bytes;
    uint64_t taken; /* spans */
    enum queue_route route;
    bool is_spool_failing;
    int64_t spool_retry_ms; /* the end of the pause after a failure of the disk */
    bool is_spooler_called;
    bool has_begun;
    unsigned ended;
    int64_t stop_ms;
    bool is_draining;
    bool is_stopping;
    bool is_closed;
    bool has_failed;
    struct error failure;
};

struct span_queue *queue_new(const struct queue_options *options)
{
    struct span_queue *queue = calloc(1, sizeof(*queue));

    if (!queue)
        return NULL;
    pthread_mutex_init(&queue->lock, NULL);
    condition_init(&queue->for_sender);
    condition_init(&queue->for_spooler);
    condition_init(&queue->for_pause);
    condition_init(&queue->for_filler);
    queue->options = *options;
    /* one batch is filled while another one is sent */
    if (queue->options.queue_bytes < 2 * options->batch_bytes)
        queue->options.queue_bytes = 2 * options->batch_bytes;
    queue->batches.batch_spans = options->batch_spans;
    queue->batches.batch_bytes = options->batch_bytes;
    queue->stop_ms = CLOCK_NEVER;
    return queue;
}

void queue_free(struct span_queue *queue)
{
    if (!queue)
        return;
    batch_list_clear(&queue->batches);
    pthread_cond_destroy(&queue->for_filler);
    pthread_cond_destroy(&queue->for_pause);
    pthread_cond_destroy(&queue->for_spooler);
    pthread_cond_destroy(&queue->for_sender);
    pthread_mutex_destroy(&queue->lock);
    free(queue);
}

/* Wakes all threads that take batches. */
static void queue_wake(struct span_queue *queue)
{
    pthread_cond_broadcast(&queue->for_sender);
    pthread_cond_broadcast(&queue->for_pause);
    pthread_cond_signal(&queue->for_spooler);
}

/* ---- counts ---------------------------------------------------------------------------------- */

struct exporter_counts queue_counts(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    return queue->counts;
}

/* Gives `spans` waiting spans an outcome. The caller holds the lock. */
static void queue_settle_locked(struct span_queue *queue, enum outcome outcome, uint32_t spans)
{
    queue->counts.outcome[outcome] += spans;
    queue->counts.waiting -= spans;
}

/* Discards the oldest batch. Returns false if there is none. */
static bool queue_discard_oldest(struct span_queue *queue, enum outcome outcome, bool also_open)
{
    struct batch *batch = batch_list_take(&queue->batches, also_open);

    if (!batch)
        return false;
    queue_settle_locked(queue, outcome, batch->count);
    batch_list_recycle(&queue->batches, batch);
    return true;
}

static void queue_discard_all(struct span_queue *queue)
{
    while (queue_discard_oldest(queue, OUTCOME_UNDELIVERED, true))
        ;
}

void queue_settle(struct span_queue *queue, struct batch *batch, enum outcome outcome,
                  uint32_t spans)
{
    LOCK_GUARD(&queue->lock);
    queue_settle_locked(queue, outcome, spans);
    batch->count -= spans;
    if (outcome == OUTCOME_SPOOLED)
        queue->is_spool_failing = false;
}

static uint64_t queue_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Senders settle the spans of a batch from left to right. A batch in another order counts only when
 * all of its spans are settled. */
static uint64_t queue_settled_before(const struct span_queue *queue, const struct batch *batch,
                                     uint64_t spans)
{
    if (batch->count == 0)
        return spans;
    return queue_min(spans, queue->options.is_arranged
                                ? batch->first
                                : batch->first + batch->taken - batch->count);
}

uint64_t queue_settled(struct span_queue *queue)
{
    uint64_t spans;

    LOCK_GUARD(&queue->lock);
    spans = queue->counts.spans;
    for (enum taker i = SENDER; i < TAKERS; i++) {
        for (const struct batch *batch = queue->in_flight[i]; batch; batch = batch->next)
            spans = queue_settled_before(queue, batch, spans);
    }
    if (queue->batches.first)
        spans = queue_min(spans, queue->batches.first->first);
    if (queue->batches.open)
        spans = queue_min(spans, queue->batches.open->first);
    return spans;
}

uint64_t queue_taken(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    return queue->taken;
}

void queue_count_cut(struct span_queue *queue, uint32_t spans)
{
    LOCK_GUARD(&queue->lock);
    queue->counts.cut += spans;
}

void queue_count_unsure(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    queue->counts.unsure = queue->counts.outcome[OUTCOME_ACCEPTED];
}

void queue_count_request(struct span_queue *queue, bool is_retry)
{
    LOCK_GUARD(&queue->lock);
    queue->counts.requests++;
    queue->counts.retries += is_retry;
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool queue_is_late(const struct span_queue *queue)
{
    return queue->is_stopping && clock_ms() >= queue->stop_ms;
}

static bool queue_has_spool(const struct span_queue *queue)
{
    return queue->options.has_spool && !queue->is_spool_failing;
}

/* Returns true if it is too late for any delivery. A spool takes batches at any time. */
static bool queue_is_over(const struct span_queue *queue)
{
    return queue->has_failed || (queue_is_late(queue) && !queue_has_spool(queue));
}

static bool queue_is_full(const struct span_queue *queue)
{
    return queue->batches.bytes + queue->in_flight_bytes >= queue->options.queue_bytes;
}

/* Returns true if spans come faster than the collector takes them while the graph does not wait. */
static bool queue_is_pressed(const struct span_queue *queue)
{
    return !queue->options.is_blocking &&
           queue->batches.bytes + queue->in_flight_bytes >= queue->options.queue_bytes / 2;
}

/* Returns true if the next batch goes to the spool. A slow collector is no reason while the graph
 * waits. */
static bool queue_goes_to_spool(const struct span_queue *queue)
{
    if (!queue_has_spool(queue))
        return false;
    return queue_is_late(queue) || queue_is_pressed(queue) || queue->route == QUEUE_AWAY ||
           (queue->route == QUEUE_BEHIND &&
            (!queue->options.is_blocking || queue->is_closed || queue->is_stopping));
}

/* Returns true if the next batch goes to a sender. */
static bool queue_goes_directly(const struct span_queue *queue)
{
    if (!queue->options.has_spool)
        return true;
    if (queue->in_flight[SPOOLER] || queue_goes_to_spool(queue))
        return false;
    return queue->route == QUEUE_DIRECT || queue->is_closed;
}

static void queue_take_in(struct span_queue *queue, const struct span *span)
{
    const bool was_empty = !queue->batches.open && !queue->batches.first;
    const struct batch *const last = queue->batches.last;

    if (!batch_list_add(&queue->batches, span, queue->counts.spans++)) {
        queue->counts.outcome[OUTCOME_NO_MEMORY]++;
        return;
    }
    queue->counts.waiting++;
    if (!was_empty && queue->batches.last == last)
        return;
    if (queue_goes_directly(queue))
        pthread_cond_signal(&queue->for_sender);
    else
        pthread_cond_signal(&queue->for_spooler);
}

/* Counts a span that does not enter the queue. */
static void queue_count_lost(struct span_queue *queue, enum outcome outcome)
{
    queue->counts.spans++;
    queue->counts.outcome[outcome]++;
}

enum queue_added queue_add(struct span_queue *queue, const struct span *span)
{
    enum queue_added added = QUEUE_ADDED;

    LOCK_GUARD(&queue->lock);
    if (queue_is_over(queue)) {
        queue_count_lost(queue, OUTCOME_UNDELIVERED);
    } else if (!queue_is_full(queue)) {
        queue_take_in(queue, span);
    } else if (queue->options.is_blocking) {
        added = QUEUE_FULL;
    } else {
        added = QUEUE_DROPPING;
        if (queue_discard_oldest(queue, OUTCOME_DROPPED, false) && !queue_is_full(queue))
            queue_take_in(queue, span);
        else
            queue_count_lost(queue, OUTCOME_DROPPED); /* the other batches are being sent */
    }
    return added;
}

static bool queue_is_in_state(const struct span_queue *queue, enum queue_state state)
{
    switch (state) {
    case QUEUE_HAS_ROOM:
        return !queue_is_full(queue) || queue_is_over(queue);
    case QUEUE_HAS_BEGUN:
        return queue->has_begun;
    case QUEUE_IS_EMPTY:
        return queue->counts.waiting == 0;
    case QUEUE_HAS_ENDED:
        return queue->ended >= queue->options.threads;
    }
    return true;
}

bool queue_wait(struct span_queue *queue, enum queue_state state, int64_t until_ms)
{
    bool done;

    LOCK_GUARD(&queue->lock);
    while (!(done = queue_is_in_state(queue, state)) && clock_ms() < until_ms)
        condition_wait(&queue->for_filler, &queue->lock, until_ms);
    return done;
}

void queue_set_blocking(struct span_queue *queue, bool is_blocking)
{
    LOCK_GUARD(&queue->lock);
    queue->options.is_blocking = is_blocking;
}

bool queue_is_blocking(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    return queue->options.is_blocking;
}

void queue_set_draining(struct span_queue *queue, bool is_draining)
{
    LOCK_GUARD(&queue->lock);
    queue->is_draining = is_draining;
    queue_wake(queue);
}

void queue_note_pause(struct span_queue *queue, int64_t pause_ms)
{
    LOCK_GUARD(&queue->lock);
    if (!queue->batches.open || pause_ms <= queue->options.batch_timeout_ms)
        return;
    queue->batches.open->first_ms = clock_ms() - queue->options.batch_timeout_ms;
    pthread_cond_signal(&queue->for_sender);
}

void queue_stop(struct span_queue *queue, int64_t stop_ms)
{
    LOCK_GUARD(&queue->lock);
    queue->is_stopping = true;
    queue->stop_ms = clock_earlier(queue->stop_ms, stop_ms);
    queue_wake(queue);
}

void queue_close(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    queue->is_closed = true;
    queue_wake(queue);
}

bool queue_has_failed(struct span_queue *queue, struct error *error)
{
    LOCK_GUARD(&queue->lock);
    if (queue->has_failed)
        *error = queue->failure;
    return queue->has_failed;
}

/* ---- emptying -------------------------------------------------------------------------------- */

static bool queue_is_hurried(const struct span_queue *queue)
{
    return queue->is_draining || queue->is_stopping || queue->is_closed;
}

/* Returns the time when senders take the open batch although it is not full. */
static int64_t queue_open_due_ms(const struct span_queue *queue, int64_t timeout_ms)
{
    if (!queue->batches.open)
        return CLOCK_NEVER;
    return queue_is_hurried(queue) ? 0 : queue->batches.open->first_ms + timeout_ms;
}

static bool queue_has_nothing_left(const struct span_queue *queue)
{
    return queue->is_closed && !queue->batches.open && !queue->batches.first &&
           !queue->in_flight[SENDER] && !queue->in_flight[SPOOLER];
}

bool queue_is_done(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    return queue_has_nothing_left(queue);
}

static struct batch *queue_take_from_queue(struct span_queue *queue, enum taker taker,
                                           bool also_open)
{
    struct batch *batch = batch_list_take(&queue->batches, also_open);

    if (!batch)
        return NULL;
    batch->taken = batch->count;
    queue->taken += batch->count;
    batch->next = queue->in_flight[taker];
    queue->in_flight[taker] = batch;
    queue->in_flight_bytes += batch->buffer.length;
    return batch;
}

struct batch *queue_take(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    for (;;) {
        int64_t due_ms = CLOCK_NEVER;
        struct batch *batch;

        if (queue_is_over(queue))
            queue_discard_all(queue);
        if (queue_goes_directly(queue)) {
            due_ms = queue_open_due_ms(queue, queue->options.batch_timeout_ms);
            batch = queue_take_from_queue(queue, SENDER, due_ms <= clock_ms());
            if (batch)
                return batch;
        }
        if (queue->is_closed ? queue_has_nothing_left(queue) : queue->route != QUEUE_DIRECT)
            return NULL;
        if (queue->options.has_spool && queue_is_hurried(queue) && !queue_is_late(queue))
            due_ms = clock_earlier(due_ms, queue->stop_ms);
        condition_wait(&queue->for_sender, &queue->lock, due_ms);
    }
}

/* Returns the time when the spooler looks again without a wake-up. */
static int64_t queue_spool_due_ms(const struct span_queue *queue)
{
    int64_t due_ms = CLOCK_NEVER;

    if (queue->is_spool_failing)
        due_ms = queue_is_late(queue) ? CLOCK_NEVER : queue->spool_retry_ms;
    else if (queue_goes_to_spool(queue))
        due_ms = queue_open_due_ms(queue, SPOOL_BATCH_MS);
    return queue->is_stopping && !queue_is_late(queue) ? clock_earlier(due_ms, queue->stop_ms)
                                                       : due_ms;
}

struct batch *queue_take_for_spool(struct span_queue *queue, int64_t until_ms)
{
    struct batch *batch = NULL;
    enum queue_route route;

    LOCK_GUARD(&queue->lock);
    route = queue->route;
    while (!batch && !queue_has_nothing_left(queue) && clock_ms() < until_ms &&
           queue->route == route && !queue->is_spooler_called) {
        if (queue_is_over(queue))
            queue_discard_all(queue);
        if (queue->is_spool_failing && clock_ms() >= queue->spool_retry_ms && !queue_is_late(queue))
            queue->is_spool_failing = false;
        if (queue_goes_to_spool(queue))
            batch = queue_take_from_queue(queue, SPOOLER,
                                          queue_open_due_ms(queue, SPOOL_BATCH_MS) <= clock_ms());
        if (!batch && !queue_has_nothing_left(queue))
            condition_wait(&queue->for_spooler, &queue->lock,
                           clock_earlier(until_ms, queue_spool_due_ms(queue)));
    }
    queue->is_spooler_called = false;
    return batch;
}

void queue_call_spooler(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    queue->is_spooler_called = true;
    pthread_cond_signal(&queue->for_spooler);
}

/* Removes a batch from the lists of taken batches. */
static void queue_release(struct span_queue *queue, struct batch *batch)
{
    for (enum taker i = SENDER; i < TAKERS; i++) {
        struct batch **at = &queue->in_flight[i];

        while (*at && *at != batch)
            at = &(*at)->next;
        if (*at)
            *at = batch->next;
    }
    batch->next = NULL;
    queue->in_flight_bytes -= batch->buffer.length;
    if (queue->is_closed || queue_goes_to_spool(queue))
        queue_wake(queue);
    else if (queue->options.has_spool) /* a sender may wait for the spooler's batch */
        pthread_cond_broadcast(&queue->for_sender);
}

void queue_finish(struct span_queue *queue, struct batch *batch)
{
    LOCK_GUARD(&queue->lock);
    queue_settle_locked(queue, OUTCOME_UNDELIVERED, batch->count);
    queue_release(queue, batch);
    batch_list_recycle(&queue->batches, batch);
    pthread_cond_signal(&queue->for_filler);
}

void queue_put_back(struct span_queue *queue, struct batch *batch)
{
    LOCK_GUARD(&queue->lock);
    queue->is_spool_failing = true;
    queue->spool_retry_ms = clock_ms() + SPOOL_RETRY_MS;
    if (!queue->options.is_arranged)
        batch->first += batch->taken - batch->count;
    queue_release(queue, batch);
    batch_list_put_back(&queue->batches, batch);
    if (queue_is_over(queue))
        queue_discard_all(queue);
    pthread_cond_signal(&queue->for_filler);
}

void queue_set_route(struct span_queue *queue, enum queue_route route)
{
    LOCK_GUARD(&queue->lock);
    if (queue->route != route) {
        queue->route = route;
        queue_wake(queue);
    }
}

void queue_begin(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    queue->has_begun = true;
    pthread_cond_signal(&queue->for_filler);
}

void queue_end(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    queue->ended++;
    pthread_cond_signal(&queue->for_filler);
}

/* The caller holds the lock. */
static bool queue_has_patience(const struct span_queue *queue)
{
    return !queue->is_stopping && !queue->is_draining;
}

bool queue_is_patient(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    return queue_has_patience(queue);
}

bool queue_pause(struct span_queue *queue, int64_t until_ms, bool was_patient)
{
    LOCK_GUARD(&queue->lock);
    /* after stop_ms the spool still takes spans, but no sender pauses */
    while (!queue_is_over(queue) && !queue_is_late(queue) && clock_ms() < until_ms &&
           was_patient == queue_has_patience(queue))
        condition_wait(&queue->for_pause, &queue->lock, clock_earlier(until_ms, queue->stop_ms));
    return !queue_is_over(queue);
}

struct queue_time_limit queue_time_limit(struct span_queue *queue)
{
    LOCK_GUARD(&queue->lock);
    return (struct queue_time_limit){
        .stop_ms = queue->stop_ms,
        .is_limited = queue->options.is_blocking || queue->is_draining,
    };
}

void queue_fail(struct span_queue *queue, const struct error *error)
{
    LOCK_GUARD(&queue->lock);
    queue->has_failed = true;
    queue->failure = *error;
    queue_discard_all(queue);
    queue_wake(queue);
    pthread_cond_signal(&queue->for_filler);
}
