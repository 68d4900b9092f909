/*
 * The senders: the exporter's threads. A thread encodes a batch, one body at a time, and delivers
 * each body.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "send.h"

#include "babeltrace-plugin/base/monotonic.h"

/* ---- a batch --------------------------------------------------------------------------------- */

/*
 * Encodes the next spans of the batch until the body is full. Returns the position of the next
 * body. The body is empty if there was no memory for any span. *cuts: the number of spans with
 * parts left out.
 */
static struct batch_position sender_fill_body(struct sender *sender, uint32_t *cuts)
{
    struct batch *const batch = sender->batch;
    struct body *const body = &sender->body;
    struct batch_position position = batch->next_span, next = position;
    const struct span *span;

    *cuts = 0;
    body_reset(body);
    for (; (span = batch_span(batch, &next)); position = next) {
        bool cut = false;

        if (!body_add(body, sender->encoder, span, &cut)) {
            if (body->count) /* sending these spans may free memory */
                break;
            send_settle(sender, OUTCOME_NO_MEMORY, 1);
            batch->next_span = next;
            continue;
        }
        if (body->count > 1 && body_length(body, sender->encoder) > sender->options.body_bytes) {
            body_remove_last(body, sender->encoder);
            break;
        }
        *cuts += cut || span->is_cut;
    }
    return position;
}

/*
 * Gives up the body. If the graph waits, all delivery fails. Returns whether the sender tries the
 * next body. If so, the caller first settles the spans of this body, because queue_settled()
 * expects that spans are settled from left to right.
 */
static bool sender_give_up(struct sender *sender)
{
    const struct queue_time_limit limit = send_time_limit(sender);

    reporter_say(sender->options.reporter, REPORT_UNDELIVERED, "spans undelivered: %s",
                 sender->reply.error.text);
    if (limit.is_limited)
        queue_fail(sender->options.queue, &sender->reply.error);
    return !limit.is_limited && clock_ms() < limit.stop_ms;
}

/* Returns false if delivery ends with this body. */
static bool sender_send_body(struct sender *sender)
{
    const uint32_t after = sender->batch->count - sender->body.count; /* spans after the body */

    if (send_body(sender) != OUTCOME_UNDELIVERED)
        return true;
    if (!sender_give_up(sender))
        return false;
    send_settle(sender, OUTCOME_UNDELIVERED, sender->batch->count - after);
    return true;
}

/* Sends the batch's spans until delivery ends, and settles them. The spooler, which sends nothing,
 * puts them into the spool. Returns false if spans are left; the spooler sets error. */
static bool sender_take_batch(struct sender *sender, struct batch *batch, struct error *error)
{
    const bool is_spooler = sender->work == WORK_SPOOL;
    struct body *const body = &sender->body;
    bool is_delivered = true;

    if (sender->options.taken) /* before any span is sent */
        sender->options.taken(sender->options.context, queue_taken(sender->options.queue));
    sender->batch = batch;
    if (sender->encoder->frame)
        batch_arrange(batch);
    while (is_delivered && batch_has_more(batch)) {
        uint32_t cuts;
        const struct batch_position next = sender_fill_body(sender, &cuts);

        if (is_spooler && body->count)
            is_delivered =
                send_put(sender, (struct body_run){.body = body, .end = body->count}, error);
        if (!is_delivered)
            break;
        if (cuts)
            queue_count_cut(sender->options.queue, cuts);
        batch->next_span = next;
        if (!is_spooler && body->count)
            is_delivered = sender_send_body(sender);
    }
    return is_delivered;
}

/* ---- with a spool ---------------------------------------------------------------------------- */

static void sender_say_lost(struct sender *sender)
{
    struct error error;

    if (spool_has_lost(sender->options.spool, &error))
        reporter_say(sender->options.reporter, REPORT_SPOOL_LOSES, "%s", error.text);
}

/* Sends records of the spool until the spool is stopped; the main thread and its helpers return
 * when the spool is empty, too. Spans that need a retry when the spool is stopped stay there. */
static void sender_drain_spool(struct sender *sender)
{
    struct spool *spool = sender->options.spool;
    struct spool_record record;

    while (
        spool_take(spool, &record, sender->encoder, &sender->body, sender->work != WORK_RECORDS)) {
        sender->record = &record;
        if (send_body(sender) == OUTCOME_UNDELIVERED && !spool_is_stopped(spool) &&
            sender_give_up(sender))
            send_settle(sender, OUTCOME_UNDELIVERED, record.left);
        sender->record = NULL;
        spool_finish(spool, &record);
        sender_say_lost(sender);
    }
}

static void sender_put_in(struct sender *sender, struct batch *batch, int64_t *failing_since_ms)
{
    struct span_queue *queue = sender->options.queue;
    struct error error;

    if (sender_take_batch(sender, batch, &error)) {
        queue_finish(queue, batch);
        sender_say_lost(sender);
        *failing_since_ms = CLOCK_NEVER;
        return;
    }
    queue_put_back(queue, batch);
    reporter_say(sender->options.reporter, REPORT_SPOOL_FAILS, "%s; spans wait in the queue",
                 error.text);
    *failing_since_ms = clock_earlier(*failing_since_ms, clock_ms());
    /* Neither the disk nor the collector takes spans. If the graph waits, delivery fails as it does
     * without a spool. */
    if (clock_ms() - *failing_since_ms >= sender->options.retry_timeout_ms &&
        queue_time_limit(queue).is_limited && spool_is_away(sender->options.spool))
        queue_fail(queue, &error);
}

/* Puts batches into the spool and stores them on disk until the queue is done. */
static void sender_fill_spool(struct sender *sender)
{
    struct spool *spool = sender->options.spool;
    int64_t failing_since_ms = CLOCK_NEVER;
    struct error error;

    while (!queue_is_done(sender->options.queue)) {
        const int64_t sync_due_ms = spool_sync_due_ms(spool);
        struct batch *batch = queue_take_for_spool(sender->options.queue, sync_due_ms);

        if (batch)
            sender_put_in(sender, batch, &failing_since_ms);
        if (clock_ms() >= sync_due_ms && !spool_sync(spool, &error))
            reporter_say(sender->options.reporter, REPORT_SPOOL_FAILS, "%s", error.text);
    }
}

/* ---- the threads ----------------------------------------------------------------------------- */

/* Sends until the end, records of the spool first. */
static void sender_deliver(struct sender *sender)
{
    struct span_queue *queue = sender->options.queue;
    struct batch *batch;

    do {
        if (sender->options.spool)
            sender_drain_spool(sender);
        batch = queue_take(queue);
        if (batch) {
            (void)sender_take_batch(sender, batch, NULL);
            queue_finish(queue, batch);
        }
    } while (batch || !queue_is_done(queue));
}

void *sender_run(void *context)
{
    struct sender *sender = context;
    struct transport *transport = sender->transport;

    switch (sender->work) {
    case WORK_MAIN:
        transport->probe(transport, &sender->probe);
        queue_begin(sender->options.queue);
        sender_deliver(sender);
        sender->is_durable = !transport->finish || transport->finish(transport, &sender->error);
        if (!sender->is_durable)
            queue_count_unsure(sender->options.queue);
        break;
    case WORK_SEND:
        sender_deliver(sender);
        break;
    case WORK_RECORDS:
        sender_drain_spool(sender);
        break;
    case WORK_SPOOL:
        sender_fill_spool(sender);
        break;
    }
    queue_end(sender->options.queue);
    return NULL;
}
