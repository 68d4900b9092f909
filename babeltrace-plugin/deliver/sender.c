/*
 * The threads of an exporter.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sender.h"

#include "babeltrace-plugin/base/lock.h"
#include "babeltrace-plugin/base/thread.h"
#include "dispatch.h"
#include "spooler.h"

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
            spooler_drain(courier, true);
        batch = outbox_take(courier->outbox);
        if (batch) {
            dispatch_batch(courier, batch);
            outbox_finish(courier->outbox, batch);
            dispatch_say_settled(courier);
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
        spooler_drain(courier, false);
        break;
    case WORK_SPOOL:
        spooler_fill(courier);
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

static void sender_free_encoder(struct encoder *encoder)
{
    if (encoder)
        encoder->free(encoder);
}

void sender_close(struct sender *sender)
{
    if (!sender->workers)
        return;
    for (unsigned i = 0; i < sender->count; i++) {
        struct courier *courier = &sender->workers[i].courier;

        if (courier->transport && sender->workers[i].work != WORK_SPOOL)
            courier->transport->free(courier->transport);
        sender_free_encoder(courier->encoder);
        sender_free_encoder(courier->tap_encoder);
        body_destroy(&courier->body);
        body_destroy(&courier->shown);
        parts_free(&courier->parts);
        free(courier->replies);
    }
    free(sender->workers);
    sender->workers = NULL;
    sender->count = 0;
    pthread_cond_destroy(&sender->is_probed_condition);
    pthread_mutex_destroy(&sender->lock);
}
