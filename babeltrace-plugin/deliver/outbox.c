/*
 * The outbox: a queue, a lock, and the account.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "outbox.h"

#include "babeltrace-plugin/base/monotonic.h"

#include <pthread.h>
#include <stdlib.h>

#define SPOOL_BATCH_MS 200  /* while they go to disk, batches wait so long for more spans */
#define SPOOL_RETRY_MS 1000 /* a disk that takes nothing is tried again so late */

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
    pthread_cond_t *const conditions[] = {&outbox->for_sender, &outbox->for_spooler,
                                          &outbox->for_pause, &outbox->for_filler};
    const unsigned count = sizeof(conditions) / sizeof(conditions[0]);
    unsigned done = 0;

    if (pthread_mutex_init(&outbox->lock, NULL) != 0)
        return false;
    while (done < count && init_condition(conditions[done]))
        done++;
    if (done == count)
        return true;
    while (done--)
        pthread_cond_destroy(conditions[done]);
    pthread_mutex_destroy(&outbox->lock);
    return false;
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
    pthread_cond_destroy(&outbox->for_pause);
    pthread_cond_destroy(&outbox->for_spooler);
    pthread_cond_destroy(&outbox->for_sender);
    pthread_mutex_destroy(&outbox->lock);
    free(outbox);
}

/* Whoever takes batches looks again. */
static void wake_takers(struct outbox *outbox)
{
    pthread_cond_broadcast(&outbox->for_sender);
    pthread_cond_broadcast(&outbox->for_pause);
    pthread_cond_signal(&outbox->for_spooler);
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

void outbox_settle(struct outbox *outbox, struct batch *batch, enum outcome outcome, uint32_t spans)
{
    pthread_mutex_lock(&outbox->lock);
    settle(outbox, outcome, spans);
    batch->count -= spans;
    if (outcome == OUTCOME_SPOOLED)
        outbox->is_spool_failing = false;
    pthread_mutex_unlock(&outbox->lock);
}

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/*
 * Of a batch of which some are settled: from left to right, as it is sent. One that is sent in
 * another order counts when it is settled as a whole.
 */
static uint64_t settled_before(const struct outbox *outbox, const struct batch *batch,
                               uint64_t spans)
{
    if (batch->count == 0)
        return spans;
    return smaller(spans, outbox->options.is_arranged ? batch->first
                                                      : batch->first + batch->taken - batch->count);
}

uint64_t outbox_settled(struct outbox *outbox)
{
    uint64_t spans;

    pthread_mutex_lock(&outbox->lock);
    spans = outbox->counts.spans;
    for (enum taker i = SENDER; i < TAKERS; i++) {
        for (const struct batch *batch = outbox->in_flight[i]; batch; batch = batch->next)
            spans = settled_before(outbox, batch, spans);
    }
    if (outbox->queue.first)
        spans = smaller(spans, outbox->queue.first->first);
    if (outbox->queue.open)
        spans = smaller(spans, outbox->queue.open->first);
    pthread_mutex_unlock(&outbox->lock);
    return spans;
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

static bool is_late(const struct outbox *outbox)
{
    return outbox->is_stopping && clock_ms() >= outbox->stop_ms;
}

static bool has_spool(const struct outbox *outbox)
{
    return outbox->options.has_spool && !outbox->is_spool_failing;
}

/* Nothing is delivered any more; what a spool can take is not late. */
static bool is_over(const struct outbox *outbox)
{
    return outbox->has_failed || (is_late(outbox) && !has_spool(outbox));
}

static bool is_full(const struct outbox *outbox)
{
    return outbox->queue.bytes + outbox->in_flight_bytes >= outbox->options.queue_bytes;
}

/* The collector is slower than what comes, and who fills the queue does not wait for it. */
static bool is_pressed(const struct outbox *outbox)
{
    return !outbox->options.is_blocking &&
           outbox->queue.bytes + outbox->in_flight_bytes >= outbox->options.queue_bytes / 2;
}

/* Does the next batch go to the spool? A collector that is merely slow is waited for. */
static bool goes_aside(const struct outbox *outbox)
{
    if (!has_spool(outbox))
        return false;
    return is_late(outbox) || is_pressed(outbox) || outbox->way == OUTBOX_AWAY ||
           (outbox->way == OUTBOX_BEHIND &&
            (!outbox->options.is_blocking || outbox->is_closed || outbox->is_stopping));
}

/* The next batch goes to the sender. */
static bool goes_directly(const struct outbox *outbox)
{
    if (!outbox->options.has_spool)
        return true;
    if (outbox->in_flight[SPOOLER] || goes_aside(outbox))
        return false;
    return outbox->way == OUTBOX_DIRECT || outbox->is_closed;
}

static void take_in(struct outbox *outbox, const struct span *span)
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
    if (goes_directly(outbox))
        pthread_cond_signal(&outbox->for_sender);
    else
        pthread_cond_signal(&outbox->for_spooler);
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

static bool holds(const struct outbox *outbox, enum outbox_state state)
{
    switch (state) {
    case OUTBOX_HAS_ROOM:
        return !is_full(outbox) || is_over(outbox);
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

bool outbox_is_blocking(struct outbox *outbox)
{
    bool is_blocking;

    pthread_mutex_lock(&outbox->lock);
    is_blocking = outbox->options.is_blocking;
    pthread_mutex_unlock(&outbox->lock);
    return is_blocking;
}

void outbox_set_draining(struct outbox *outbox, bool is_draining)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_draining = is_draining;
    wake_takers(outbox);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_stop(struct outbox *outbox, int64_t stop_ms)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_stopping = true;
    outbox->stop_ms = earlier(outbox->stop_ms, stop_ms);
    wake_takers(outbox);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_close(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_closed = true;
    wake_takers(outbox);
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

static bool is_hurried(const struct outbox *outbox)
{
    return outbox->is_draining || outbox->is_stopping || outbox->is_closed;
}

/* When the open batch is to be taken though it is not full. */
static int64_t open_due_ms(const struct outbox *outbox, int64_t timeout_ms)
{
    if (!outbox->queue.open)
        return CLOCK_NEVER;
    return is_hurried(outbox) ? 0 : outbox->queue.open->first_ms + timeout_ms;
}

static bool is_empty(const struct outbox *outbox)
{
    return !outbox->queue.open && !outbox->queue.first;
}

static bool is_done(const struct outbox *outbox)
{
    return outbox->is_closed && is_empty(outbox) && !outbox->in_flight[SENDER] &&
           !outbox->in_flight[SPOOLER];
}

bool outbox_is_done(struct outbox *outbox)
{
    bool done;

    pthread_mutex_lock(&outbox->lock);
    done = is_done(outbox);
    pthread_mutex_unlock(&outbox->lock);
    return done;
}

static struct batch *take_from_queue(struct outbox *outbox, enum taker taker, bool also_open)
{
    struct batch *batch = queue_take(&outbox->queue, also_open);

    if (!batch)
        return NULL;
    batch->taken = batch->count;
    batch->next = outbox->in_flight[taker];
    outbox->in_flight[taker] = batch;
    outbox->in_flight_bytes += batch->buffer.length;
    return batch;
}

static struct batch *take(struct outbox *outbox)
{
    for (;;) {
        int64_t due_ms = CLOCK_NEVER;
        struct batch *batch;

        if (is_over(outbox))
            discard_all(outbox);
        if (goes_directly(outbox)) {
            due_ms = open_due_ms(outbox, outbox->options.batch_timeout_ms);
            batch = take_from_queue(outbox, SENDER, due_ms <= clock_ms());
            if (batch)
                return batch;
        }
        if (outbox->is_closed ? is_done(outbox) : outbox->way != OUTBOX_DIRECT)
            return NULL;
        if (outbox->options.has_spool && is_hurried(outbox) && !is_late(outbox))
            due_ms = earlier(due_ms, outbox->stop_ms);
        wait_until(outbox, &outbox->for_sender, due_ms);
    }
}

struct batch *outbox_take(struct outbox *outbox)
{
    struct batch *batch;

    pthread_mutex_lock(&outbox->lock);
    batch = take(outbox);
    pthread_mutex_unlock(&outbox->lock);
    return batch;
}

/* When something may be the spooler's that is not now. */
static int64_t aside_due_ms(const struct outbox *outbox)
{
    int64_t due_ms = CLOCK_NEVER;

    if (outbox->is_spool_failing)
        due_ms = outbox->spool_retry_ms;
    else if (goes_aside(outbox))
        due_ms = open_due_ms(outbox, SPOOL_BATCH_MS);
    return outbox->is_stopping && !is_late(outbox) ? earlier(due_ms, outbox->stop_ms) : due_ms;
}

struct batch *outbox_take_aside(struct outbox *outbox, int64_t until_ms)
{
    struct batch *batch = NULL;
    enum outbox_way way;

    pthread_mutex_lock(&outbox->lock);
    way = outbox->way;
    while (!batch && !is_done(outbox) && clock_ms() < until_ms && outbox->way == way) {
        if (is_over(outbox))
            discard_all(outbox);
        if (outbox->is_spool_failing && clock_ms() >= outbox->spool_retry_ms && !is_late(outbox))
            outbox->is_spool_failing = false;
        if (goes_aside(outbox))
            batch =
                take_from_queue(outbox, SPOOLER, open_due_ms(outbox, SPOOL_BATCH_MS) <= clock_ms());
        if (!batch && !is_done(outbox))
            wait_until(outbox, &outbox->for_spooler, earlier(until_ms, aside_due_ms(outbox)));
    }
    pthread_mutex_unlock(&outbox->lock);
    return batch;
}

/* The batch is nobody's any more. */
static void let_go(struct outbox *outbox, struct batch *batch)
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
        wake_takers(outbox);
}

void outbox_finish(struct outbox *outbox, struct batch *batch)
{
    pthread_mutex_lock(&outbox->lock);
    settle(outbox, OUTCOME_UNDELIVERED, batch->count);
    let_go(outbox, batch);
    queue_recycle(&outbox->queue, batch);
    pthread_cond_signal(&outbox->for_filler);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_put_back(struct outbox *outbox, struct batch *batch)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->is_spool_failing = true;
    outbox->spool_retry_ms = clock_ms() + SPOOL_RETRY_MS;
    if (!outbox->options.is_arranged)
        batch->first += batch->taken - batch->count;
    let_go(outbox, batch);
    queue_put_back(&outbox->queue, batch);
    if (is_over(outbox))
        discard_all(outbox);
    pthread_cond_signal(&outbox->for_filler);
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_set_way(struct outbox *outbox, enum outbox_way way)
{
    pthread_mutex_lock(&outbox->lock);
    if (outbox->way != way) {
        outbox->way = way;
        wake_takers(outbox);
    }
    pthread_mutex_unlock(&outbox->lock);
}

void outbox_end(struct outbox *outbox)
{
    pthread_mutex_lock(&outbox->lock);
    outbox->ended++;
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
        wait_until(outbox, &outbox->for_pause, earlier(until_ms, outbox->stop_ms));
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
    wake_takers(outbox);
    pthread_cond_signal(&outbox->for_filler);
    pthread_mutex_unlock(&outbox->lock);
}
