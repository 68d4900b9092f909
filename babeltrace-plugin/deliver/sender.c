/*
 * The sender's thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "sender.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"
#include "spool_threads.h"

#include <stdlib.h>

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

static void *run_helper(void *context)
{
    struct courier *courier = context;

    while (deliver_next(courier))
        ;
    outbox_end(courier->outbox);
    return NULL;
}

bool sender_make_helpers(struct sender *sender, unsigned count)
{
    if (!count)
        return true;
    sender->helpers = calloc(count, sizeof(*sender->helpers));
    if (!sender->helpers)
        return false;
    sender->helper_count = count;
    for (unsigned i = 0; i < count; i++) {
        struct courier *courier = &sender->helpers[i].courier;

        *courier = sender->courier;
        courier->transport = NULL;
        courier->encoder = courier->tap_encoder = NULL;
        retry_init(&courier->retry);
    }
    return true;
}

/* Without one of them the others do its work. */
static void start_helpers(struct sender *sender)
{
    for (unsigned i = 0; i < sender->helper_count; i++) {
        struct helper *helper = &sender->helpers[i];

        helper->is_running =
            thread_start(&helper->thread, run_helper, &helper->courier, "blkin-sender");
        if (!helper->is_running)
            outbox_end(sender->courier.outbox);
    }
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
    if (thread_start(&sender->thread, run, sender, "blkin-sender")) {
        start_helpers(sender);
        return true;
    }
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

void sender_cancel(struct sender *sender)
{
    struct transport *transport = sender->courier.transport;

    transport->cancel(transport);
    for (unsigned i = 0; i < sender->helper_count; i++) {
        transport = sender->helpers[i].courier.transport;
        transport->cancel(transport);
    }
}

void sender_join(struct sender *sender)
{
    (void)pthread_join(sender->thread, NULL);
    for (unsigned i = 0; i < sender->helper_count; i++) {
        if (sender->helpers[i].is_running)
            (void)pthread_join(sender->helpers[i].thread, NULL);
        sender->helpers[i].is_running = false;
    }
    pthread_cond_destroy(&sender->is_probed_condition);
    pthread_mutex_destroy(&sender->lock);
}

static void free_encoder(struct encoder *encoder)
{
    if (encoder)
        encoder->free(encoder);
}

void sender_free_helpers(struct sender *sender)
{
    for (unsigned i = 0; i < sender->helper_count; i++) {
        struct courier *courier = &sender->helpers[i].courier;

        body_destroy(&courier->body);
        body_destroy(&courier->shown);
        if (courier->transport)
            courier->transport->free(courier->transport);
        free_encoder(courier->encoder);
        free_encoder(courier->tap_encoder);
    }
    free(sender->helpers);
    sender->helpers = NULL;
    sender->helper_count = 0;
}
