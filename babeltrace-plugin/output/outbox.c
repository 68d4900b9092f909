/*
 * The outbox: a queue, a lock, and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "outbox.h"

#include "../monotonic.h"

#include <pthread.h>
#include <stdlib.h>

struct outbox {
    pthread_mutex_t lock;
    pthread_cond_t for_sender; /* there may be something to do */
    pthread_cond_t for_filler; /* there may be room, or nothing left */
    struct queue queue;
    struct outbox_options options;
    struct exporter_counts counts;
    size_t in_flight_bytes;
    uint32_t in_flight_spans; /* without an outcome yet */
    int64_t stop_ms;
    bool is_draining;
    bool is_stopping;
    bool is_closed;
    bool has_failed;
    bool has_ended;
    struct error failure;
};

static bool init_condition(pthread_cond_t *condition)
{
    pthread_condattr_t attributes;
    bool done;

    if (pthread_condattr_init(&attributes) != 0)
        return false;
    done = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 &&
           pthread_cond_init(condition, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    return done;
}

static bool init(struct outbox *outbox)
{
    if (pthread_mutex_init(&outbox->lock, NULL) != 0)
        return false;
    if (!init_condition(&outbox->for_sender)) {
        pthread_mutex_destroy(&outbox->lock);
        return false;
    }
    if (!init_condition(&outbox->for_filler)) {
        pthread_cond_destroy(&outbox->for_sender);
        pthread_mutex_destroy(&outbox->lock);
        return false;
    }
    return true;
}

struct outbox *outbox_new(const struct outbox_options *options)
{
    struct outbox *outbox = calloc(1, sizeof(*outbox));

    if (!outbox || !init(outbox)) {
        free(outbox);
        return NULL;
    }
    outbox->options = *options;
    /* one being filled and one being sent are the least with which anything moves */
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
    pthread_cond_destroy(&outbox->for_sender);
    pthread_mutex_destroy(&outbox->lock);
    free(outbox);
}

static void wait_until(struct outbox *outbox, pthread_cond_t *condition, int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};

    if (until_ms == CLOCK_NEVER)
        pthread_cond_wait(condition, &outbox->lock);
    else
        (void)pthread_cond_timedwait(condition, &outbox->lock, &until);
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- the account ----------------------------------------------------------------------------- */

struct exporter_counts outbox_counts(struct outbox *outbox)
{
    struct exporter_counts counts;

    pthread_mutex_lock(&outbox->lock);
    counts = outbox->counts;
    pthread_mutex_unlock(&outbox->lock);
    return counts;
}

/* Spans that have waited get their outcome. */
static void settle(struct outbox *outbox, enum outcome outcome, uint32_t spans)
{
    outbox->counts.outcome[outcome] += spans;
    outbox->counts.waiting -= spans;
}

/* Takes the oldest batch out of the queue. Returns false if there is none. */
static bool discard_oldest(struct outbox *outbox, enum outcome outcome, bool also_open)
{
    struct batch *batch = queue_take(&outbox->queue, also_open);

    if (!batch)
        return false;
    settle(outbox, outcome, batch->count);
    queue_recycle(&outbox->queue, batch);
    return true;
}

static void discard_all(struct outbox *outbox)
{
    while (discard_oldest(outbox, OUTCOME_UNDELIVERED, true))
        ;
}

void outbox_settle(struct outbox *outbox, enum outcome outcome, uint32_t spans)
{
    pthread_mutex_lock(&outbox->lock);
    settle(outbox, outcome, spans);
    outbox->in_flight_spans -= spans;
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_count_cut(struct outbox *outbox, uint32_t spans)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->counts.cut += spans;
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_count_unsure(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->counts.unsure = outbox->counts.outcome[OUTCOME_ACCEPTED];
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_count_request(struct outbox *outbox, bool is_retry)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->counts.requests++;
    outbox->counts.retries += is_retry;
    pthread_mutex_unlock(&outbox->lock);
}

/* ---- filling --------------------------------------------------------------------------------- */

static bool is_over(const struct outbox *outbox)
{
    return outbox->has_failed || (outbox->is_stopping && clock_ms() >= outbox->stop_ms);
}

static bool is_full(const struct outbox *outbox)
{
    return outbox->queue.bytes + outbox->in_flight_bytes >= outbox->options.queue_bytes;
}

static void take_in(struct outbox *outbox, const struct span *span)
{
    const bool was_empty = !outbox->queue.open && !outbox->queue.first;
    const struct batch *const last = outbox->queue.last;

    outbox->counts.spans++;
    if (!queue_add(&outbox->queue, span)) {
        outbox->counts.outcome[OUTCOME_NO_MEMORY]++;
        return;
    }
    outbox->counts.waiting++;
    if (was_empty || outbox->queue.last != last)
        pthread_cond_signal(&outbox->for_sender);
}

/* A span that never gets into the queue. */
static void count_lost(struct outbox *outbox, enum outcome outcome)
{
    outbox->counts.spans++;
    outbox->counts.outcome[outcome]++;
}

enum outbox_added outbox_add(struct outbox *outbox, const struct span *span)
{
    enum outbox_added added = OUTBOX_ADDED;

    pthread_mutex_lock(&outbox->lock);
    if (is_over(outbox)) {
        count_lost(outbox, OUTCOME_UNDELIVERED);
    } else if (!is_full(outbox)) {
        take_in(outbox, span);
    } else if (outbox->options.is_blocking) {
        added = OUTBOX_FULL;
    } else {
        added = OUTBOX_DROPPING;
        if (discard_oldest(outbox, OUTCOME_DROPPED, false) && !is_full(outbox))
            take_in(outbox, span);
        else
            count_lost(outbox, OUTCOME_DROPPED); /* all there is is being filled or sent */
    }
    pthread_mutex_unlock(&outbox->lock);
    return added;
}

void outbox_skip(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    count_lost(outbox, OUTCOME_SKIPPED);
    pthread_mutex_unlock(&outbox->lock);
}

static bool holds(const struct outbox *outbox, enum outbox_state state)
{
    switch (state) {
    case OUTBOX_HAS_ROOM:
        return !is_full(outbox) || is_over(outbox);
    case OUTBOX_IS_EMPTY:
        return outbox->counts.waiting == 0;
    case OUTBOX_HAS_ENDED:
        return outbox->has_ended;
    }
    return true;
}

bool outbox_wait(struct outbox *outbox, enum outbox_state state, int64_t until_ms)
{
    bool done;

    pthread_mutex_lock(&outbox->lock);
    while (!(done = holds(outbox, state)) && clock_ms() < until_ms)
        wait_until(outbox, &outbox->for_filler, until_ms);
    pthread_mutex_unlock(&outbox->lock);
    return done;
}

void outbox_set_blocking(struct outbox *outbox, bool is_blocking)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->options.is_blocking = is_blocking;
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_set_draining(struct outbox *outbox, bool is_draining)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_draining = is_draining;
    pthread_cond_signal(&outbox->for_sender);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_stop(struct outbox *outbox, int64_t stop_ms)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_stopping = true;
    outbox->stop_ms = earlier(outbox->stop_ms, stop_ms);
    pthread_cond_signal(&outbox->for_sender);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_close(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_closed = true;
    pthread_cond_signal(&outbox->for_sender);
    pthread_mutex_unlock(&outbox->lock);
}

bool outbox_has_failed(struct outbox *outbox, struct error *error)
{
    bool has_failed;

    pthread_mutex_lock(&outbox->lock);
    has_failed = outbox->has_failed;
    if (has_failed)
        *error = outbox->failure;
    pthread_mutex_unlock(&outbox->lock);
    return has_failed;
}

/* ---- emptying -------------------------------------------------------------------------------- */

/* When the open batch is to be sent though it is not full. */
static int64_t open_due_ms(const struct outbox *outbox)
{
    if (!outbox->queue.open)
        return CLOCK_NEVER;
    if (outbox->is_draining || outbox->is_stopping || outbox->is_closed)
        return 0;
    return outbox->queue.open->first_ms + outbox->options.batch_timeout_ms;
}

static struct batch *take(struct outbox *outbox)
{
    for (;;) {
        const int64_t due_ms = open_due_ms(outbox);
        struct batch *batch;

        if (is_over(outbox))
            discard_all(outbox);
        batch = queue_take(&outbox->queue, due_ms <= clock_ms());
        if (batch)
            return batch;
        if (outbox->is_closed)
            return NULL;
        wait_until(outbox, &outbox->for_sender, due_ms);
    }
}

struct batch *outbox_take(struct outbox *outbox)
{
    struct batch *batch;

    pthread_mutex_lock(&outbox->lock);
    batch = take(outbox);
    if (batch) {
        outbox->in_flight_bytes = batch->buffer.length;
        outbox->in_flight_spans = batch->count;
    }
    pthread_mutex_unlock(&outbox->lock);
    return batch;
}

void outbox_finish(struct outbox *outbox, struct batch *batch)
{
    pthread_mutex_lock(&outbox->lock);
    settle(outbox, OUTCOME_UNDELIVERED, outbox->in_flight_spans);
    outbox->in_flight_bytes = 0;
    outbox->in_flight_spans = 0;
    queue_recycle(&outbox->queue, batch);
    pthread_cond_signal(&outbox->for_filler);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_end(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->has_ended = true;
    pthread_cond_signal(&outbox->for_filler);
    pthread_mutex_unlock(&outbox->lock);
}

bool outbox_pause(struct outbox *outbox, int64_t until_ms)
{
    bool was_patient, goes_on;

    pthread_mutex_lock(&outbox->lock);
    was_patient = !outbox->is_stopping && !outbox->is_draining;
    while (!is_over(outbox) && clock_ms() < until_ms &&
           was_patient == (!outbox->is_stopping && !outbox->is_draining))
        wait_until(outbox, &outbox->for_sender, earlier(until_ms, outbox->stop_ms));
    goes_on = !is_over(outbox);
    pthread_mutex_unlock(&outbox->lock);
    return goes_on;
}

struct outbox_patience outbox_patience(struct outbox *outbox)
{
    struct outbox_patience patience;

    pthread_mutex_lock(&outbox->lock);
    patience = (struct outbox_patience){
        .stop_ms = outbox->stop_ms,
        .is_limited = outbox->options.is_blocking || outbox->is_draining,
    };
    pthread_mutex_unlock(&outbox->lock);
    return patience;
}

void outbox_fail(struct outbox *outbox, const struct error *error)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->has_failed = true;
    outbox->failure = *error;
    discard_all(outbox);
    pthread_cond_signal(&outbox->for_filler);
    pthread_mutex_unlock(&outbox->lock);
}
