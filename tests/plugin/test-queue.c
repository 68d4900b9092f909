/*
 * The queue with a spool, and with arranged batches: which thread gets a batch, and up to which
 * position all spans have an outcome. fuzz/fuzz-queue.c compares everything else with a model.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/queue.h"
#include "check.h"
#include "waits.h"

#include <pthread.h>
#include <time.h>

#define QUEUE_BATCH 2         /* spans */
#define QUEUE_LONG  60000     /* ms */
#define QUEUE_ROOM  (1 << 20) /* bytes */

static const struct queue_options usual = {.batch_spans = QUEUE_BATCH,
                                           .batch_bytes = 4096,
                                           .batch_timeout_ms = QUEUE_LONG,
                                           .queue_bytes = QUEUE_ROOM,
                                           .is_blocking = true,
                                           .has_spool = true,
                                           .threads = 2};

static void add(struct span_queue *queue, unsigned count)
{
    static const struct span span = {.trace_id = 1, .id = 2};

    while (count--)
        CHECK(queue_add(queue, &span) == QUEUE_ADDED);
}

/* Returns the spooler's batch, which must be ready soon. */
static struct batch *take_as_spooler(struct span_queue *queue)
{
    return queue_take_for_spool(queue, clock_ms() + QUEUE_LONG);
}

static bool is_none_for_spooler(struct span_queue *queue)
{
    return queue_take_for_spool(queue, clock_ms() + 2) == NULL;
}

static void check_counts(struct span_queue *queue, enum outcome outcome, uint64_t spans,
                         uint64_t waiting)
{
    const struct exporter_counts counts = queue_counts(queue);
    uint64_t sum = counts.waiting;

    CHECK(counts.outcome[outcome] == spans);
    CHECK(counts.waiting == waiting);
    for (int i = 0; i < OUTCOMES; i++)
        sum += counts.outcome[i];
    CHECK(sum == counts.spans);
}

/* ---- which thread gets a batch: the spooler, a sender, or none ---- */

TEST(test_routes)
{
    enum { STOPPED = 1, CLOSED = 2, FULL = 4, BLOCKING = 8 };
    enum queue_taker { TO_NOBODY, TO_SPOOLER, TO_SENDER };
    static const struct {
        enum queue_route route;
        unsigned state;
        enum queue_taker taker;
    } cases[] = {
        {QUEUE_DIRECT, BLOCKING, TO_SENDER},
        {QUEUE_DIRECT, 0, TO_SENDER},
        {QUEUE_DIRECT, FULL, TO_SPOOLER},
        {QUEUE_DIRECT, FULL | BLOCKING, TO_SENDER},
        {QUEUE_DIRECT, CLOSED, TO_SENDER},
        {QUEUE_DIRECT, STOPPED, TO_SENDER},
        {QUEUE_BEHIND, BLOCKING, TO_NOBODY},
        {QUEUE_BEHIND, 0, TO_SPOOLER},
        {QUEUE_BEHIND, BLOCKING | CLOSED, TO_SPOOLER},
        {QUEUE_BEHIND, BLOCKING | STOPPED, TO_SPOOLER},
        {QUEUE_AWAY, BLOCKING, TO_SPOOLER},
        {QUEUE_AWAY, 0, TO_SPOOLER},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct queue_options options = usual;
        struct span_queue *queue;
        struct batch *batch = NULL;
        const unsigned state = cases[i].state;

        options.is_blocking = (state & BLOCKING) != 0;
        options.queue_bytes = state & FULL ? 2 * options.batch_bytes : QUEUE_ROOM;
        queue = queue_new(&options);
        queue_set_route(queue, cases[i].route);
        add(queue, state & FULL ? 50 : QUEUE_BATCH);
        if (state & STOPPED)
            queue_stop(queue, clock_ms() + QUEUE_LONG);
        if (state & CLOSED)
            queue_close(queue);
        if (cases[i].taker == TO_SPOOLER) {
            CHECK((batch = take_as_spooler(queue)) != NULL);
            queue_finish(queue, batch);
        } else {
            CHECK(is_none_for_spooler(queue));
        }
        if (cases[i].taker == TO_SENDER)
            CHECK((batch = queue_take(queue)) != NULL);
        else if (cases[i].route != QUEUE_DIRECT && !(state & CLOSED))
            CHECK((batch = queue_take(queue)) == NULL);
        if (cases[i].taker == TO_SENDER && batch)
            queue_finish(queue, batch);
        queue_free(queue);
    }
}

/* A batch that the spooler puts back is the next one that a sender gets: spans keep their order. */
TEST(test_spooler_first)
{
    struct span_queue *queue = queue_new(&usual);
    struct batch *batch;

    add(queue, 2 * QUEUE_BATCH);
    queue_set_route(queue, QUEUE_AWAY);
    batch = take_as_spooler(queue);
    CHECK(batch && batch->count == QUEUE_BATCH && batch->first == 0);
    queue_put_back(queue, batch); /* the disk has failed: a sender gets the batch */
    queue_set_route(queue, QUEUE_DIRECT);
    batch = queue_take(queue);
    CHECK(batch && batch->first == 0);
    queue_settle(queue, batch, OUTCOME_ACCEPTED, QUEUE_BATCH);
    queue_finish(queue, batch);
    check_counts(queue, OUTCOME_ACCEPTED, QUEUE_BATCH, QUEUE_BATCH);
    queue_free(queue);
}

/* ---- outcomes of spans ---- */

/* Spans get their outcomes in any order. The queue does not know which spans of an arranged batch
 * have their outcome. */
static void check_outcomes(bool is_arranged)
{
    struct queue_options options = usual;
    struct span_queue *queue;
    struct batch *first, *second;

    options.has_spool = false;
    options.is_arranged = is_arranged;
    queue = queue_new(&options);
    add(queue, 2 * QUEUE_BATCH);
    first = queue_take(queue);
    second = queue_take(queue);
    CHECK(first && second && first->first == 0 && second->first == QUEUE_BATCH);
    queue_settle(queue, second, OUTCOME_ACCEPTED, QUEUE_BATCH);
    CHECK(queue_settled(queue) == 0);
    queue_settle(queue, first, OUTCOME_REFUSED, 1);
    CHECK(queue_settled(queue) == (is_arranged ? 0 : 1));
    queue_finish(queue, second);
    CHECK(queue_settled(queue) == (is_arranged ? 0 : 1));
    queue_finish(queue, first);
    CHECK(queue_settled(queue) == 2 * QUEUE_BATCH);
    queue_count_unsure(queue);
    queue_count_cut(queue, 3);
    queue_count_request(queue, false);
    queue_count_request(queue, true);
    CHECK(queue_counts(queue).unsure == QUEUE_BATCH && queue_counts(queue).cut == 3);
    CHECK(queue_counts(queue).requests == 2 && queue_counts(queue).retries == 1);
    queue_free(queue);
}

TEST(test_outcomes)
{
    check_outcomes(false);
    check_outcomes(true);
}

/* A batch that is put back contains only the spans that are not settled. */
TEST(test_put_back)
{
    struct span_queue *queue = queue_new(&usual);
    struct batch *batch;
    int64_t begin_ms;

    add(queue, QUEUE_BATCH);
    queue_set_route(queue, QUEUE_AWAY);
    batch = take_as_spooler(queue);
    CHECK(batch != NULL);
    queue_settle(queue, batch, OUTCOME_INVALID, 1);
    CHECK(queue_settled(queue) == 1);
    begin_ms = clock_ms();
    queue_put_back(queue, batch);
    CHECK(queue_settled(queue) == 1 && batch->first == 1 && batch->count == 1);
    batch = queue_take_for_spool(queue, clock_ms() + 2); /* not before a pause of 1 s */
    CHECK(!batch || clock_ms() - begin_ms >= 1000);
    if (batch)
        queue_put_back(queue, batch);
    check_counts(queue, OUTCOME_INVALID, 1, 1);
    queue_set_route(queue, QUEUE_DIRECT);
    batch = queue_take(queue);
    CHECK(batch && batch->count == 1);
    queue_finish(queue, batch);
    CHECK(queue_wait(queue, QUEUE_HAS_ROOM, 0)); /* the bytes of the batch were freed once */
    queue_free(queue);
}

/* The spooler has written some spans of a batch in the order of arrival, because it had no memory
 * to sort them. A sender sends exactly the other spans. */
TEST(test_arrange_remaining)
{
    static const struct endpoint endpoints[] = {{.service = {"s", 1}}, {.service = {"t", 1}}};
    struct batch_list batches = {.batch_spans = 6, .batch_bytes = 4096};

    for (unsigned done = 0; done < 3; done += 2) {
        struct batch *batch;
        const struct span *span;
        unsigned seen = 0;

        for (uint64_t i = 1; i <= 6; i++)
            CHECK(batch_list_add(&batches, &(struct span){.id = i, .endpoint = &endpoints[i % 2]},
                                 i));
        batch = batch_list_take(&batches, false);
        for (unsigned i = 0; i < done; i++, batch->count--)
            CHECK(batch_span(batch, &batch->next_span) != NULL);
        batch_arrange(batch);
        while (batch_has_more(batch) && (span = batch_span(batch, &batch->next_span)))
            seen = seen * 10 + (unsigned)span->id;
        CHECK(seen == (done ? 3456 : 135246));
        batch_list_recycle(&batches, batch);
    }
    batch_list_clear(&batches);
}

/* At the end, with a failing disk, only the batches in flight remain: waiting for them takes no
 * CPU. */
TEST(test_idle_spooler)
{
    struct span_queue *queue = queue_new(&usual);
    struct batch *sent;
    clock_t begin;

    add(queue, 2 * QUEUE_BATCH);
    sent = queue_take(queue);
    queue_set_route(queue, QUEUE_AWAY);
    queue_put_back(queue, take_as_spooler(queue));
    pause_us(1100000); /* until the next try of the disk */
    queue_stop(queue, clock_ms());
    queue_close(queue);
    begin = clock();
    CHECK(queue_take_for_spool(queue, clock_ms() + 300) == NULL && !queue_is_done(queue));
    CHECK((double)(clock() - begin) / CLOCKS_PER_SEC < 0.1);
    queue_finish(queue, sent);
    check_counts(queue, OUTCOME_UNDELIVERED, 2 * QUEUE_BATCH, 0);
    queue_free(queue);
}

static void *take(void *queue)
{
    return queue_take(queue);
}

/* A sender that waits for more spans takes the open batch when none will come in time. */
TEST(test_pause)
{
    struct queue_options options = usual;
    struct span_queue *queue = queue_new(&usual);
    void *batch = NULL;
    int64_t begin_ms = clock_ms();
    pthread_t sender;

    CHECK(pthread_create(&sender, NULL, take, queue) == 0);
    add(queue, 1);
    pause_us(10000); /* usually, the sender waits by then */
    queue_note_pause(queue, QUEUE_LONG + 1);
    CHECK(pthread_join(sender, &batch) == 0 && batch && ((struct batch *)batch)->count == 1);
    CHECK(clock_ms() - begin_ms < QUEUE_LONG / 2);
    queue_note_pause(queue, QUEUE_LONG + 1); /* there is no batch */
    queue_finish(queue, batch);
    queue_free(queue);

    options.batch_timeout_ms = 50;
    queue = queue_new(&options);
    begin_ms = clock_ms();
    add(queue, 1);
    queue_note_pause(queue, 50); /* not longer than the sender waits anyway */
    batch = queue_take(queue);
    CHECK(clock_ms() - begin_ms >= 50);
    queue_finish(queue, batch);
    queue_free(queue);
}

/* After the deadline, spans still go to the spool. Without a spool: fuzz/fuzz-queue.c. */
TEST(test_late)
{
    const int64_t begin_ms = clock_ms();
    struct span_queue *queue = queue_new(&usual);
    struct batch *batch;

    add(queue, 1);
    queue_stop(queue, clock_ms() + QUEUE_LONG);
    CHECK(queue_pause(queue, clock_ms() + QUEUE_LONG,
                      true)); /* the end came after the attempt began */
    queue_stop(queue, clock_ms() - 1);
    CHECK(queue_pause(queue, clock_ms() + QUEUE_LONG, false));
    CHECK(clock_ms() - begin_ms < QUEUE_LONG / 2); /* at once */
    add(queue, 1);
    queue_close(queue);
    batch = take_as_spooler(queue);
    CHECK(batch && batch->count == 2);
    queue_settle(queue, batch, OUTCOME_SPOOLED, 2);
    queue_finish(queue, batch);
    check_counts(queue, OUTCOME_SPOOLED, 2, 0);
    queue_end(queue);
    CHECK(!queue_wait(queue, QUEUE_HAS_ENDED, clock_ms()));
    queue_end(queue);
    CHECK(queue_wait(queue, QUEUE_HAS_ENDED, clock_ms()));
    queue_free(queue);
}

CHECK_MAIN
