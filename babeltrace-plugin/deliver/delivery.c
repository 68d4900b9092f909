/*
 * Delivering a body.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "delivery.h"

#define SMALLEST_BODY_BYTES 4096

/* ---- one body -------------------------------------------------------------------------------- */

static void delivery_say_span(struct courier *courier, enum report kind, struct run run)
{
    const size_t start = run.body->starts[run.first];
    char which[80];

    courier->encoder->describe(
        (struct text){run.body->buffer.data + start, run.body->buffer.length - start}, which,
        sizeof(which));
    reporter_say(courier->reporter, kind, "span refused: %s; the span is %s",
                 courier->reply.error.text, which);
}

static enum result delivery_settle(struct courier *courier, struct run run, enum outcome outcome)
{
    courier_settle(courier, outcome, run_length(run));
    return outcome == OUTCOME_INVALID ? RESULT_REFUSED : RESULT_DONE;
}

/* An accepted run may have spans that the collector refuses for good; it does not say which. */
static enum result delivery_settle_accepted(struct courier *courier, struct run run)
{
    const uint64_t claimed = courier->reply.rejected;
    const uint32_t rejected = claimed < run_length(run) ? (uint32_t)claimed : run_length(run);

    if (courier->reply.error.text[0])
        reporter_say(courier->reporter, rejected ? REPORT_REFUSED : REPORT_WARNING,
                     "%u of %u spans refused: %s", rejected, run_length(run),
                     courier->reply.error.text);
    if (rejected)
        courier_settle(courier, OUTCOME_REFUSED, rejected);
    if (rejected < run_length(run))
        courier_settle(courier, OUTCOME_ACCEPTED, run_length(run) - rejected);
    return RESULT_DONE;
}

static size_t delivery_size(struct run run)
{
    const struct body *body = run.body;
    const size_t end = run.end == body->count ? body->buffer.length : body->starts[run.end];

    return end - body->starts[run.first];
}

/* A body of this size was too large, so the next ones are smaller. */
static void delivery_shrink_bodies(struct courier *courier, size_t too_large)
{
    const size_t smaller =
        too_large / 2 > SMALLEST_BODY_BYTES ? too_large / 2 : SMALLEST_BODY_BYTES;

    if (courier->body_bytes > smaller)
        courier->body_bytes = smaller;
}

static enum result deliver_halves(struct courier *courier, struct run run, bool has_invalid);

/* The collector does not take the run as a whole. */
static enum result delivery_divide(struct courier *courier, struct run run, enum delivery delivery)
{
    if (delivery == DELIVERY_INVALID) {
        if (run_length(run) > 1)
            return deliver_halves(courier, run, true);
        delivery_say_span(courier, REPORT_INVALID, run);
        return delivery_settle(courier, run, OUTCOME_INVALID);
    }
    delivery_shrink_bodies(courier, delivery_size(run));
    if (run_length(run) > 1)
        return deliver_halves(courier, run, false);
    delivery_say_span(courier, REPORT_TOO_LARGE, run);
    return delivery_settle(courier, run, OUTCOME_TOO_LARGE);
}

static enum result deliver_whole(struct courier *courier, struct run run);

static enum result deliver_run(struct courier *courier, struct run run, const struct reply *answer)
{
    switch (run_send(courier, run, answer)) {
    case SENT_ANSWERED:
        break;
    case SENT_ASIDE:
        return RESULT_DONE;
    case SENT_GIVEN_UP:
        return RESULT_GIVEN_UP;
    }
    switch (courier->reply.delivery) {
    case DELIVERY_ACCEPTED:
        return delivery_settle_accepted(courier, run);
    case DELIVERY_INVALID:
    case DELIVERY_TOO_LARGE:
        return delivery_divide(courier, run, courier->reply.delivery);
    case DELIVERY_POSSIBLY_PERSISTED:
        reporter_say(courier->reporter, REPORT_POSSIBLY_PERSISTED,
                     "spans may have arrived, or not: %s", courier->reply.error.text);
        return delivery_settle(courier, run, OUTCOME_POSSIBLY_PERSISTED);
    case DELIVERY_DIVIDE:
        run.has_partition = false;
        return deliver_whole(courier, run);
    default:
        reporter_say(courier->reporter, REPORT_REFUSED, "spans refused: %s",
                     courier->reply.error.text);
        return delivery_settle(courier, run, OUTCOME_REFUSED);
    }
}

/*
 * has_invalid: the run has an invalid span. If the left half has none, the right half has one, and
 * there is no need to send the right half as a whole first. But a single span is always sent: only
 * the answer to itself makes a span invalid.
 */
static enum result deliver_halves(struct courier *courier, struct run run, bool has_invalid)
{
    const uint32_t middle = run.first + run_length(run) / 2;
    struct run left = run, right = run;
    enum result left_result, right_result;

    left.end = right.first = middle;
    left.is_half = right.is_half = true;
    left_result = deliver_whole(courier, left);

    if (left_result == RESULT_GIVEN_UP)
        return RESULT_GIVEN_UP;
    if (has_invalid && left_result == RESULT_DONE && run_length(right) > 1)
        right_result = deliver_halves(courier, right, true);
    else
        right_result = deliver_whole(courier, right);
    return right_result == RESULT_DONE ? left_result : right_result;
}

/* ---- partitions ------------------------------------------------------------------------------ */

static struct run delivery_run_of(struct run run, const struct parts *parts,
                                  const struct part *part)
{
    run.first = part->first;
    run.end = part->end;
    run.has_partition = true;
    run.partition = part->partition;
    run.partitions = parts->partitions;
    return run;
}

struct part_limits delivery_limits(const struct courier *courier)
{
    struct part_limits limits = courier->transport->limits;

    if (limits.bytes > courier->body_bytes)
        limits.bytes = courier->body_bytes;
    return limits;
}

/* Posts all parts, and then waits once for all replies. */
static void delivery_post_parts(struct courier *courier, struct run run, const struct parts *parts,
                                uint32_t first, uint32_t count)
{
    struct transport *transport = courier->transport;
    struct framed framed;

    for (uint32_t i = 0; i < count; i++) {
        outbox_count_request(courier->outbox, false);
        run_frame(courier, delivery_run_of(run, parts, &parts->list[first + i]), &framed);
        transport->post(transport, &framed.payload, &courier->replies[i]);
        body_unframe(courier->encoder, &framed);
    }
    transport->await(transport);
}

static bool delivery_is_outcome(enum delivery delivery)
{
    return delivery == DELIVERY_ACCEPTED || delivery == DELIVERY_POSSIBLY_PERSISTED;
}

/*
 * Settles the parts that have their outcome first, since the others may take long or be given up.
 * Delivering the others may post again and overwrite courier->replies, so `failed` and `reply` keep
 * what is needed of them.
 */
static enum result delivery_finish_parts(struct courier *courier, struct run run,
                                         const struct parts *parts, uint32_t first, uint32_t count)
{
    enum delivery failed[POSTED_MAX];
    struct reply reply = {.delivery = DELIVERY_ACCEPTED}; /* of the first that failed */
    enum result result = RESULT_DONE;

    for (uint32_t i = 0; i < count; i++) {
        failed[i] = courier->replies[i].delivery;
        if (delivery_is_outcome(failed[i]))
            (void)deliver_run(courier, delivery_run_of(run, parts, &parts->list[first + i]),
                              &courier->replies[i]);
        else if (reply.delivery == DELIVERY_ACCEPTED)
            reply = courier->replies[i];
    }
    for (uint32_t i = 0; i < count && result != RESULT_GIVEN_UP; i++) {
        if (delivery_is_outcome(failed[i]))
            continue;
        reply.delivery = failed[i];
        result = deliver_run(courier, delivery_run_of(run, parts, &parts->list[first + i]), &reply);
    }
    return result;
}

static enum result deliver_parts(struct courier *courier, struct run run, const struct parts *parts)
{
    enum result result = RESULT_DONE;

    for (uint32_t i = 0; i < parts->count && result != RESULT_GIVEN_UP; i += POSTED_MAX) {
        const uint32_t left = parts->count - i;
        const uint32_t count = left < POSTED_MAX ? left : POSTED_MAX;

        delivery_post_parts(courier, run, parts, i, count);
        result = delivery_finish_parts(courier, run, parts, i, count);
    }
    return result;
}

/* For a record of the spool, or when the number of partitions has changed: sorts the spans into
 * parts again. */
static enum result deliver_arranged(struct courier *courier, struct run run)
{
    const struct part_limits limits = delivery_limits(courier);
    struct parts parts = {.count = 0};
    struct body body = {.count = 0};
    enum result result;

    parts_reset(&parts, atomic_load(&courier->transport->partitions), &limits);
    if (parts_arrange(&parts, run.body, courier->encoder, run.first, run.end, &body)) {
        run.body = &body;
        result = deliver_parts(courier, run, &parts);
    } else {
        error_set(&courier->reply.error, "out of memory");
        result = RESULT_GIVEN_UP;
    }
    parts_free(&parts);
    body_destroy(&body);
    return result;
}

static enum result deliver_whole(struct courier *courier, struct run run)
{
    const struct parts *parts = &courier->parts;

    if (!courier->transport->post || run.has_partition)
        return deliver_run(courier, run, NULL);
    if (run_put_behind(courier, run))
        return RESULT_DONE;
    if (!courier->record && run.body == &courier->body && run_length(run) == run.body->count &&
        parts->partitions == atomic_load(&courier->transport->partitions))
        return deliver_parts(courier, run, parts);
    return deliver_arranged(courier, run);
}

/* A record of the spool may be larger than bodies are now. */
enum result deliver_body(struct courier *courier)
{
    const struct run whole = {.body = &courier->body, .end = courier->body.count};

    return delivery_size(whole) > courier->body_bytes && run_length(whole) > 1
               ? deliver_halves(courier, whole, false)
               : deliver_whole(courier, whole);
}
