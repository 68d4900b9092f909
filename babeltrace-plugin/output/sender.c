/*
 * The sender's thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sender.h"

#include "../monotonic.h"
#include "spool_threads.h"
#include "thread.h"

static void probe(struct sender *sender)
{
    struct transport *transport = sender->courier.transport;
    struct reply *reply = &sender->courier.reply;

    *reply = (struct reply){.delivery = DELIVERY_ACCEPTED};
    if (transport->probe)
        transport->probe(transport, reply);
    pthread_mutex_lock(&sender->lock);
    sender->probe = *reply;
    sender->is_probed = true;
    pthread_cond_signal(&sender->is_probed_condition);
    pthread_mutex_unlock(&sender->lock);
}

static void finish(struct sender *sender)
{
    struct transport *transport = sender->courier.transport;

    sender->is_kept = !transport->finish || transport->finish(transport, &sender->error);
    if (!sender->is_kept)
        outbox_count_unsure(sender->courier.outbox);
}

/* Returns false at the end. What is in the spool goes first. */
static bool deliver_next(struct courier *courier)
{
    struct batch *batch;

    if (courier->spool)
        drain_spool(courier, true);
    batch = outbox_take(courier->outbox);
    if (!batch)
        return !outbox_is_done(courier->outbox);
    deliver_batch(courier, batch);
    outbox_finish(courier->outbox, batch);
    say_settled(courier);
    return true;
}

static void *run(void *context)
{
    struct sender *sender = context;
    struct courier *courier = &sender->courier;

    probe(sender);
    while (deliver_next(courier))
        ;
    finish(sender);
    outbox_end(courier->outbox);
    return NULL;
}

bool sender_start(struct sender *sender)
{
    pthread_condattr_t attributes;

    sender->is_probed = false;
    retry_init(&sender->courier.retry);
    pthread_mutex_init(&sender->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&sender->is_probed_condition, &attributes);
    pthread_condattr_destroy(&attributes);
    if (thread_start(&sender->thread, run, sender, "blkin-sender"))
        return true;
    pthread_cond_destroy(&sender->is_probed_condition);
    pthread_mutex_destroy(&sender->lock);
    return false;
}

bool sender_wait_for_probe(struct sender *sender, int64_t until_ms)
{
    const struct timespec until = {until_ms / 1000, until_ms % 1000 * 1000000};
    bool is_probed;

    pthread_mutex_lock(&sender->lock);
    while (!sender->is_probed && clock_ms() < until_ms)
        (void)pthread_cond_timedwait(&sender->is_probed_condition, &sender->lock, &until);
    is_probed = sender->is_probed;
    pthread_mutex_unlock(&sender->lock);
    return is_probed;
}

void sender_join(struct sender *sender)
{
    (void)pthread_join(sender->thread, NULL);
    pthread_cond_destroy(&sender->is_probed_condition);
    pthread_mutex_destroy(&sender->lock);
}
