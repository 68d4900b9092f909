/*
 * The threads of an exporter.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sender.h"

#include "babeltrace-plugin/base/lock.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"
#include "dispatch.h"

/* ---- with a spool ---------------------------------------------------------------------------- */

static void sender_say_lost(struct courier *courier)
{
    struct error error;

    if (spool_has_lost(courier->spool, &error))
        reporter_say(courier->reporter, REPORT_SPOOL_LOSES, "%s", error.text);
}

/* Sends records of the spool until it is stopped; is_main: or until it is empty. */
static void sender_drain_spool(struct courier *courier, bool is_main)
{
    struct spool_record record;

    while (spool_take(courier->spool, &record, courier->encoder, &courier->body, is_main)) {
        dispatch_record(courier, &record);
        spool_finish(courier->spool, &record);
        sender_say_lost(courier);
    }
}

/* Neither the disk nor the collector takes spans. If the graph waits, delivery fails, as it would
 * without a spool. */
static void sender_give_up(struct courier *courier, int64_t since_ms, const struct error *error)
{
    if (clock_ms() - since_ms >= courier->retry_timeout_ms &&
        outbox_patience(courier->outbox).is_limited && spool_is_away(courier->spool))
        outbox_fail(courier->outbox, error);
}

/* Before anything of it is on its way. */
static void sender_say_taken(struct courier *courier)
{
    if (courier->taken)
        courier->taken(courier->context, outbox_taken(courier->outbox));
}

static void sender_put_in(struct courier *courier, struct batch *batch, int64_t *failing_since_ms)
{
    struct error error;

    if (dispatch_batch(courier, batch, true, &error)) {
        outbox_finish(courier->outbox, batch);
        sender_say_lost(courier);
        *failing_since_ms = CLOCK_NEVER;
        return;
    }
    outbox_put_back(courier->outbox, batch);
    reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s; spans wait in the queue", error.text);
    if (*failing_since_ms == CLOCK_NEVER)
        *failing_since_ms = clock_ms();
    sender_give_up(courier, *failing_since_ms, &error);
}

static void sender_store(struct courier *courier)
{
    struct error error;

    if (!spool_sync(courier->spool, &error))
        reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s", error.text);
}

/* Puts batches into the spool, and has them stored on disk, until the outbox is done. */
static void sender_fill_spool(struct courier *courier)
{
    int64_t failing_since_ms = CLOCK_NEVER;

    while (!outbox_is_done(courier->outbox)) {
        const int64_t sync_due_ms = spool_sync_due_ms(courier->spool);
        struct batch *batch = outbox_take_aside(courier->outbox, sync_due_ms);

        if (batch) {
            sender_say_taken(courier);
            sender_put_in(courier, batch, &failing_since_ms);
        }
        if (clock_ms() >= sync_due_ms)
            sender_store(courier);
    }
}

/* ---- what a thread does ---------------------------------------------------------------------- */

static void sender_probe(struct sender *sender, struct courier *courier)
{
    struct reply reply;

    courier->transport->probe(courier->transport, &reply);
    LOCK_GUARD(&sender->lock);
    sender->probe = reply;
    sender->is_probed = true;
    pthread_cond_signal(&sender->is_probed_condition);
}

static void sender_finish(struct sender *sender, struct courier *courier)
{
    struct transport *transport = courier->transport;

    sender->is_kept = !transport->finish || transport->finish(transport, &sender->error);
    if (!sender->is_kept)
        outbox_count_unsure(courier->outbox);
}

/* Sends until the end, records of the spool first. */
static void sender_deliver(struct courier *courier)
{
    struct batch *batch;

    do {
        if (courier->spool)
            sender_drain_spool(courier, true);
        batch = outbox_take(courier->outbox);
        if (batch) {
            sender_say_taken(courier);
            (void)dispatch_batch(courier, batch, false, NULL);
            outbox_finish(courier->outbox, batch);
        }
    } while (batch || !outbox_is_done(courier->outbox));
}

static void *sender_run(void *context)
{
    struct worker *worker = context;
    struct courier *courier = &worker->courier;

    switch (worker->work) {
    case WORK_MAIN:
        sender_probe(worker->sender, courier);
        sender_deliver(courier);
        sender_finish(worker->sender, courier);
        break;
    case WORK_SEND:
        sender_deliver(courier);
        break;
    case WORK_RECORDS:
        sender_drain_spool(courier, false);
        break;
    case WORK_SPOOL:
        sender_fill_spool(courier);
        break;
    }
    outbox_end(courier->outbox);
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

bool sender_open(struct sender *sender, const struct courier *courier,
                 const struct sender_threads *threads)
{
    pthread_mutex_init(&sender->lock, NULL);
    condition_init(&sender->is_probed_condition);
    sender->workers = calloc(sender_count(threads), sizeof(*sender->workers));
    if (!sender->workers)
        return false;
    sender->count = sender_count(threads);
    for (unsigned i = 0; i < sender->count; i++) {
        sender->workers[i] = (struct worker){
            .courier = *courier,
            .sender = sender,
            .work = i == 0                                        ? WORK_MAIN
                    : i <= threads->helpers                       ? WORK_SEND
                    : i <= threads->helpers + threads->of_records ? WORK_RECORDS
                                                                  : WORK_SPOOL,
        };
        retry_init(&sender->workers[i].courier.retry);
    }
    return true;
}

bool sender_start(struct sender *sender)
{
    bool are_needed_running = true;

    for (unsigned i = 0; i < sender->count; i++) {
        struct worker *worker = &sender->workers[i];
        const bool is_spooler = worker->work == WORK_SPOOL;

        worker->is_running = thread_start(&worker->thread, sender_run, worker,
                                          is_spooler ? "blkin-spooler" : "blkin-sender");
        if (worker->is_running)
            continue;
        outbox_end(worker->courier.outbox);
        /* the other workers do the work of one that is missing */
        are_needed_running &= worker->work != WORK_MAIN && !is_spooler;
    }
    return are_needed_running;
}

bool sender_wait_for_probe(struct sender *sender, int64_t until_ms)
{
    LOCK_GUARD(&sender->lock);
    while (!sender->is_probed && clock_ms() < until_ms)
        condition_wait(&sender->is_probed_condition, &sender->lock, until_ms);
    return sender->is_probed;
}

void sender_cancel(struct sender *sender)
{
    for (unsigned i = 0; i < sender->count; i++) {
        struct transport *transport = sender->workers[i].courier.transport;

        transport->cancel(transport);
    }
}

void sender_join(struct sender *sender)
{
    for (unsigned i = 0; i < sender->count; i++) {
        if (sender->workers[i].is_running)
            (void)pthread_join(sender->workers[i].thread, NULL);
        sender->workers[i].is_running = false;
    }
}

void sender_close(struct sender *sender)
{
    if (!sender->workers)
        return;
    for (unsigned i = 0; i < sender->count; i++) {
        struct courier *courier = &sender->workers[i].courier;

        if (courier->transport && sender->workers[i].work != WORK_SPOOL)
            courier->transport->free(courier->transport);
        if (courier->encoder)
            courier->encoder->free(courier->encoder);
        body_destroy(&courier->body);
        parts_free(&courier->parts);
        free(courier->replies);
    }
    free(sender->workers);
    sender->workers = NULL;
    sender->count = 0;
    pthread_cond_destroy(&sender->is_probed_condition);
    pthread_mutex_destroy(&sender->lock);
}
