/*
 * Attempts to send a run.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "attempts.h"

#include "babeltrace-plugin/base/monotonic.h"

/* ---- of a batch, or of a record ------------------------------------------------------------- */

void courier_settle(struct courier *courier, enum outcome outcome, uint32_t spans)
{
    if (courier->record)
        spool_settle(courier->spool, courier->record, outcome, spans);
    else
        outbox_settle(courier->outbox, courier->batch, outcome, spans);
}

/* The graph never waits for records of the spool. */
struct outbox_patience courier_patience(struct courier *courier)
{
    if (!courier->record)
        return outbox_patience(courier->outbox);
    return (struct outbox_patience){.stop_ms = spool_is_stopped(courier->spool) ? 0 : CLOCK_NEVER};
}

static bool attempts_pause_until(struct courier *courier, int64_t until_ms)
{
    if (!courier->record)
        return outbox_pause(courier->outbox, until_ms);
    spool_note_away(courier->spool, courier->reply.retry_after_ms);
    return spool_pause(courier->spool, until_ms, courier->reply.retry_after_ms > 0);
}

/* ---- the spool ------------------------------------------------------------------------------- */

bool run_put(struct courier *courier, struct run run, struct error *error)
{
    const bool may_drop = !outbox_is_blocking(courier->outbox);
    struct framed framed; /* an unframed run may not be a batch by itself */
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

/* Puts the run into the spool instead of sending it. Returns false if there is no spool, or the
 * spool does not take it. */
static bool attempts_put_aside(struct courier *courier, struct run run)
{
    struct error error;

    if (!courier->spool || courier->record)
        return false;
    if (run_put(courier, run, &error))
        return true;
    reporter_say(courier->reporter, REPORT_SPOOL_FAILS, "%s", error.text);
    return false;
}

bool run_put_behind(struct courier *courier, struct run run)
{
    return courier->spool && !courier->record && !spool_is_empty(courier->spool) &&
           attempts_put_aside(courier, run);
}

/* ---- one run, until there is an answer ------------------------------------------------------- */

static void attempts_say_unreached(struct courier *courier)
{
    courier->is_unreached = true;
    reporter_say(courier->reporter, REPORT_UNREACHED, "not delivered yet, trying again: %s",
                 courier->reply.error.text);
}

static void attempts_say_back(struct courier *courier)
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
     * Did the collector take an empty batch before the last attempt, and after it? Then the
     * collector works, and a failure is the fault of this run. An attempt has to follow the proof,
     * as the collector may have recovered in between.
     */
    bool was_proven, is_proven;
};

static void attempts_prove(struct courier *courier, struct attempts *attempts)
{
    struct reply probe;

    courier->transport->probe(courier->transport, &probe);
    attempts->is_proven = probe.delivery == DELIVERY_ACCEPTED;
}

/*
 * When the courier gives up the run. While the graph does not wait, a collector that is away costs
 * only room in the queue; so there is no such time but the end.
 */
static int64_t attempts_give_up_ms(struct courier *courier, struct attempts *attempts)
{
    const struct outbox_patience patience = courier_patience(courier);
    const int64_t limit_ms = attempts->since_ms + courier->retry_timeout_ms;
    const bool may_be_batch = courier->reply.may_be_batch;

    if (patience.is_limited || (may_be_batch && (attempts->was_proven || clock_ms() < limit_ms)))
        return clock_earlier(patience.stop_ms, limit_ms);
    if (may_be_batch)
        attempts_prove(courier, attempts);
    if (!attempts->is_proven)
        attempts->since_ms = clock_ms();
    return patience.stop_ms;
}

static void attempts_say_why_not(struct courier *courier, int64_t limit_ms)
{
    const struct error cause = courier->reply.error;
    const bool is_end = limit_ms == courier_patience(courier).stop_ms;

    error_set(&courier->reply.error, "%s; it asks for a longer pause (Retry-After) than %s leaves",
              cause.text, is_end ? "flush-timeout-ms" : "retry-timeout-ms");
}

/* Waits for the time of the next attempt. Returns false if there is no next attempt. */
static bool attempts_wait_for_next(struct courier *courier, struct attempts *attempts)
{
    const int64_t pause_ms = retry_pause_ms(&courier->retry, courier->reply.retry_after_ms);
    const int64_t limit_ms = attempts_give_up_ms(courier, attempts);
    const int64_t now_ms = clock_ms();

    if (attempts->is_proven)
        return true;
    if (now_ms >= limit_ms)
        return false;
    if (courier->reply.retry_after_ms && now_ms + pause_ms > limit_ms) {
        attempts_say_why_not(courier, limit_ms);
        return false;
    }
    attempts_say_unreached(courier);
    return attempts_pause_until(courier, clock_earlier(now_ms + pause_ms, limit_ms));
}

/*
 * Is the collector's answer final? A refusal is final only if the collector works: a proxy whose
 * configuration changes may refuse everything for a while. After status 400, halves of a run need
 * no proof that the spans are at fault, as the whole run had it; and a whole run needs no second
 * attempt, as sending its halves is one.
 */
static bool attempts_is_final(struct courier *courier, struct run run, struct attempts *attempts)
{
    const enum delivery delivery = courier->reply.delivery;

    if (delivery == DELIVERY_RETRY)
        return false;
    if (attempts->was_proven || (delivery != DELIVERY_REFUSED && delivery != DELIVERY_INVALID) ||
        (delivery == DELIVERY_INVALID && run.is_half))
        return true;
    attempts_prove(courier, attempts);
    courier->reply.may_be_batch = false;
    return attempts->is_proven && delivery == DELIVERY_INVALID && run_length(run) > 1;
}

/* With a spool, a run goes there after its first failure. */
static bool attempts_is_to_put_aside(struct courier *courier)
{
    if (!courier->spool || courier->record)
        return false;
    reporter_say(courier->reporter, REPORT_SPOOLING, "not delivered yet, but spooled: %s",
                 courier->reply.error.text);
    spool_note_away(courier->spool, courier->reply.retry_after_ms);
    return true;
}

void run_frame(struct courier *courier, struct run run, struct framed *framed)
{
    body_frame(run.body, courier->encoder, run.first, run.end, framed);
    framed->payload.partition = run.partition;
    framed->payload.partitions = run.partitions;
    framed->payload.stays = courier->encoder->frame != NULL; /* else parts share a byte */
}

enum sent run_send(struct courier *courier, struct run run, const struct reply *answer)
{
    struct attempts attempts = {.since_ms = CLOCK_NEVER};
    bool is_answered = false, is_retry = false;
    struct framed framed;

    if (run_put_behind(courier, run))
        return SENT_ASIDE;
    run_frame(courier, run, &framed);
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
        attempts.since_ms = clock_earlier(attempts.since_ms, clock_ms());
        is_answered = attempts_is_final(courier, run, &attempts);
        is_retry = true;
        if (!is_answered && !attempts.is_proven && attempts_is_to_put_aside(courier)) {
            body_unframe(courier->encoder, &framed);
            if (attempts_put_aside(courier, run))
                return SENT_ASIDE;
            run_frame(courier, run, &framed);
        }
    } while (!is_answered && (attempts.is_proven || attempts_wait_for_next(courier, &attempts)));
    body_unframe(courier->encoder, &framed);
    if (is_answered)
        attempts_say_back(courier);
    return is_answered ? SENT_ANSWERED : SENT_GIVEN_UP;
}
