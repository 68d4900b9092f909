/*
 * Fuzzes the queue against a simple model: any order of its operations, on both sides. Spans come
 * out once, whole and in order, and every span gets one outcome. After each operation all counters
 * must equal the model's, and memory must stay below its limit.
 *
 * One thread makes all operations. The clock moves only in waits, and in one operation that does
 * nothing else. The fuzzer skips an operation that would wait for another thread.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/deliver/queue.h"
#include "babeltrace-plugin/base/monotonic.h"

#include <errno.h>
#include <pthread.h>

/* ---- the clock: mk/fuzz.mk compiles the queue with these functions for the system's ---- */

static int64_t now_ms;

int fuzz_clock_gettime(clockid_t id, struct timespec *now);
int fuzz_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock);
int fuzz_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                        const struct timespec *until);

int fuzz_clock_gettime(clockid_t id, struct timespec *now)
{
    REQUIRE(id == CLOCK_MONOTONIC);
    *now = (struct timespec){now_ms / 1000, now_ms % 1000 * 1000000};
    return 0;
}

int fuzz_cond_wait(pthread_cond_t *condition, pthread_mutex_t *lock)
{
    (void)condition;
    (void)lock;
    REQUIRE(!"waits for ever");
    return 0;
}

int fuzz_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *lock,
                        const struct timespec *until)
{
    const int64_t until_ms = until->tv_sec * 1000 + until->tv_nsec / 1000000;

    (void)condition;
    (void)lock;
    if (until_ms > now_ms)
        now_ms = until_ms;
    return ETIMEDOUT;
}

/* ---- the model ---- */

#define QUEUE_SPANS_MAX 512
#define NEVER           INT64_MAX

/* A batch is a run of spans, because no span overtakes another. */
struct queue_run {
    uint64_t first; /* UINT64_MAX: numbers are missing in the run */
    uint64_t count;
    size_t bytes;
    int64_t first_ms;
};

static struct model {
    struct queue_options options;
    uint64_t added; /* spans that the queue took, with any outcome */
    struct queue_run full[QUEUE_SPANS_MAX];
    unsigned full_count;
    struct queue_run open; /* count 0: no batch */
    struct queue_run in_flight;
    uint64_t unsettled; /* in flight */
    struct exporter_counts counts;
    int64_t stop_ms;
    bool is_blocking, is_draining, is_closed, has_failed;
} model;

static struct span_queue *queue;
static struct batch *taken;
static uint64_t last_settled;

static bool is_over(void)
{
    return model.has_failed || now_ms >= model.stop_ms;
}

static size_t bytes_waiting(void)
{
    size_t bytes = model.open.bytes + model.in_flight.bytes;

    for (unsigned i = 0; i < model.full_count; i++)
        bytes += model.full[i].bytes;
    return bytes;
}

static void settle(enum outcome outcome, uint64_t spans)
{
    model.counts.outcome[outcome] += spans;
    model.counts.waiting -= spans;
}

static struct queue_run take_full(void)
{
    const struct queue_run run = model.full[0];

    memmove(model.full, model.full + 1, --model.full_count * sizeof(run));
    return run;
}

static void discard_all(void)
{
    while (model.full_count)
        settle(OUTCOME_UNDELIVERED, take_full().count);
    settle(OUTCOME_UNDELIVERED, model.open.count);
    model.open = (struct queue_run){.count = 0};
}

/* ---- spans: a span's contents follow from its number ---- */

static char log_bytes[256];

static struct span span_of(uint64_t number)
{
    return (struct span){.trace_id = 1,
                         .id = number,
                         .log = log_bytes + number % 8,
                         .log_length = (uint32_t)(number * 7 % 200)};
}

static size_t size_of(const struct span *span)
{
    return sizeof(*span) + (span->log_length + 7) / 8 * 8;
}

static void add(void)
{
    const struct span span = span_of(model.added);
    const bool was_full = bytes_waiting() >= model.options.queue_bytes;
    enum queue_added expected = QUEUE_ADDED;
    bool goes_in = true;

    if (model.added == QUEUE_SPANS_MAX)
        return;
    if (is_over()) {
        goes_in = false;
        model.counts.outcome[OUTCOME_UNDELIVERED]++;
    } else if (was_full && model.is_blocking) {
        REQUIRE(queue_add(queue, &span) == QUEUE_FULL);
        return;
    } else if (was_full) {
        expected = QUEUE_DROPPING;
        if (model.full_count)
            settle(OUTCOME_DROPPED, take_full().count);
        goes_in = bytes_waiting() < model.options.queue_bytes;
        model.counts.outcome[OUTCOME_DROPPED] += !goes_in;
    }
    REQUIRE(queue_add(queue, &span) == expected);
    model.counts.spans++;
    if (goes_in) {
        if (!model.open.count)
            model.open = (struct queue_run){.first = model.added, .first_ms = now_ms};
        model.counts.waiting++;
        model.open.count++;
        model.open.bytes += size_of(&span);
        if (model.open.count >= model.options.batch_spans ||
            model.open.bytes >= model.options.batch_bytes) {
            model.full[model.full_count++] = model.open;
            model.open = (struct queue_run){.count = 0};
        }
    } else if (model.open.count) {
        /* the open run has a gap now: check_batch() checks only the order of its numbers */
        model.open.first = UINT64_MAX;
    }
    model.added++;
    REQUIRE(bytes_waiting() <= model.options.queue_bytes + sizeof(span) + sizeof(log_bytes));
}

/* Requires the spans of the run in order, with gaps where spans were dropped. */
static void check_batch(struct batch *batch, const struct queue_run *run)
{
    const struct span *span;
    uint64_t last = 0;
    uint64_t count = 0;
    struct batch_position place = {0};

    while ((span = batch_span(batch, &place))) {
        const struct span expected = span_of(span->id);

        REQUIRE(count == 0 || span->id > last);
        REQUIRE(run->first == UINT64_MAX || span->id == run->first + count);
        REQUIRE(span->log_length == expected.log_length);
        REQUIRE(!memcmp(span->log, expected.log, expected.log_length));
        last = span->id;
        count++;
    }
    REQUIRE(count == run->count && batch->count == run->count);
}

/* Takes a batch as a sender does, unless queue_take() would wait for another thread. */
static void take_batch(void)
{
    if (taken || !(model.is_closed || (!is_over() && (model.full_count || model.open.count))))
        return;
    if (is_over())
        discard_all();
    taken = queue_take(queue);
    if (!model.full_count && !model.open.count) {
        REQUIRE(!taken);
        return;
    }
    REQUIRE(taken);
    if (model.full_count) {
        model.in_flight = take_full();
    } else {
        const bool is_due = model.is_draining || model.is_closed || model.stop_ms != NEVER;

        REQUIRE(is_due || now_ms >= model.open.first_ms + model.options.batch_timeout_ms);
        model.in_flight = model.open;
        model.open = (struct queue_run){.count = 0};
    }
    model.unsettled = model.in_flight.count;
    check_batch(taken, &model.in_flight);
}

static void settle_some(uint64_t spans, enum outcome outcome)
{
    if (!taken)
        return;
    if (spans > model.unsettled)
        spans = model.unsettled;
    queue_settle(queue, taken, outcome, (uint32_t)spans);
    settle(outcome, spans);
    model.unsettled -= spans;
}

static void finish_batch(void)
{
    if (!taken)
        return;
    queue_finish(queue, taken);
    settle(OUTCOME_UNDELIVERED, model.unsettled);
    taken = NULL;
    model.in_flight = (struct queue_run){.count = 0};
    model.unsettled = 0;
}

static void pause_until(int64_t until_ms)
{
    const int64_t ends_ms = until_ms < model.stop_ms ? until_ms : model.stop_ms;
    const int64_t before_ms = now_ms;
    const bool has_time_left = queue_pause(queue, until_ms, queue_is_patient(queue));

    REQUIRE(has_time_left == !is_over());
    REQUIRE(now_ms == before_ms || now_ms <= ends_ms);
}

/* The position never goes back. The number of spans before the position is at most the number of
 * spans with an outcome. If no span waits, all spans are before the position. */
static void check_settled(uint64_t spans)
{
    const uint64_t settled = queue_settled(queue);

    REQUIRE(settled <= spans && settled >= last_settled);
    REQUIRE(model.counts.waiting || settled == spans);
    REQUIRE(settled + model.counts.waiting <= spans);
    last_settled = settled;
}

static void check(void)
{
    const struct exporter_counts counts = queue_counts(queue);
    const struct queue_time_limit limit = queue_time_limit(queue);
    uint64_t sum = counts.waiting;
    struct error error;

    for (unsigned i = 0; i < OUTCOMES; i++) {
        REQUIRE(counts.outcome[i] == model.counts.outcome[i]);
        sum += counts.outcome[i];
    }
    REQUIRE(counts.waiting == model.counts.waiting);
    REQUIRE(counts.spans == model.counts.spans && counts.spans == sum);
    check_settled(counts.spans);
    REQUIRE(limit.stop_ms == model.stop_ms);
    REQUIRE(limit.is_limited == (model.is_blocking || model.is_draining));
    REQUIRE(queue_has_failed(queue, &error) == model.has_failed);
    REQUIRE(queue_wait(queue, QUEUE_IS_EMPTY, now_ms) == !model.counts.waiting);
    REQUIRE(queue_wait(queue, QUEUE_HAS_ROOM, now_ms) ==
            (is_over() || bytes_waiting() < model.options.queue_bytes));
}

static void operate(struct fuzz *source)
{
    const struct error error = {"away"};
    const uint64_t choice = take(source, 1);

    switch (choice % 32) {
    case 0:
        model.is_blocking = take(source, 1) & 1;
        queue_set_blocking(queue, model.is_blocking);
        break;
    case 1:
        model.is_draining = take(source, 1) & 1;
        queue_set_draining(queue, model.is_draining);
        break;
    case 2: {
        const int64_t stop_ms = now_ms + (int64_t)take(source, 1);

        if (stop_ms < model.stop_ms)
            model.stop_ms = stop_ms;
        queue_stop(queue, stop_ms);
        break;
    }
    case 3:
        if (take(source, 1) > 200) {
            model.is_closed = true;
            queue_close(queue);
        }
        break;
    case 4:
        if (take(source, 1) > 200) {
            queue_fail(queue, &error);
            model.has_failed = true;
            discard_all();
        }
        break;
    case 5:
        now_ms += (int64_t)take(source, 1);
        break;
    case 6:
        pause_until(now_ms + (int64_t)take(source, 1));
        break;
    case 7:
    case 8:
    case 9:
        take_batch();
        break;
    case 10:
    case 11:
        settle_some(take(source, 1), (enum outcome)(take(source, 1) % OUTCOMES));
        break;
    case 12:
    case 13:
        finish_batch();
        break;
    default:
        for (uint64_t i = choice % 4; i < 4; i++)
            add();
    }
    check();
}

/* Ends the queue like the exporter. Every span must have an outcome. */
static void finish_all(void)
{
    model.is_closed = true;
    queue_close(queue);
    do {
        settle_some(1, OUTCOME_ACCEPTED);
        finish_batch();
        take_batch();
        check();
    } while (taken);
    REQUIRE(!model.counts.waiting);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};

    for (unsigned i = 0; i < sizeof(log_bytes); i++)
        log_bytes[i] = (char)i;
    now_ms = 1000;
    last_settled = 0;
    model = (struct model){
        .options = {.batch_spans = 1 + (uint32_t)take(&source, 1) % 8,
                    .batch_bytes = 1 + take(&source, 2) % 2000,
                    .batch_timeout_ms = (int64_t)take(&source, 1),
                    .queue_bytes = take(&source, 2) % 8000,
                    .is_blocking = take(&source, 1) & 1},
        .stop_ms = NEVER,
    };
    queue = queue_new(&model.options);
    REQUIRE(queue);
    model.is_blocking = model.options.is_blocking;
    if (model.options.queue_bytes < 2 * model.options.batch_bytes)
        model.options.queue_bytes = 2 * model.options.batch_bytes;
    while (source.at < source.end)
        operate(&source);
    finish_all();
    queue_free(queue);
    return 0;
}
