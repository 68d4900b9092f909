/*
 * Dispatch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "dispatch.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "delivery.h"
#include "tap.h"

/* ---- the batch ------------------------------------------------------------------------------- */

/* place: the position behind the span. */
static bool dispatch_add_span(struct courier *courier, const struct batch *batch,
                              const struct batch_place *place, const struct span *span, bool *cut)
{
    struct parts *parts = &courier->parts;

    if (courier->transport->post) {
        /* batch_arrange() had asked for the key, unless the number of partitions has changed */
        const bool is_known = batch->keys && batch->keys == parts->partitions;

        return parts_add(parts, &courier->body, courier->encoder, span,
                         is_known ? place->key : parts_key(parts, span), cut);
    }
    return body_add(&courier->body, courier->encoder, span, cut);
}

/*
 * Encodes the next spans of the batch until the body is full. Returns where the next body begins.
 * The body is empty if there was no memory for any span. *cuts: how many spans lost parts.
 */
static struct batch_place dispatch_fill_body(struct courier *courier, struct batch *batch,
                                             uint32_t *cuts)
{
    struct body *body = &courier->body;
    struct batch_place place = batch->next_span, next = place;
    const struct span *span;

    *cuts = 0;
    body_reset(body);
    parts_trim(&courier->parts, body);
    for (; (span = batch_span(batch, &next)); place = next) {
        bool cut = false;

        if (!dispatch_add_span(courier, batch, &next, span, &cut)) {
            if (body->count) /* there may be memory once these are sent */
                break;
            outbox_settle(courier->outbox, batch, OUTCOME_NO_MEMORY, 1);
            batch->next_span = next;
            continue;
        }
        if (body->count > 1 && body_length(body, courier->encoder) > courier->body_bytes) {
            body_remove_last(body, courier->encoder);
            parts_trim(&courier->parts, body);
            break;
        }
        *cuts += cut || span->is_cut;
    }
    return place;
}

/* The body is given up. If the graph waits, all delivery fails. Returns whether to try the next
 * body; then the spans of this one have to get their outcome first, as outbox_settled() takes
 * spans to be settled from left to right. */
static bool dispatch_give_up(struct courier *courier)
{
    const struct outbox_patience patience = courier_patience(courier);

    reporter_say(courier->reporter, REPORT_UNDELIVERED, "spans undelivered: %s",
                 courier->reply.error.text);
    if (patience.is_limited)
        outbox_fail(courier->outbox, &courier->reply.error);
    return !patience.is_limited && clock_ms() < patience.stop_ms;
}

/* Encodes the spans of the body once more, as JSON. Returns false when out of memory. */
static bool dispatch_encode_shown(struct courier *courier, struct batch *batch)
{
    struct batch_place place = batch->next_span;
    bool cut;

    body_reset(&courier->shown);
    while (courier->shown.count < courier->body.count) {
        if (!body_add(&courier->shown, courier->tap_encoder, batch_span(batch, &place), &cut))
            return false;
    }
    return true;
}

/* To be called before batch->next_span moves on to the next body. */
static void dispatch_show(struct courier *courier, struct batch *batch)
{
    if (!courier->tap)
        return;
    if (!courier->tap_encoder)
        tap_show(courier->tap, courier->encoder, &courier->body);
    else if (tap_is_read(courier->tap) && dispatch_encode_shown(courier, batch))
        tap_show(courier->tap, courier->tap_encoder, &courier->shown);
    else
        tap_pass(courier->tap, courier->body.count);
}

/* Sorts the spans, if that makes OTLP's requests smaller, or fewer messages for Kafka. */
static void dispatch_arrange(struct courier *courier, struct batch *batch)
{
    if (courier->transport->post) {
        const struct part_limits limits = delivery_limits(courier);

        parts_reset(&courier->parts, atomic_load(&courier->transport->partitions), &limits);
        batch_arrange(batch, parts_key, &courier->parts, courier->parts.partitions);
    } else if (courier->encoder->frame) {
        batch_arrange(batch, NULL, NULL, 0);
    }
}

/* Returns false if delivery ends with this body. */
static bool dispatch_body(struct courier *courier)
{
    const uint32_t after = courier->batch->count - courier->body.count;

    if (deliver_body(courier) != RESULT_GIVEN_UP)
        return true;
    if (!dispatch_give_up(courier))
        return false;
    courier_settle(courier, OUTCOME_UNDELIVERED, courier->batch->count - after);
    return true;
}

bool dispatch_batch(struct courier *courier, struct batch *batch, bool to_spool,
                    struct error *error)
{
    struct body *const body = &courier->body;

    courier->batch = batch;
    dispatch_arrange(courier, batch);
    while (batch_has_more(batch)) {
        uint32_t cuts;
        const struct batch_place next = dispatch_fill_body(courier, batch, &cuts);

        if (to_spool && body->count &&
            !run_put(courier, (struct run){.body = body, .end = body->count}, error))
            return false;
        if (body->count)
            dispatch_show(courier, batch);
        if (cuts)
            outbox_count_cut(courier->outbox, cuts);
        batch->next_span = next;
        if (!to_spool && body->count && !dispatch_body(courier))
            return false;
    }
    return true;
}

void dispatch_record(struct courier *courier, struct spool_record *record)
{
    courier->record = record;
    if (deliver_body(courier) == RESULT_GIVEN_UP && !spool_is_stopped(courier->spool) &&
        dispatch_give_up(courier))
        courier_settle(courier, OUTCOME_UNDELIVERED, record->left);
    courier->record = NULL;
}
