/*
 * The threads of a spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spool_threads.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/thread.h"

#include <stdlib.h>

struct worker {
    struct courier courier;
    pthread_t thread;
    bool is_running;
};

struct spool_threads {
    struct worker spooler;
    unsigned given; /* transports */
    unsigned senders;
    struct worker sender[];
};

static void say_lost(struct courier *courier)
{
    struct error error;

    if (spool_has_lost(courier->spool, &error))
        reporter_say(courier->reporter, REPORT_SPOOL_LOSES, "%s", error.text);
}

void drain_spool(struct courier *courier, bool is_main)
{
    struct spool_record record;

    while (spool_take(courier->spool, &record, courier->encoder, &courier->body, is_main)) {
        deliver_record(courier, &record);
        spool_finish(courier->spool, &record);
        say_lost(courier);
    }
}

static void *run_sender(void *context)
{
    struct courier *courier = context;

    drain_spool(courier, false);
    outbox_end(courier->outbox);
    return NULL;
}

/* ---- putting in ------------------------------------------------------------------------------ */

/* Neither disk nor collector takes anything: who waits for that is told, as without a spool. */
static void give_up(struct courier *courier, int64_t since_ms, const struct error *error)
{
    if (clock_ms() - since_ms >= courier->retry_timeout_ms &&
        outbox_patience(courier->outbox).is_limited && spool_is_away(courier->spool))
        outbox_fail(courier->outbox, error);
}

static void put_in(struct courier *courier, struct batch *batch, int64_t *failing_since_ms)
{
    struct error error;

    if (spool_batch(courier, batch, &error)) {
        outbox_finish(courier->outbox, batch);
        say_settled(courier);
        say_lost(courier);
        *failing_since_ms = CLOCK_NEVER;
        return;
    }
    outbox_put_back(courier->outbox, batch);
    reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s; spans wait in the queue", error.text);
    if (*failing_since_ms == CLOCK_NEVER)
        *failing_since_ms = clock_ms();
    give_up(courier, *failing_since_ms, &error);
}

static void store(struct courier *courier)
{
    struct error error;

    if (!spool_sync(courier->spool, &error))
        reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s", error.text);
}

static void *run_spooler(void *context)
{
    struct courier *courier = context;
    int64_t failing_since_ms = CLOCK_NEVER;

    while (!outbox_is_done(courier->outbox)) {
        const int64_t sync_due_ms = spool_sync_due_ms(courier->spool);
        struct batch *batch = outbox_take_aside(courier->outbox, sync_due_ms);

        if (batch)
            put_in(courier, batch, &failing_since_ms);
        if (clock_ms() >= sync_due_ms)
            store(courier);
    }
    outbox_end(courier->outbox);
    return NULL;
}

/* ---- beginning and end ----------------------------------------------------------------------- */

struct spool_threads *spool_threads_new(const struct courier *courier, unsigned senders)
{
    struct spool_threads *threads =
        calloc(1, sizeof(*threads) + senders * sizeof(threads->sender[0]));

    if (!threads)
        return NULL;
    threads->senders = senders;
    threads->spooler.courier = *courier;
    for (unsigned i = 0; i < senders; i++) {
        threads->sender[i].courier = *courier;
        retry_init(&threads->sender[i].courier.retry);
    }
    return threads;
}

void spool_threads_give(struct spool_threads *threads, struct transport *transport)
{
    threads->sender[threads->given++].courier.transport = transport;
}

static bool start(struct worker *worker, void *(*run)(void *), const char *name)
{
    worker->is_running = thread_start(&worker->thread, run, &worker->courier, name);
    return worker->is_running;
}

bool spool_threads_start(struct spool_threads *threads, struct encoder *encoder,
                         struct encoder *tap_encoder)
{
    threads->spooler.courier.encoder = encoder;
    threads->spooler.courier.tap_encoder = tap_encoder;
    if (!start(&threads->spooler, run_spooler, "blkin-spooler"))
        return false;
    for (unsigned i = 0; i < threads->senders; i++) {
        if (!start(&threads->sender[i], run_sender, "blkin-sender"))
            return false;
    }
    return true;
}

void spool_threads_cancel(struct spool_threads *threads)
{
    for (unsigned i = 0; i < threads->senders; i++) {
        struct transport *transport = threads->sender[i].courier.transport;

        transport->cancel(transport);
    }
}

static void join(struct worker *worker)
{
    if (worker->is_running)
        (void)pthread_join(worker->thread, NULL);
    worker->is_running = false;
}

void spool_threads_join(struct spool_threads *threads)
{
    join(&threads->spooler);
    for (unsigned i = 0; i < threads->senders; i++)
        join(&threads->sender[i]);
}

void spool_threads_free(struct spool_threads *threads)
{
    if (!threads)
        return;
    body_destroy(&threads->spooler.courier.body);
    parts_free(&threads->spooler.courier.parts);
    body_destroy(&threads->spooler.courier.shown);
    for (unsigned i = 0; i < threads->senders; i++)
        body_destroy(&threads->sender[i].courier.body);
    for (unsigned i = 0; i < threads->given; i++)
        threads->sender[i].courier.transport->free(threads->sender[i].courier.transport);
    free(threads);
}
