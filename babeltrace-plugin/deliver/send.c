/* SPDX-License-Identifier: BSD-2-Clause */
#include "send.h"

#include "babeltrace-plugin/base/monotonic.h"

#define REPORT_PERIOD_MS    60000
#define REPORT_FIRST_ID     8001
#define SMALLEST_BODY_BYTES 4096

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

static void send_say_span(struct sender *sender, enum report kind, struct body_run run)
{
    char which[80];

    sender->encoder->describe(body_unit(run.body, sender->encoder, run.first), which,
                              sizeof(which));
    reporter_say(sender->options.reporter, kind, "span refused: %s; the span is %s",
                 sender->reply.error.text, which);
}

/* ---- a batch or a record --------------------------------------------------------------------- */

void send_settle(struct sender *sender, enum outcome outcome, uint32_t spans)
{
    if (sender->record)
        spool_settle(sender->options.spool, sender->record, outcome, spans);
    else
        queue_settle(sender->options.queue, sender->batch, outcome, spans);
}

/* The graph never waits for records of the spool. */
struct queue_time_limit send_time_limit(struct sender *sender)
{
    if (!sender->record)
        return queue_time_limit(sender->options.queue);
    return (struct queue_time_limit){.stop_ms =
                                         spool_is_stopped(sender->options.spool) ? 0 : CLOCK_NEVER};
}

static bool send_pause_until(struct sender *sender, int64_t until_ms)
{
    const int64_t asked_ms = sender->reply.retry_after_ms;

    if (!sender->record)
        return queue_pause(sender->options.queue, until_ms, sender->was_patient);
    spool_note_away(sender->options.spool, asked_ms);
    return spool_pause(sender->options.spool, sender->record, until_ms, asked_ms > 0);
}

/* ---- the spool ------------------------------------------------------------------------------- */

bool send_put(struct sender *sender, struct body_run run, struct error *error)
{
    const bool may_drop = !queue_is_blocking(sender->options.queue);
    struct framed framed; /* an unframed run may be no valid batch */
    bool is_put;

    body_frame(run, sender->encoder, &framed);
    is_put = spool_put(sender->options.spool,
                       &(struct record_body){.format = sender->options.protocol->format,
                                             .starts = run.body->starts + run.first,
                                             .spans = body_run_length(run),
                                             .text = framed.payload.spans},
                       sender->batch, may_drop, error);
    body_unframe(sender->encoder, &framed);
    return is_put;
}

/* Puts the run into the spool. Returns false if the spool does not take it. */
static bool send_put_in_spool(struct sender *sender, struct body_run run)
{
    struct error error;

    if (send_put(sender, run, &error))
        return true;
    reporter_say(sender->options.reporter, REPORT_SPOOL_FAILS, "%s", error.text);
    return false;
}

/* Puts a run into the spool after its first failure. */
static bool send_put_failed(struct sender *sender, struct body_run run)
{
    if (!sender->options.spool || sender->record)
        return false;
    reporter_say(sender->options.reporter, REPORT_SPOOLING, "not delivered yet, but spooled: %s",
                 sender->reply.error.text);
    spool_note_away(sender->options.spool, sender->reply.retry_after_ms);
    return send_put_in_spool(sender, run);
}

/* ---- one run, until there is an answer ------------------------------------------------------- */

/* The attempts to send one run. */
struct attempts {
    int64_t since_ms; /* the first failure that counts */
    /*
     * Whether the collector took an empty batch before the last attempt, and after that attempt.
     * Then the collector works, and the run causes the failure. One attempt must follow the proof,
     * because the collector may have recovered in between.
     */
    bool was_proven, is_proven;
};

static void attempts_prove(struct sender *sender, struct attempts *attempts)
{
    struct transport_reply probe;

    sender->transport->probe(sender->transport, &probe);
    attempts->is_proven = probe.outcome == OUTCOME_ACCEPTED;
}

/* Returns the time when the sender gives up the run. While the graph does not wait, a collector
 * that is away costs only room in the queue, so the only limit is the end. */
static int64_t attempts_give_up_ms(struct sender *sender, struct attempts *attempts)
{
    const struct queue_time_limit limit = send_time_limit(sender);
    const int64_t limit_ms = attempts->since_ms + sender->options.retry_timeout_ms;
    const bool may_be_batch = sender->reply.may_be_batch;

    if (limit.is_limited || (may_be_batch && (attempts->was_proven || clock_ms() < limit_ms)))
        return clock_earlier(limit.stop_ms, limit_ms);
    if (may_be_batch)
        attempts_prove(sender, attempts);
    if (!attempts->is_proven)
        attempts->since_ms = clock_ms();
    return limit.stop_ms;
}

/* Waits for the next attempt. Returns false if there is none. While the graph does not wait, the
 * whole pause that the collector asks for comes before the run is given up. */
static bool attempts_wait_for_next(struct sender *sender, struct attempts *attempts)
{
    const int64_t asked_ms = sender->reply.retry_after_ms;
    const int64_t pause_ms = backoff_pause_ms(&sender->backoff, asked_ms);
    const int64_t give_up_ms = attempts_give_up_ms(sender, attempts);
    const struct queue_time_limit limit = send_time_limit(sender);
    const int64_t limit_ms = asked_ms && !limit.is_limited ? limit.stop_ms : give_up_ms;
    const int64_t now_ms = clock_ms();

    if (attempts->is_proven)
        return true;
    if (now_ms >= give_up_ms)
        return false;
    if (asked_ms && now_ms + pause_ms > limit_ms) {
        const struct error cause = sender->reply.error;

        error_set(&sender->reply.error,
                  "%s; the collector asks for a longer pause (Retry-After) than %s leaves",
                  cause.text, limit_ms == limit.stop_ms ? "flush-timeout-ms" : "retry-timeout-ms");
        return false;
    }
    sender->is_unreached = true;
    reporter_say(sender->options.reporter, REPORT_UNREACHED, "not delivered yet, trying again: %s",
                 sender->reply.error.text);
    return send_pause_until(sender, clock_earlier(now_ms + pause_ms, limit_ms));
}

/*
 * Returns true if the collector's answer is final. A refusal is final only if the collector works:
 * a proxy whose configuration changes may refuse everything for a while. After status 400, the
 * halves of a run need no proof, because the whole run had the proof. A whole run needs no second
 * attempt then: sending its halves is the second attempt.
 */
static bool attempts_is_final(struct sender *sender, struct body_run run, struct attempts *attempts)
{
    const enum outcome outcome = sender->reply.outcome;

    if (outcome == OUTCOME_AGAIN)
        return sender->reply.is_misplaced;
    if (attempts->was_proven || (outcome != OUTCOME_REFUSED && outcome != OUTCOME_INVALID) ||
        (outcome == OUTCOME_INVALID && run.is_half))
        return true;
    attempts_prove(sender, attempts);
    sender->reply.may_be_batch = false;
    return attempts->is_proven && outcome == OUTCOME_INVALID && body_run_length(run) > 1;
}

/* Sends all runs. sender->replies has the answers. */
static void send_attempt(struct sender *sender, const struct body_run *runs, uint32_t count,
                         bool is_retry)
{
    struct transport *transport = sender->transport;

    sender->was_patient = queue_is_patient(sender->options.queue);
    for (uint32_t i = 0; i < count; i++) {
        struct framed framed;

        queue_count_request(sender->options.queue, is_retry);
        body_frame(runs[i], sender->encoder, &framed);
        transport->send(transport, &framed.payload, &sender->replies[i]);
        body_unframe(sender->encoder, &framed);
    }
    if (transport->await)
        transport->await(transport);
}

/* sender->reply has the answer to the first attempt. Returns the outcome of the last answer,
 * OUTCOME_SPOOLED, or OUTCOME_UNDELIVERED if the run is given up. */
static enum outcome send_until_answer(struct sender *sender, struct body_run run)
{
    struct attempts attempts = {.since_ms = clock_ms()};

    while (!attempts_is_final(sender, run, &attempts)) {
        if (!attempts.is_proven && send_put_failed(sender, run))
            return OUTCOME_SPOOLED;
        if (!attempts.is_proven && !attempts_wait_for_next(sender, &attempts))
            return OUTCOME_UNDELIVERED;
        send_attempt(sender, &run, 1, true);
        sender->reply = sender->replies[0];
        attempts.was_proven = attempts.is_proven;
        attempts.is_proven = false;
    }
    sender->backoff.failures = 0;
    if (sender->is_unreached)
        reporter_say(sender->options.reporter, REPORT_BACK, "the collector answers again");
    sender->is_unreached = false;
    return sender->reply.outcome;
}

/* ---- a run of which the collector takes a part ----------------------------------------------- */

/* The functions from here on settle all spans, and return an outcome. OUTCOME_UNDELIVERED: the run
 * was given up, and the other spans are not settled. OUTCOME_INVALID: some spans are invalid. */
static enum outcome send_run(struct sender *sender, struct body_run run);

/* The collector may refuse spans of an accepted run for good, without saying which. */
static enum outcome send_settle_accepted(struct sender *sender, struct body_run run)
{
    const uint64_t claimed = sender->reply.rejected;
    const uint32_t rejected =
        claimed < body_run_length(run) ? (uint32_t)claimed : body_run_length(run);

    if (sender->reply.error.text[0])
        reporter_say(sender->options.reporter, rejected ? REPORT_REFUSED : REPORT_WARNING,
                     "%u of %u spans refused: %s", rejected, body_run_length(run),
                     sender->reply.error.text);
    if (rejected)
        send_settle(sender, OUTCOME_REFUSED, rejected);
    if (rejected < body_run_length(run))
        send_settle(sender, OUTCOME_ACCEPTED, body_run_length(run) - rejected);
    return OUTCOME_ACCEPTED;
}

static size_t send_size(struct body_run run)
{
    const struct body *body = run.body;
    const size_t end = run.end == body->count ? body->buffer.length : body->starts[run.end];

    return end - body->starts[run.first];
}

/* A body of this size was too large: the next bodies are smaller. */
static void send_shrink_bodies(struct sender *sender, size_t too_large)
{
    const size_t smaller =
        too_large / 2 > SMALLEST_BODY_BYTES ? too_large / 2 : SMALLEST_BODY_BYTES;

    if (sender->options.body_bytes > smaller)
        sender->options.body_bytes = smaller;
}

/*
 * has_invalid: the run has an invalid span. If the left half has none, the right half has one, and
 * is halved without an attempt to send it whole. But a single span is always sent: only the answer
 * to that span makes it invalid.
 */
static enum outcome send_halves(struct sender *sender, struct body_run run, bool has_invalid)
{
    struct body_run left = run, right = run;
    enum outcome left_outcome, right_outcome;

    left.end = right.first = run.first + body_run_length(run) / 2;
    left.is_half = right.is_half = true;
    left_outcome = send_run(sender, left);
    if (left_outcome == OUTCOME_UNDELIVERED)
        return OUTCOME_UNDELIVERED;
    right_outcome = has_invalid && left_outcome != OUTCOME_INVALID && body_run_length(right) > 1
                        ? send_halves(sender, right, true)
                        : send_run(sender, right);
    return right_outcome == OUTCOME_UNDELIVERED || right_outcome == OUTCOME_INVALID ? right_outcome
                                                                                    : left_outcome;
}

/* sender->reply has the answer to the first attempt. */
static enum outcome send_answered(struct sender *sender, struct body_run run)
{
    const enum outcome outcome = send_until_answer(sender, run);
    const char *why = sender->reply.error.text;

    switch (outcome) {
    case OUTCOME_UNDELIVERED:
    case OUTCOME_SPOOLED:
        return outcome;
    case OUTCOME_AGAIN:
        run.is_arranged = false;
        return send_run(sender, run);
    case OUTCOME_ACCEPTED:
        return send_settle_accepted(sender, run);
    case OUTCOME_INVALID:
    case OUTCOME_TOO_LARGE:
        if (outcome == OUTCOME_TOO_LARGE)
            send_shrink_bodies(sender, send_size(run));
        if (body_run_length(run) > 1)
            return send_halves(sender, run, outcome == OUTCOME_INVALID);
        send_say_span(sender, outcome == OUTCOME_INVALID ? REPORT_INVALID : REPORT_TOO_LARGE, run);
        break;
    case OUTCOME_POSSIBLY_PERSISTED:
        reporter_say(sender->options.reporter, REPORT_POSSIBLY_PERSISTED,
                     "spans may have arrived, or not: %s", why);
        break;
    default:
        reporter_say(sender->options.reporter, REPORT_REFUSED, "spans refused: %s", why);
    }
    send_settle(sender, outcome, body_run_length(run));
    return outcome;
}

void arranged_free(struct arranged *arranged)
{
    body_destroy(&arranged->body);
    free(arranged->runs);
    free(arranged->slots);
    *arranged = (struct arranged){.count = 0};
}

/* ---- runs that are sent together ------------------------------------------------------------- */

static bool send_is_settled(enum outcome outcome)
{
    return outcome == OUTCOME_ACCEPTED || outcome == OUTCOME_POSSIBLY_PERSISTED;
}

/* Settles the runs with an outcome first, because the others may take long or be given up.
 * Delivering the others overwrites sender->replies, so `failed` and `reply` have copies. */
static enum outcome send_together(struct sender *sender, const struct body_run *runs,
                                  uint32_t count)
{
    enum outcome failed[SENT_TOGETHER], outcome = OUTCOME_ACCEPTED;
    struct transport_reply reply = {.outcome = OUTCOME_ACCEPTED}; /* of the first run that failed */

    send_attempt(sender, runs, count, false);
    for (uint32_t i = 0; i < count; i++) {
        failed[i] = sender->replies[i].outcome;
        if (!send_is_settled(failed[i])) {
            if (reply.outcome == OUTCOME_ACCEPTED)
                reply = sender->replies[i];
            continue;
        }
        sender->reply = sender->replies[i];
        (void)send_answered(sender, runs[i]);
    }
    for (uint32_t i = 0; i < count && outcome != OUTCOME_UNDELIVERED; i++) {
        if (send_is_settled(failed[i]))
            continue;
        sender->reply = reply;
        sender->reply.outcome = failed[i];
        outcome = send_answered(sender, runs[i]);
    }
    return outcome;
}

/* A lack of memory passes, so the run is treated as one that gets no answer. Returns
 * OUTCOME_ACCEPTED, or else the outcome of the run. */
static enum outcome send_arrange(struct sender *sender, struct body_run run,
                                 struct arranged *arranged)
{
    struct transport *transport = sender->transport;
    struct attempts attempts = {.since_ms = clock_ms()};

    for (;;) {
        sender->was_patient = queue_is_patient(sender->options.queue);
        if (transport->arrange(transport, sender->encoder, run, sender->options.body_bytes,
                               arranged))
            return OUTCOME_ACCEPTED;
        arranged_free(arranged);
        sender->reply = (struct transport_reply){.outcome = OUTCOME_AGAIN};
        error_set(&sender->reply.error, "out of memory");
        if (send_put_failed(sender, run))
            return OUTCOME_SPOOLED;
        if (!attempts_wait_for_next(sender, &attempts))
            return OUTCOME_UNDELIVERED;
    }
}

static enum outcome send_arranged(struct sender *sender, struct body_run run)
{
    struct arranged arranged = sender->spare;
    enum outcome outcome;

    sender->spare = (struct arranged){.count = 0};
    outcome = send_arrange(sender, run, &arranged);
    for (uint32_t i = 0; i < arranged.count && outcome != OUTCOME_UNDELIVERED; i += SENT_TOGETHER) {
        const uint32_t left = arranged.count - i;

        outcome =
            send_together(sender, arranged.runs + i, left < SENT_TOGETHER ? left : SENT_TOGETHER);
    }
    arranged_free(&sender->spare);
    sender->spare = arranged;
    return outcome;
}

static enum outcome send_run(struct sender *sender, struct body_run run)
{
    /* the spool has spans to send first */
    if (sender->options.spool && !sender->record && !spool_is_empty(sender->options.spool) &&
        send_put_in_spool(sender, run))
        return OUTCOME_SPOOLED;
    return sender->transport->arrange && !run.is_arranged ? send_arranged(sender, run)
                                                          : send_together(sender, &run, 1);
}

/* A record of the spool may be larger than bodies are now. */
enum outcome send_body(struct sender *sender)
{
    const struct body_run whole = {.body = &sender->body, .end = sender->body.count};

    return send_size(whole) > sender->options.body_bytes && body_run_length(whole) > 1
               ? send_halves(sender, whole, false)
               : send_run(sender, whole);
}
