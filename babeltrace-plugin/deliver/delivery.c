/*
 * Delivering one batch.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "delivery.h"

#include "babeltrace-plugin/base/monotonic.h"
#include "tap.h"

#define SMALLEST_BODY_BYTES 4096
#define REPORT_PERIOD_MS    60000
#define REPORT_FIRST_ID     8001

/* Spans of a body, from first up to, not including, end. */
struct run {
    struct body *body;
    uint32_t first;
    uint32_t end;
    bool is_half;
    bool has_partition; /* all are of one, of so many */
    uint32_t partition, partitions;
};

enum result {
    RESULT_DONE,    /* every span is settled */
    RESULT_REFUSED, /* the same, but some were found invalid */
    RESULT_GIVEN_UP,
};

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* ---- messages -------------------------------------------------------------------------------- */

void reporter_say(struct reporter *reporter, enum report kind, const char *format, ...)
{
    const int64_t now_ms = clock_ms();
    int64_t next_ms = atomic_load(&reporter->next_ms[kind]);
    struct error message;
    va_list values;
    int length;

    if (now_ms < next_ms || !atomic_compare_exchange_strong(&reporter->next_ms[kind], &next_ms,
                                                            now_ms + REPORT_PERIOD_MS))
        return;
    length = snprintf(message.text, sizeof(message.text), "BK%d ", REPORT_FIRST_ID + (int)kind);
    va_start(values, format);
    (void)vsnprintf(message.text + length, sizeof(message.text) - (size_t)length, format, values);
    va_end(values);
    reporter->report(reporter->context, message.text);
}

/* ---- whose spans they are -------------------------------------------------------------------- */

static void settle_spans(struct courier *courier, enum outcome outcome, uint32_t spans)
{
    if (courier->record)
        spool_settle(courier->spool, courier->record, outcome, spans);
    else
        outbox_settle(courier->outbox, courier->batch, outcome, spans);
}

/* Nobody waits for what is in the spool. */
static struct outbox_patience patience_of(struct courier *courier)
{
    if (!courier->record)
        return outbox_patience(courier->outbox);
    return (struct outbox_patience){.stop_ms = spool_is_stopped(courier->spool) ? 0 : CLOCK_NEVER};
}

static bool pause_until(struct courier *courier, int64_t until_ms)
{
    if (!courier->record)
        return outbox_pause(courier->outbox, until_ms);
    spool_note_away(courier->spool, courier->reply.retry_after_ms);
    return spool_pause(courier->spool, until_ms, courier->reply.retry_after_ms > 0);
}

/* ---- the spool ------------------------------------------------------------------------------- */

static bool put_run(struct courier *courier, struct run run, struct error *error)
{
    const bool may_drop = !outbox_is_blocking(courier->outbox);
    struct framed framed; /* or it may not be a batch by itself */
    bool is_put;

    body_frame(run.body, courier->encoder, run.first, run.end, &framed);
    is_put = spool_put(courier->spool,
                       &(struct record_body){.format = courier->protocol->format,
                                             .starts = run.body->starts + run.first,
                                             .spans = run.end - run.first,
                                             .text = framed.payload.spans},
                       courier->batch, may_drop, error);
    body_unframe(courier->encoder, &framed);
    return is_put;
}

/* What is in the spool goes before. */
static bool is_behind(struct courier *courier)
{
    return courier->spool && !courier->record && !spool_is_empty(courier->spool);
}

/* In place of an attempt, or of waiting for one. Returns whether it is done. */
static bool put_aside(struct courier *courier, struct run run)
{
    struct error error;

    if (!courier->spool || courier->record)
        return false;
    if (put_run(courier, run, &error))
        return true;
    reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s", error.text);
    return false;
}

/* ---- one run, until there is an answer ------------------------------------------------------- */

static void say_unreached(struct courier *courier)
{
    courier->is_unreached = true;
    reporter_say(courier->reporter, REPORT_UNREACHED, "not delivered yet, trying again: %s",
                 courier->reply.error.text);
}

static void say_back(struct courier *courier)
{
    retry_succeeded(&courier->retry);
    if (courier->is_unreached)
        reporter_say(courier->reporter, REPORT_BACK, "the collector answers again");
    courier->is_unreached = false;
}

/* The attempts to send one run. */
struct attempts {
    int64_t since_ms; /* the first failure that counts */
    /*
     * Before the last attempt, and after it: did the collector take an empty batch? Then it is
     * well, and what it does not take now is this run's fault. One attempt must follow the proof,
     * as the trouble may have passed in between.
     */
    bool was_proven, is_proven;
};

static void prove(struct courier *courier, struct attempts *attempts)
{
    struct reply probe = {.delivery = DELIVERY_ACCEPTED};

    if (courier->transport->probe)
        courier->transport->probe(courier->transport, &probe);
    attempts->is_proven = probe.delivery == DELIVERY_ACCEPTED;
}

/*
 * The time at which a run is given up. While nobody waits, a collector that is away costs nothing
 * but room in the queue, so there is no such time.
 */
static int64_t give_up_ms(struct courier *courier, struct attempts *attempts)
{
    const struct outbox_patience patience = patience_of(courier);
    const int64_t limit_ms = attempts->since_ms + courier->retry_timeout_ms;
    const bool may_be_batch = courier->reply.may_be_batch;

    if (patience.is_limited || (may_be_batch && (attempts->was_proven || clock_ms() < limit_ms)))
        return earlier(patience.stop_ms, limit_ms);
    if (may_be_batch)
        prove(courier, attempts);
    if (!attempts->is_proven)
        attempts->since_ms = clock_ms();
    return patience.stop_ms;
}

static void say_why_not(struct courier *courier, int64_t limit_ms)
{
    const struct error cause = courier->reply.error;
    const bool is_end = limit_ms == patience_of(courier).stop_ms;

    error_set(&courier->reply.error, "%s; it asks for a longer pause (Retry-After) than %s leaves",
              cause.text, is_end ? "flush-timeout-ms" : "retry-timeout-ms");
}

/* Waits for the time of the next attempt. Returns false if there is to be none. */
static bool wait_for_next(struct courier *courier, struct attempts *attempts)
{
    const int64_t pause_ms = retry_pause_ms(&courier->retry, courier->reply.retry_after_ms);
    const int64_t limit_ms = give_up_ms(courier, attempts);
    const int64_t now_ms = clock_ms();

    if (attempts->is_proven)
        return true;
    if (now_ms >= limit_ms)
        return false;
    if (courier->reply.retry_after_ms && now_ms + pause_ms > limit_ms) {
        say_why_not(courier, limit_ms);
        return false;
    }
    say_unreached(courier);
    return pause_until(courier, earlier(now_ms + pause_ms, limit_ms));
}

static uint32_t length_of(struct run run)
{
    return run.end - run.first;
}

/*
 * Is this the collector's last word? A refusal is one only if the collector is well: a proxy that
 * is being configured anew refuses whatever comes. Halves need no proof that 400 is about spans, as
 * the whole had it, and a whole no further attempt, as its halves are that.
 */
static bool is_final(struct courier *courier, struct run run, struct attempts *attempts)
{
    const enum delivery delivery = courier->reply.delivery;

    if (delivery == DELIVERY_RETRY)
        return false;
    if (attempts->was_proven || (delivery != DELIVERY_REFUSED && delivery != DELIVERY_INVALID) ||
        (delivery == DELIVERY_INVALID && run.is_half))
        return true;
    prove(courier, attempts);
    courier->reply.may_be_batch = false;
    return attempts->is_proven && delivery == DELIVERY_INVALID && length_of(run) > 1;
}

enum sent {
    SENT_ANSWERED, /* the reply says what became of it */
    SENT_ASIDE,    /* it is in the spool */
    SENT_GIVEN_UP,
};

/* Where there is a spool, the first failure is enough. */
static bool is_to_put_aside(struct courier *courier)
{
    if (!courier->spool || courier->record)
        return false;
    reporter_say(courier->reporter, REPORT_SPOOLING, "not delivered yet, but spooled: %s",
                 courier->reply.error.text);
    spool_note_away(courier->spool, courier->reply.retry_after_ms);
    return true;
}

static void frame(struct courier *courier, struct run run, struct framed *framed)
{
    body_frame(run.body, courier->encoder, run.first, run.end, framed);
    framed->payload.partition = run.partition;
    framed->payload.partitions = run.partitions;
    framed->payload.stays = courier->encoder->frame != NULL; /* else parts have a byte in common */
}

/* answer: of an attempt that was made already; NULL: there was none. */
static enum sent send_run(struct courier *courier, struct run run, const struct reply *answer)
{
    struct attempts attempts = {.since_ms = CLOCK_NEVER};
    bool is_answered = false, is_retry = false;
    struct framed framed;

    if (is_behind(courier) && put_aside(courier, run))
        return SENT_ASIDE;
    frame(courier, run, &framed);
    do {
        if (answer) {
            courier->reply = *answer;
            answer = NULL;
        } else {
            outbox_count_request(courier->outbox, is_retry);
            courier->transport->send(courier->transport, &framed.payload, &courier->reply);
        }
        attempts.was_proven = attempts.is_proven;
        attempts.is_proven = false;
        attempts.since_ms = earlier(attempts.since_ms, clock_ms());
        is_answered = is_final(courier, run, &attempts);
        is_retry = true;
        if (!is_answered && !attempts.is_proven && is_to_put_aside(courier)) {
            body_unframe(courier->encoder, &framed);
            if (put_aside(courier, run))
                return SENT_ASIDE;
            frame(courier, run, &framed);
        }
    } while (!is_answered && (attempts.is_proven || wait_for_next(courier, &attempts)));
    body_unframe(courier->encoder, &framed);
    if (is_answered)
        say_back(courier);
    return is_answered ? SENT_ANSWERED : SENT_GIVEN_UP;
}

/* ---- one body -------------------------------------------------------------------------------- */

static void say_span(struct courier *courier, enum report kind, struct run run)
{
    const size_t start = run.body->starts[run.first];
    char which[80];

    courier->encoder->describe(
        (struct text){run.body->buffer.data + start, run.body->buffer.length - start}, which,
        sizeof(which));
    reporter_say(courier->reporter, kind, "span refused: %s; the span is %s",
                 courier->reply.error.text, which);
}

static enum result settle(struct courier *courier, struct run run, enum outcome outcome)
{
    settle_spans(courier, outcome, length_of(run));
    return outcome == OUTCOME_INVALID ? RESULT_REFUSED : RESULT_DONE;
}

/* Some of them may be refused all the same, for good: nobody knows which. */
static enum result settle_accepted(struct courier *courier, struct run run)
{
    const uint64_t claimed = courier->reply.rejected;
    const uint32_t rejected = claimed < length_of(run) ? (uint32_t)claimed : length_of(run);

    if (courier->reply.error.text[0])
        reporter_say(courier->reporter, rejected ? REPORT_REFUSED : REPORT_WARNING,
                     "%u of %u spans refused: %s", rejected, length_of(run),
                     courier->reply.error.text);
    if (rejected)
        settle_spans(courier, OUTCOME_REFUSED, rejected);
    if (rejected < length_of(run))
        settle_spans(courier, OUTCOME_ACCEPTED, length_of(run) - rejected);
    return RESULT_DONE;
}

static size_t size_of(struct run run)
{
    const struct body *body = run.body;
    const size_t end = run.end == body->count ? body->buffer.length : body->starts[run.end];

    return end - body->starts[run.first];
}

/* A body of that size was too large: future ones are smaller. */
static void shrink_bodies(struct courier *courier, size_t too_large)
{
    const size_t smaller =
        too_large / 2 > SMALLEST_BODY_BYTES ? too_large / 2 : SMALLEST_BODY_BYTES;

    if (courier->body_bytes > smaller)
        courier->body_bytes = smaller;
}

static enum result deliver_halves(struct courier *courier, struct run run, bool has_invalid);

/* What the collector has to say about a run that it does not want as a whole. */
static enum result divide(struct courier *courier, struct run run, enum delivery delivery)
{
    if (delivery == DELIVERY_INVALID) {
        if (length_of(run) > 1)
            return deliver_halves(courier, run, true);
        say_span(courier, REPORT_INVALID, run);
        return settle(courier, run, OUTCOME_INVALID);
    }
    shrink_bodies(courier, size_of(run));
    if (length_of(run) > 1)
        return deliver_halves(courier, run, false);
    say_span(courier, REPORT_TOO_LARGE, run);
    return settle(courier, run, OUTCOME_TOO_LARGE);
}

static enum result deliver(struct courier *courier, struct run run);

static enum result deliver_run(struct courier *courier, struct run run, const struct reply *answer)
{
    switch (send_run(courier, run, answer)) {
    case SENT_ANSWERED:
        break;
    case SENT_ASIDE:
        return RESULT_DONE;
    case SENT_GIVEN_UP:
        return RESULT_GIVEN_UP;
    }
    switch (courier->reply.delivery) {
    case DELIVERY_ACCEPTED:
        return settle_accepted(courier, run);
    case DELIVERY_INVALID:
    case DELIVERY_TOO_LARGE:
        return divide(courier, run, courier->reply.delivery);
    case DELIVERY_POSSIBLY_PERSISTED:
        reporter_say(courier->reporter, REPORT_POSSIBLY_PERSISTED,
                     "spans may have arrived, or not: %s", courier->reply.error.text);
        return settle(courier, run, OUTCOME_POSSIBLY_PERSISTED);
    case DELIVERY_DIVIDE:
        run.has_partition = false;
        return deliver(courier, run);
    default:
        reporter_say(courier->reporter, REPORT_REFUSED, "spans refused: %s",
                     courier->reply.error.text);
        return settle(courier, run, OUTCOME_REFUSED);
    }
}

/*
 * has_invalid: there is an invalid span in the run. If it is not in the left half it is in the
 * right one, which then need not be sent as a whole to know; a single span always is, though: only
 * its own answer makes it invalid.
 */
static enum result deliver_halves(struct courier *courier, struct run run, bool has_invalid)
{
    const uint32_t middle = run.first + length_of(run) / 2;
    struct run left = run, right = run;
    enum result left_result, right_result;

    left.end = right.first = middle;
    left.is_half = right.is_half = true;
    left_result = deliver(courier, left);

    if (left_result == RESULT_GIVEN_UP)
        return RESULT_GIVEN_UP;
    if (has_invalid && left_result == RESULT_DONE && length_of(right) > 1)
        right_result = deliver_halves(courier, right, true);
    else
        right_result = deliver(courier, right);
    return right_result == RESULT_DONE ? left_result : right_result;
}

/* ---- partitions ------------------------------------------------------------------------------ */

static struct run run_of(struct run run, const struct parts *parts, const struct part *part)
{
    run.first = part->first;
    run.end = part->end;
    run.has_partition = true;
    run.partition = part->partition;
    run.partitions = parts->partitions;
    return run;
}

/* A message that was too large for a broker was no wider than this. */
static struct part_limits limits_of(const struct courier *courier)
{
    struct part_limits limits = courier->transport->limits;

    if (limits.bytes > courier->body_bytes)
        limits.bytes = courier->body_bytes;
    return limits;
}

/* All at once: the transport waits for nobody but at the end. */
static void post_parts(struct courier *courier, struct run run, const struct parts *parts,
                       uint32_t first, uint32_t count)
{
    struct transport *transport = courier->transport;
    struct framed framed;

    for (uint32_t i = 0; i < count; i++) {
        outbox_count_request(courier->outbox, false);
        frame(courier, run_of(run, parts, &parts->list[first + i]), &framed);
        transport->post(transport, &framed.payload, &courier->replies[i]);
        body_unframe(courier->encoder, &framed);
    }
    transport->await(transport);
}

static bool is_outcome(enum delivery delivery)
{
    return delivery == DELIVERY_ACCEPTED || delivery == DELIVERY_POSSIBLY_PERSISTED;
}

/*
 * First those that have their outcome, since the others may take long, or be given up. These may be
 * posted again, in parts of their own: so what is needed of their replies is kept here.
 */
static enum result finish_parts(struct courier *courier, struct run run, const struct parts *parts,
                                uint32_t first, uint32_t count)
{
    enum delivery failed[POSTED_MAX];
    struct reply reply = {.delivery = DELIVERY_ACCEPTED}; /* of the first that failed */
    enum result result = RESULT_DONE;

    for (uint32_t i = 0; i < count; i++) {
        failed[i] = courier->replies[i].delivery;
        if (is_outcome(failed[i]))
            (void)deliver_run(courier, run_of(run, parts, &parts->list[first + i]),
                              &courier->replies[i]);
        else if (reply.delivery == DELIVERY_ACCEPTED)
            reply = courier->replies[i];
    }
    for (uint32_t i = 0; i < count && result != RESULT_GIVEN_UP; i++) {
        if (is_outcome(failed[i]))
            continue;
        reply.delivery = failed[i];
        result = deliver_run(courier, run_of(run, parts, &parts->list[first + i]), &reply);
    }
    return result;
}

static enum result deliver_list(struct courier *courier, struct run run, const struct parts *parts)
{
    enum result result = RESULT_DONE;

    for (uint32_t i = 0; i < parts->count && result != RESULT_GIVEN_UP; i += POSTED_MAX) {
        const uint32_t left = parts->count - i;
        const uint32_t count = left < POSTED_MAX ? left : POSTED_MAX;

        post_parts(courier, run, parts, i, count);
        result = finish_parts(courier, run, parts, i, count);
    }
    return result;
}

/* A record of the spool, or what was divided by another number of partitions. */
static enum result deliver_arranged(struct courier *courier, struct run run)
{
    const struct part_limits limits = limits_of(courier);
    struct parts parts = {.count = 0};
    struct body body = {.count = 0};
    enum result result;

    parts_reset(&parts, atomic_load(&courier->transport->partitions), &limits);
    if (parts_arrange(&parts, run.body, courier->encoder, run.first, run.end, &body)) {
        run.body = &body;
        result = deliver_list(courier, run, &parts);
    } else {
        error_set(&courier->reply.error, "out of memory");
        result = RESULT_GIVEN_UP;
    }
    parts_free(&parts);
    body_destroy(&body);
    return result;
}

static enum result deliver(struct courier *courier, struct run run)
{
    const struct parts *parts = &courier->parts;

    if (!courier->transport->post || run.has_partition)
        return deliver_run(courier, run, NULL);
    if (is_behind(courier) && put_aside(courier, run))
        return RESULT_DONE;
    if (!courier->record && run.body == &courier->body && length_of(run) == run.body->count &&
        parts->partitions == atomic_load(&courier->transport->partitions))
        return deliver_list(courier, run, parts);
    return deliver_arranged(courier, run);
}

/* ---- the batch ------------------------------------------------------------------------------- */

/* place: behind the span. */
static bool add_span(struct courier *courier, const struct batch *batch,
                     const struct batch_place *place, const struct span *span, bool *cut)
{
    struct parts *parts = &courier->parts;

    if (courier->transport->post) {
        /* it was asked for before, unless there are other partitions by now */
        const bool is_known = batch->keys && batch->keys == parts->partitions;

        return parts_add(parts, &courier->body, courier->encoder, span,
                         is_known ? place->key : parts_key(parts, span), cut);
    }
    return body_add(&courier->body, courier->encoder, span, cut);
}

/*
 * Encodes the spans of the batch that are not encoded yet, until the body is full; returns where
 * the next body begins. The body is empty if there was memory for none of them.
 */
static struct batch_place fill_body(struct courier *courier, struct batch *batch, uint32_t *cuts)
{
    struct body *body = &courier->body;
    struct batch_place place = batch->next_span, next = place;
    const struct span *span;

    *cuts = 0;
    body_reset(body);
    parts_trim(&courier->parts, body);
    for (; (span = batch_span(batch, &next)); place = next) {
        bool cut = false;

        if (!add_span(courier, batch, &next, span, &cut)) {
            if (body->count) /* maybe there is memory when these are gone */
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
        *cuts += cut;
    }
    return place;
}

static void count_cut(struct courier *courier, uint32_t cuts)
{
    if (cuts)
        outbox_count_cut(courier->outbox, cuts);
}

/* Who waits for the delivery is told; else the next body is tried. Returns whether it is. */
static bool give_up(struct courier *courier)
{
    const struct outbox_patience patience = patience_of(courier);

    reporter_say(courier->reporter, REPORT_UNDELIVERED, "spans undelivered: %s",
                 courier->reply.error.text);
    if (patience.is_limited)
        outbox_fail(courier->outbox, &courier->reply.error);
    return !patience.is_limited && clock_ms() < patience.stop_ms;
}

/* The spans of the batch that make up the body, as JSON. Returns false when out of memory. */
static bool encode_shown(struct courier *courier, struct batch *batch)
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

/* Before the batch has moved on to what is behind the body. */
static void show(struct courier *courier, struct batch *batch)
{
    if (!courier->tap)
        return;
    if (!courier->tap_encoder)
        tap_show(courier->tap, courier->encoder, &courier->body);
    else if (tap_is_read(courier->tap) && encode_shown(courier, batch))
        tap_show(courier->tap, courier->tap_encoder, &courier->shown);
    else
        tap_pass(courier->tap, courier->body.count);
}

static bool deliver_body(struct courier *courier)
{
    struct body *body = &courier->body;

    return deliver(courier, (struct run){.body = body, .end = body->count}) != RESULT_GIVEN_UP ||
           give_up(courier);
}

/* What makes the batch smaller, if the encoder has a use for it, and messages larger. */
static void arrange(struct courier *courier, struct batch *batch)
{
    if (courier->transport->post) {
        const struct part_limits limits = limits_of(courier);

        parts_reset(&courier->parts, atomic_load(&courier->transport->partitions), &limits);
        batch_arrange(batch, parts_key, &courier->parts, courier->parts.partitions);
    } else if (courier->encoder->frame) {
        batch_arrange(batch, NULL, NULL, 0);
    }
}

void deliver_batch(struct courier *courier, struct batch *batch)
{
    bool goes_on = true;
    uint32_t cuts;

    courier->batch = batch;
    arrange(courier, batch);
    while (goes_on && batch_has_more(batch)) {
        const struct batch_place next = fill_body(courier, batch, &cuts);

        if (courier->body.count)
            show(courier, batch);
        batch->next_span = next;
        count_cut(courier, cuts);
        if (courier->body.count)
            goes_on = deliver_body(courier);
    }
}

bool spool_batch(struct courier *courier, struct batch *batch, struct error *error)
{
    struct body *body = &courier->body;
    uint32_t cuts;

    courier->batch = batch;
    arrange(courier, batch);
    while (batch_has_more(batch)) {
        const struct batch_place next = fill_body(courier, batch, &cuts);

        if (body->count && !put_run(courier, (struct run){.body = body, .end = body->count}, error))
            return false;
        if (body->count)
            show(courier, batch);
        count_cut(courier, cuts);
        batch->next_span = next;
    }
    return true;
}

/* ---- a record of the spool ------------------------------------------------------------------- */

void deliver_record(struct courier *courier, struct spool_record *record)
{
    const struct run whole = {.body = &courier->body, .end = courier->body.count};
    enum result result;

    courier->record = record;
    if (size_of(whole) > courier->body_bytes && length_of(whole) > 1)
        result = deliver_halves(courier, whole, false);
    else
        result = deliver(courier, whole);
    if (result == RESULT_GIVEN_UP && !spool_is_stopped(courier->spool) && give_up(courier))
        settle_spans(courier, OUTCOME_UNDELIVERED, record->left);
    courier->record = NULL;
}

/* The number first: what is lost later is in the counters too soon then, not too late. */
void say_settled(struct courier *courier)
{
    struct exporter_counts counts;
    uint64_t settled;

    if (!courier->settled)
        return;
    settled = outbox_settled(courier->outbox);
    counts = outbox_counts(courier->outbox);
    courier->settled(courier->context, &counts, settled);
}
