/*
 * The outbox: who gets a batch, what every span's outcome is, and up to where all spans have one.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/outbox.h"
#include "check.h"

#include <time.h>
#include <unistd.h>

#define BATCH 2 /* spans */
#define LONG  60000
#define ROOM  (1 << 20)

static const struct outbox_options usual = {.batch_spans = BATCH,
                                            .batch_bytes = 4096,
                                            .batch_timeout_ms = LONG,
                                            .queue_bytes = ROOM,
                                            .is_blocking = true,
                                            .has_spool = true,
                                            .threads = 2};

static void add(struct outbox *outbox, unsigned count)
{
    static const struct span span = {.trace_id = 1, .id = 2};

    while (count--)
        CHECK(outbox_add(outbox, &span) == OUTBOX_ADDED);
}

/* There is one: it does not take so long. */
static struct batch *aside(struct outbox *outbox)
{
    return outbox_take_aside(outbox, clock_ms() + LONG);
}

static bool is_nothing_aside(struct outbox *outbox)
{
    return outbox_take_aside(outbox, clock_ms() + 2) == NULL;
}

static void has(struct outbox *outbox, enum outcome outcome, uint64_t spans, uint64_t waiting)
{
    const struct exporter_counts counts = outbox_counts(outbox);
    uint64_t sum = counts.waiting;

    CHECK(counts.outcome[outcome] == spans);
    CHECK(counts.waiting == waiting);
    for (int i = 0; i < OUTCOMES; i++)
        sum += counts.outcome[i];
    CHECK(sum == counts.spans);
}

/* ---- who gets a batch: the spooler, a sender, or nobody ---- */

static void test_ways(void)
{
    enum { STOPS = 1, CLOSED = 2, PRESSED = 4, WAITS = 8 };
    static const struct {
        enum outbox_way way;
        unsigned what;
        char gets; /* 'a'side, 'd'irectly, 'n'obody */
    } cases[] = {
        {OUTBOX_DIRECT, WAITS, 'd'},
        {OUTBOX_DIRECT, 0, 'd'},
        {OUTBOX_DIRECT, PRESSED, 'a'},
        {OUTBOX_DIRECT, PRESSED | WAITS, 'd'},
        {OUTBOX_DIRECT, CLOSED, 'd'},
        {OUTBOX_DIRECT, STOPS, 'd'},
        {OUTBOX_BEHIND, WAITS, 'n'},
        {OUTBOX_BEHIND, 0, 'a'},
        {OUTBOX_BEHIND, WAITS | CLOSED, 'a'},
        {OUTBOX_BEHIND, WAITS | STOPS, 'a'},
        {OUTBOX_AWAY, WAITS, 'a'},
        {OUTBOX_AWAY, 0, 'a'},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct outbox_options options = usual;
        struct outbox *outbox;
        struct batch *batch = NULL;
        const unsigned what = cases[i].what;

        options.is_blocking = (what & WAITS) != 0;
        options.queue_bytes = what & PRESSED ? 2 * options.batch_bytes : ROOM;
        outbox = outbox_new(&options);
        outbox_set_way(outbox, cases[i].way);
        add(outbox, what & PRESSED ? 50 : BATCH);
        if (what & STOPS)
            outbox_stop(outbox, clock_ms() + LONG);
        if (what & CLOSED)
            outbox_close(outbox);
        if (cases[i].gets == 'a') {
            CHECK((batch = aside(outbox)) != NULL);
            outbox_finish(outbox, batch);
        } else {
            CHECK(is_nothing_aside(outbox));
        }
        if (cases[i].gets == 'd')
            CHECK((batch = outbox_take(outbox)) != NULL);
        else if (cases[i].way != OUTBOX_DIRECT && !(what & CLOSED))
            CHECK((batch = outbox_take(outbox)) == NULL);
        if (cases[i].gets == 'd' && batch)
            outbox_finish(outbox, batch);
        outbox_free(outbox);
    }
}

/* While the spooler has a batch, a sender gets none: the order of spans would be another one. */
static void test_spooler_first(void)
{
    struct outbox *outbox = outbox_new(&usual);
    struct batch *batch;

    add(outbox, 2 * BATCH);
    outbox_set_way(outbox, OUTBOX_AWAY);
    batch = aside(outbox);
    CHECK(batch && batch->count == BATCH && batch->first == 0);
    outbox_put_back(outbox, batch); /* the disk does not take it: as without a spool */
    outbox_set_way(outbox, OUTBOX_DIRECT);
    batch = outbox_take(outbox);
    CHECK(batch && batch->first == 0);
    outbox_settle(outbox, batch, OUTCOME_ACCEPTED, BATCH);
    outbox_finish(outbox, batch);
    has(outbox, OUTCOME_ACCEPTED, BATCH, BATCH);
    outbox_free(outbox);
}

/* ---- what becomes of spans ---- */

static void test_outcomes(bool is_arranged)
{
    struct outbox_options options = usual;
    struct outbox *outbox;
    struct batch *first, *second;

    options.has_spool = false;
    options.is_arranged = is_arranged;
    outbox = outbox_new(&options);
    add(outbox, 2 * BATCH + 1);
    CHECK(outbox_settled(outbox) == 0);
    first = outbox_take(outbox);
    second = outbox_take(outbox);
    CHECK(first && second && first->first == 0 && second->first == BATCH);
    outbox_settle(outbox, second, OUTCOME_ACCEPTED, BATCH);
    CHECK(outbox_settled(outbox) == 0);
    outbox_settle(outbox, first, OUTCOME_REFUSED, 1);
    CHECK(outbox_settled(outbox) == (is_arranged ? 0 : 1));
    has(outbox, OUTCOME_REFUSED, 1, BATCH);
    outbox_finish(outbox, second);
    CHECK(outbox_settled(outbox) == (is_arranged ? 0 : 1));
    outbox_finish(outbox, first); /* the other one has no outcome */
    has(outbox, OUTCOME_UNDELIVERED, 1, 1);
    CHECK(outbox_settled(outbox) == 2 * BATCH); /* the open batch is not */
    outbox_close(outbox);
    CHECK(!outbox_is_done(outbox));
    first = outbox_take(outbox);
    CHECK(first && first->count == 1 && !outbox_is_done(outbox));
    outbox_settle(outbox, first, OUTCOME_ACCEPTED, 1);
    CHECK(!outbox_is_done(outbox));
    outbox_finish(outbox, first);
    CHECK(outbox_is_done(outbox) && outbox_take(outbox) == NULL);
    CHECK(outbox_settled(outbox) == 2 * BATCH + 1);
    outbox_count_unsure(outbox);
    outbox_count_cut(outbox, 3);
    outbox_count_request(outbox, false);
    outbox_count_request(outbox, true);
    CHECK(outbox_counts(outbox).unsure == BATCH + 1 && outbox_counts(outbox).cut == 3);
    CHECK(outbox_counts(outbox).requests == 2 && outbox_counts(outbox).retries == 1);
    outbox_free(outbox);
}

/* A batch that is put back has lost those that were settled. */
static void test_put_back(void)
{
    struct outbox *outbox = outbox_new(&usual);
    struct batch *batch;

    add(outbox, BATCH);
    outbox_set_way(outbox, OUTBOX_AWAY);
    batch = aside(outbox);
    CHECK(batch != NULL);
    outbox_settle(outbox, batch, OUTCOME_INVALID, 1);
    CHECK(outbox_settled(outbox) == 1);
    outbox_put_back(outbox, batch);
    CHECK(outbox_settled(outbox) == 1 && batch->first == 1 && batch->count == 1);
    CHECK(is_nothing_aside(outbox)); /* after a pause */
    has(outbox, OUTCOME_INVALID, 1, 1);
    outbox_set_way(outbox, OUTBOX_DIRECT);
    batch = outbox_take(outbox);
    CHECK(batch && batch->count == 1);
    outbox_finish(outbox, batch);
    CHECK(outbox_wait(outbox, OUTBOX_HAS_ROOM, 0)); /* its bytes are given back, once */
    outbox_free(outbox);
}

/* The trace's id is the key. */
static uint32_t key_of(void *context, const struct span *span)
{
    (void)context;
    return (uint32_t)span->trace_id;
}

/* Of a batch the spooler has put a part on disk, in the order in which the spans came, as nobody
 * knew of partitions yet: a sender sends the rest, and nothing else. */
static void test_arrange_the_rest(void)
{
    static const struct endpoint endpoint = {.service = {"s", 1}};
    struct queue queue = {.batch_spans = 6, .batch_bytes = 4096};
    struct batch *batch;
    const struct span *span;
    unsigned seen = 0;

    for (uint64_t i = 0; i < 6; i++)
        CHECK(queue_add(&queue,
                        &(struct span){.trace_id = 5 - i, .id = i + 1, .endpoint = &endpoint}, i));
    batch = queue_take(&queue, false);
    for (int i = 0; i < 2; i++, batch->count--)
        CHECK(batch_span(batch, &batch->next_span) != NULL);
    batch_arrange(batch, key_of, NULL, 6);
    while (batch_has_more(batch) && (span = batch_span(batch, &batch->next_span)))
        seen |= 1U << span->id;
    CHECK(seen == (1U << 3 | 1U << 4 | 1U << 5 | 1U << 6));
    queue_recycle(&queue, batch);
    queue_clear(&queue);
}

/* At the end, with a disk that fails, nothing but what is on its way is left: who waits for that
 * takes no CPU. */
static void test_idle_spooler(void)
{
    struct outbox *outbox = outbox_new(&usual);
    struct batch *sent;
    clock_t begin;

    add(outbox, 2 * BATCH);
    sent = outbox_take(outbox);
    outbox_set_way(outbox, OUTBOX_AWAY);
    outbox_put_back(outbox, aside(outbox));
    usleep(1100000); /* until the disk would be tried again */
    outbox_stop(outbox, clock_ms());
    outbox_close(outbox);
    begin = clock();
    CHECK(outbox_take_aside(outbox, clock_ms() + 300) == NULL && !outbox_is_done(outbox));
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 0.1);
    outbox_finish(outbox, sent);
    has(outbox, OUTCOME_UNDELIVERED, 2 * BATCH, 0);
    outbox_free(outbox);
}

static void test_late(bool has_spool)
{
    static const struct span span = {.trace_id = 1, .id = 2};
    struct outbox_options options = usual;
    const int64_t begin_ms = clock_ms();
    struct outbox *outbox;

    options.has_spool = has_spool;
    outbox = outbox_new(&options);
    add(outbox, 1);
    CHECK(outbox_pause(outbox, clock_ms()));
    CHECK(outbox_patience(outbox).is_limited && outbox_patience(outbox).stop_ms == CLOCK_NEVER);
    outbox_stop(outbox, clock_ms() + LONG);
    outbox_stop(outbox, clock_ms() - 1);
    outbox_stop(outbox, clock_ms() + LONG); /* the earliest counts */
    CHECK(outbox_patience(outbox).stop_ms < clock_ms());
    CHECK(outbox_pause(outbox, clock_ms() + LONG) == has_spool);
    CHECK(clock_ms() - begin_ms < LONG / 2); /* at once */
    CHECK(outbox_add(outbox, &span) == OUTBOX_ADDED);
    has(outbox, OUTCOME_UNDELIVERED, has_spool ? 0 : 1, has_spool ? 2 : 1);
    outbox_close(outbox);
    if (has_spool) { /* also what is late */
        struct batch *batch = aside(outbox);

        CHECK(batch && batch->count == 2);
        outbox_settle(outbox, batch, OUTCOME_SPOOLED, 2);
        outbox_finish(outbox, batch);
        has(outbox, OUTCOME_SPOOLED, 2, 0);
    } else {
        CHECK(outbox_take(outbox) == NULL);
        has(outbox, OUTCOME_UNDELIVERED, 2, 0);
    }
    CHECK(outbox_wait(outbox, OUTBOX_IS_EMPTY, clock_ms()));
    outbox_end(outbox);
    CHECK(!outbox_wait(outbox, OUTBOX_HAS_ENDED, clock_ms()));
    outbox_end(outbox);
    CHECK(outbox_wait(outbox, OUTBOX_HAS_ENDED, clock_ms()));
    outbox_free(outbox);
}

int main(void)
{
    test_ways();
    test_spooler_first();
    test_outcomes(false);
    test_outcomes(true);
    test_put_back();
    test_arrange_the_rest();
    test_idle_spooler();
    test_late(false);
    test_late(true);
    return check_status();
}
