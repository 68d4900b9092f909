/*
 * Filling and draining a spool.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "spooler.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "dispatch.h"

static void spooler_say_lost(struct courier *courier)
{
    struct error error;

    if (spool_has_lost(courier->spool, &error))
        reporter_say(courier->reporter, REPORT_SPOOL_LOSES, "%s", error.text);
}

void spooler_drain(struct courier *courier, bool is_main)
{
    struct spool_record record;

    while (spool_take(courier->spool, &record, courier->encoder, &courier->body, is_main)) {
        dispatch_record(courier, &record);
        spool_finish(courier->spool, &record);
        spooler_say_lost(courier);
    }
}

/* ---- putting in ------------------------------------------------------------------------------ */

/* Neither the disk nor the collector takes spans. If the graph waits, delivery fails, as it would
 * without a spool. */
static void spooler_give_up(struct courier *courier, int64_t since_ms, const struct error *error)
{
    if (clock_ms() - since_ms >= courier->retry_timeout_ms &&
        outbox_patience(courier->outbox).is_limited && spool_is_away(courier->spool))
        outbox_fail(courier->outbox, error);
}

static void spooler_put_in(struct courier *courier, struct batch *batch, int64_t *failing_since_ms)
{
    struct error error;

    if (dispatch_to_spool(courier, batch, &error)) {
        outbox_finish(courier->outbox, batch);
        dispatch_say_settled(courier);
        spooler_say_lost(courier);
        *failing_since_ms = CLOCK_NEVER;
        return;
    }
    outbox_put_back(courier->outbox, batch);
    reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s; spans wait in the queue", error.text);
    if (*failing_since_ms == CLOCK_NEVER)
        *failing_since_ms = clock_ms();
    spooler_give_up(courier, *failing_since_ms, &error);
}

static void spooler_store(struct courier *courier)
{
    struct error error;

    if (!spool_sync(courier->spool, &error))
        reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s", error.text);
}

void spooler_fill(struct courier *courier)
{
    int64_t failing_since_ms = CLOCK_NEVER;

    while (!outbox_is_done(courier->outbox)) {
        const int64_t sync_due_ms = spool_sync_due_ms(courier->spool);
        struct batch *batch = outbox_take_aside(courier->outbox, sync_due_ms);

        if (batch)
            spooler_put_in(courier, batch, &failing_since_ms);
        if (clock_ms() >= sync_due_ms)
            spooler_store(courier);
    }
}
