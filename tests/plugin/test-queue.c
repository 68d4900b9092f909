/*
 * The queue with a spool, and with arranged batches, with one thread: which thread gets a batch and
 * when, and up to which position all spans have an outcome. fuzz/fuzz-queue.c compares everything
 * else with a model. Then the spool: when a sender gets a record, bytes, and a disk that fails.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/hash.h"
#include "babeltrace-plugin/deliver/spool.h"
#include "one_thread.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static struct queue_options options;
static struct span_queue *queue;
static struct batch *batches[3]; /* a, b, c */
static struct spool_options spool_options;
static struct spool *spool; /* NULL: none */
static struct spool_record records[3];
static struct error error;

/* ---- the disk: while it works, other threads can lock the spool ---- */

static unsigned stored, failing; /* calls of fsync() and fdatasync(); those that fail */

static int use_disk(void)
{
    if (spool)
        (void)spool_counts(spool);
    stored++;
    errno = EIO;
    return failing && failing-- ? -1 : 0;
}

int __wrap_fsync(int fd);
int __wrap_fsync(int fd)
{
    (void)fd;
    return use_disk();
}

int __wrap_fdatasync(int fd);
int __wrap_fdatasync(int fd)
{
    (void)fd;
    return use_disk();
}

int __real_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags);
int __wrap_unlinkat(int folder, const char *name, int flags)
{
    if (spool)
        (void)spool_counts(spool);
    return __real_unlinkat(folder, name, flags);
}

/* ---- steps ---- */

static void open_queue(void)
{
    queue_free(queue);
    queue = queue_new(&options);
}

/* A batch has two spans. The queue has room for 16, and waits long. */
static void begin(void)
{
    options = (struct queue_options){.batch_spans = 2,
                                     .batch_bytes = 4 * sizeof(struct span),
                                     .batch_timeout_ms = 60000,
                                     .queue_bytes = 16 * sizeof(struct span),
                                     .is_blocking = true,
                                     .has_spool = true,
                                     .threads = 2};
    spool_options = (struct spool_options){
        .format = FORMAT_ZIPKIN, .folder = "spool", .bytes = 1 << 20, .age_ms = 60000};
    still.now_ms = 5000;
    queue = NULL;
    CHECK(chdir(getenv("TMPDIR")) == 0);
    open_queue();
}

/* The spool's batches have any number of spans. */
static void open_spool(void)
{
    options.batch_spans = 1000;
    options.batch_bytes = 1 << 20;
    options.queue_bytes = 1 << 22;
    spool_free(spool);
    open_queue();
    stored = 0;
    spool = spool_open(&spool_options, queue, &error);
    still.woken = 0;
    CHECK(spool != NULL);
}

static void end(void)
{
    spool_free(spool);
    spool = NULL;
    queue_free(queue);
    CHECK(system("rm -rf spool") == 0);
}

/* Returns whether the spool takes a record of 39 + 100 * spans bytes. */
static bool put(uint32_t spans, bool may_drop)
{
    static char content[9600];
    struct batch batch = {.count = spans};
    uint32_t starts[100];

    for (size_t i = 0; i < sizeof(content); i++) /* not compressible */
        content[i] = (char)hash_mix(i);
    for (uint32_t i = 0; i < spans; i++) {
        CHECK(queue_add(queue, &(struct span){.id = 1}) == QUEUE_ADDED);
        starts[i] = 7 + 96 * i;
    }
    return spool_put(spool,
                     &(struct record_body){FORMAT_ZIPKIN, starts, spans, {content, 96 * spans - 1}},
                     &batch, may_drop, &error);
}

static void take(struct spool_record *record)
{
    static const struct encoder encoder = {
        .open = {"[", 1}, .separator = {",", 1}, .close = {"]", 1}};
    static struct body body;

    if (spool_take(spool, record, &encoder, &body, true))
        see("%u at %d; ", record->left, (int)record->where);
    else
        see("none; ");
}

static void see_result(bool is_good)
{
    see("%s; ", is_good ? "yes" : error.text);
}

static void see_batch(const struct batch *batch)
{
    if (batch)
        see("%u from %d; ", batch->count, (int)batch->first);
    else
        see("none; ");
}

static void see_all(void)
{
    struct exporter_counts counts = queue_counts(queue);
    const struct queue_time_limit limit = queue_time_limit(queue);

    if (spool) {
        counts = spool_counts(spool);
        see("%s%d lost, stored %u, sync at %d; ", counts_text(&counts), (int)counts.spool.lost_own,
            stored, (int)clock_earlier(spool_sync_due_ms(spool), 99999));
        return;
    }
    counts.spool.spans = counts.spool.waiting = counts.outcome[OUTCOME_SPOOLED];
    see("%s%d settled, %d taken%s%s%s", counts_text(&counts), (int)queue_settled(queue),
        (int)queue_taken(queue), queue_wait(queue, QUEUE_HAS_ROOM, 0) ? "" : ", full",
        queue_wait(queue, QUEUE_IS_EMPTY, 0) ? ", empty" : "",
        queue_is_done(queue) ? ", done" : "");
    if (limit.stop_ms != CLOCK_NEVER)
        see(", stop at %d", (int)limit.stop_ms);
    see("%s; ", limit.is_limited ? ", limited" : "");
}

/* Takes a step: a word, perhaps the name of a batch, and a number. */
static void step(const char *text)
{
    static const char *const added[] = {"", "full; ", "dropping; "};
    const int64_t begin_ms = still.now_ms;
    char what[20] = "", letter = 'a';
    long number = 0;
    struct batch **batch;
    struct spool_record *record;

    if (sscanf(text, "%19s %ld", what, &number) < 2)
        (void)sscanf(text, "%*s %c %ld", &letter, &number);
    batch = &batches[letter - 'a'];
    record = &records[letter - 'a'];
#define STEP_IS(name) (strcmp(what, name) == 0)
    if (STEP_IS("add"))
        for (; number; number--)
            see("%s", added[queue_add(queue, &(struct span){.trace_id = 1, .id = 2})]);
    else if (STEP_IS("send"))
        see_batch(*batch = queue_take(queue));
    else if (STEP_IS("spool"))
        see_batch(*batch = queue_take_for_spool(queue, begin_ms + number));
    else if (STEP_IS("accept"))
        queue_settle(queue, *batch, OUTCOME_ACCEPTED, (uint32_t)number);
    else if (STEP_IS("spooled"))
        queue_settle(queue, *batch, OUTCOME_SPOOLED, (uint32_t)number);
    else if (STEP_IS("finish"))
        queue_finish(queue, *batch);
    else if (STEP_IS("back"))
        queue_put_back(queue, *batch);
    else if (STEP_IS("direct"))
        queue_set_route(queue, QUEUE_DIRECT);
    else if (STEP_IS("behind"))
        queue_set_route(queue, QUEUE_BEHIND);
    else if (STEP_IS("away"))
        queue_set_route(queue, QUEUE_AWAY);
    else if (STEP_IS("block"))
        queue_set_blocking(queue, number);
    else if (STEP_IS("drain"))
        queue_set_draining(queue, number);
    else if (STEP_IS("stop"))
        queue_stop(queue, begin_ms + number);
    else if (STEP_IS("close"))
        queue_close(queue);
    else if (STEP_IS("end"))
        queue_end(queue);
    else if (STEP_IS("no-spans"))
        queue_note_pause(queue, number);
    else if (STEP_IS("pause"))
        see("%s; ", queue_pause(queue, begin_ms + number) ? "go on" : "over");
    else if (STEP_IS("ended?"))
        see("%s; ", queue_wait(queue, QUEUE_HAS_ENDED, begin_ms + number) ? "yes" : "no");
    else if (STEP_IS("later"))
        still.now_ms += number;
    else if (STEP_IS("all"))
        see_all();
    else if (STEP_IS("put") || STEP_IS("drop-put"))
        see_result(put((uint32_t)number, STEP_IS("drop-put")));
    else if (STEP_IS("take"))
        take(record);
    else if (STEP_IS("answer"))
        spool_settle(spool, record, OUTCOME_ACCEPTED, (uint32_t)number);
    else if (STEP_IS("refuse"))
        spool_settle(spool, record, OUTCOME_INVALID, (uint32_t)number);
    else if (STEP_IS("done"))
        spool_finish(spool, record);
    else if (STEP_IS("no-answer"))
        spool_note_away(spool, number);
    else if (STEP_IS("wait"))
        see_result(spool_wait(spool, begin_ms + number) || error_set(&error, "waits"));
    else if (STEP_IS("pause-of") || STEP_IS("asked-pause-of"))
        see_result(spool_pause(spool, record, begin_ms + number, STEP_IS("asked-pause-of")) ||
                   error_set(&error, "stopped"));
    else if (STEP_IS("stop-spool"))
        spool_stop(spool);
    else if (STEP_IS("sync"))
        see_result(spool_sync(spool, &error));
    else if (STEP_IS("stored?"))
        see_result(spool_is_stored(spool, &error));
    else
        CHECK_TEXT(what, "a step");
    if (still.woken)
        see("%u woken; ", still.woken);
    still.woken = 0;
    if (still.now_ms != begin_ms && !STEP_IS("later"))
        see("%d ms; ", (int)(still.now_ms - begin_ms));
}

/* ---- which thread gets a batch: the spooler, a sender, or none ---- */

/* The graph waits: a collector that is only slow is no reason to spool. */
TEST(test_route_while_blocking)
{
    run("add 2, spool 7, send, finish", "2 woken; none; 7 ms; 2 from 0; 2 woken; ");
    run("add 2, behind, spool 7, send", "2 woken; 3 woken; none; 7 ms; none; ");
    run("stop 9, spool 7, finish", "3 woken; 2 from 2; 4 woken; ");
    run("add 2, close, spool 7, finish, all, spool 7, send",
        "2 woken; 3 woken; 2 from 4; 4 woken; 6 undelivered, 6 settled, 6 taken, empty, done, stop "
        "at 5023, limited; none; none; ");
}

TEST(test_route_away)
{
    run("away, away, add 2, send, spool 7, spooled 2, finish, direct, all",
        "3 woken; 2 woken; none; 2 from 0; 4 woken; 3 woken; 2 spooled, 2 waiting, 2 settled, 2 "
        "taken, empty, limited; ");
}

/* Also with half of the queue full, the spooler gets the next batch. */
TEST(test_route_without_blocking)
{
    run("block 0, add 6, spool 7, add 1, spool 7, send a, send b, send c, all",
        "4 woken; none; 7 ms; none; 7 ms; 2 from 0; 2 from 2; 2 from 4; 7 waiting, 0 settled, 6 "
        "taken; ");
    run("finish a, add 3, spool 7, finish a, finish b, finish c",
        "2 woken; 2 woken; 2 from 6; 2 woken; 2 woken; 2 woken; ");
    run("behind, add 2, spool 7, spooled 2, all", "3 woken; 1 woken; 2 from 8; 8 undelivered, 2 "
                                                  "spooled, 2 waiting, 2 waiting, 10 settled, 10 "
                                                  "taken; ");
}

/* A full queue makes the graph wait, or drops the oldest full batch; not the batches in flight. */
TEST(test_full)
{
    run("add 15, all, add 1, all, add 1, send, add 1, finish, add 2",
        "8 woken; 15 waiting, 0 settled, 0 taken, limited; 1 woken; 16 waiting, 0 settled, 0 "
        "taken, full, limited; full; 2 from 0; full; 2 woken; 1 woken; ");
    run("block 0, add 1, add 1, all",
        "dropping; 1 woken; 2 undelivered, 2 dropped, 16 waiting, 4 settled, 2 taken, full; ");
}

/* A batch that the spooler puts back is the next one that a sender gets: spans keep their order. */
TEST(test_spooler_first)
{
    run("add 4, away, spool 7, direct, @back, send b",
        "3 woken; 3 woken; 2 from 0; 3 woken; 2 woken; 2 from 0; ");
    run("accept b 2, finish b, all",
        "2 woken; 2 accepted, 2 waiting, 2 settled, 4 taken, limited; ");
    /* the spooler tries again after a second, and until then no other batch goes to the spool */
    run("away, later 999, spool 1, spool 2, spooled 1, back, all",
        "3 woken; none; 1 ms; 2 from 2; 2 woken; 2 accepted, 1 spooled, 1 waiting, 1 waiting, 3 "
        "settled, 6 taken, limited; ");
    run("spool 7, stop 20, spool 70, all",
        "none; 7 ms; 3 woken; none; 70 ms; 2 accepted, 1 undelivered, 1 spooled, 1 waiting, 4 "
        "settled, 6 taken, empty, stop at 6027, limited; ");
}

/* Spans get their outcomes in any order. The queue does not know which spans of an arranged batch
 * have their outcome. */
TEST(test_outcomes)
{
    options.has_spool = false;
    for (unsigned i = 0; i < 2; i++) {
        options.is_arranged = i;
        open_queue();
        run("add 4, send a, send b, accept b 2, all",
            "3 woken; 2 from 0; 2 from 2; 2 accepted, 2 waiting, 0 settled, 4 taken, limited; ");
        run("accept a 1, all", i ? "3 accepted, 1 waiting, 0 settled, 4 taken, limited; "
                                 : "3 accepted, 1 waiting, 1 settled, 4 taken, limited; ");
        run("finish b, all, finish a, all",
            i ? "1 woken; 3 accepted, 1 waiting, 0 settled, 4 taken, limited; 1 woken; 3 accepted, "
                "1 undelivered, 4 settled, 4 taken, empty, limited; "
              : "1 woken; 3 accepted, 1 waiting, 1 settled, 4 taken, limited; 1 woken; 3 accepted, "
                "1 undelivered, 4 settled, 4 taken, empty, limited; ");
    }
    queue_count_unsure(queue);
    queue_count_cut(queue, 3);
    queue_count_request(queue, false);
    queue_count_request(queue, true);
    run("all", "3 cut, 3 accepted, 1 undelivered, 3 unsure, 2 "
               "requests, 1 retries, 4 settled, 4 taken, empty, limited; ");
}

/* A batch that is put back contains only the spans that have no outcome. */
TEST(test_put_back)
{
    for (unsigned i = 0; i < 2; i++) {
        options.is_arranged = i;
        open_queue();
        run("away, add 2, spool 7, accept 1, back, direct, send, all, accept 1, finish, all",
            i ? "3 woken; 2 woken; 2 from 0; 2 woken; 3 woken; 1 from 0; 1 accepted, 1 waiting, 0 "
                "settled, 3 taken, limited; 2 woken; 2 accepted, 2 settled, 3 taken, empty, "
                "limited; "
              : "3 woken; 2 woken; 2 from 0; 2 woken; 3 woken; 1 from 1; 1 accepted, 1 waiting, 1 "
                "settled, 3 taken, limited; 2 woken; 2 accepted, 2 settled, 3 taken, empty, "
                "limited; ");
    }
}

/* ---- time ---- */

TEST(test_time)
{
    run("add 1, later 10, send, finish", "1 woken; 1 from 0; 59990 ms; 2 woken; ");
    run("away, add 1, later 10, spool 700, finish",
        "3 woken; 1 woken; 1 from 1; 190 ms; 4 woken; ");
    run("direct, add 1, later 10, stop 40, send, finish",
        "3 woken; 1 woken; 3 woken; 1 from 2; 2 woken; ");
    open_queue();
    run("add 1, later 10, block 0, drain 1, send, all, drain 0, all, finish",
        "1 woken; 3 woken; 1 from 0; 1 waiting, 0 settled, 1 taken, limited; 3 woken; 1 waiting, 0 "
        "settled, 1 taken; 2 woken; ");
    run("add 1, @no-spans 60001, send, finish, no-spans 60001",
        "1 woken; 1 woken; 1 from 1; 2 woken; ");
    run("add 1, no-spans 60000, send, finish", "1 woken; 1 from 2; 60000 ms; 2 woken; ");
}

/* After the deadline, spans still go to the spool. Without a spool: fuzz/fuzz-queue.c. */
TEST(test_late)
{
    run("add 1, stop 60000, stop -1, pause 60000, add 1, spool 7, all, spooled 2, finish, all",
        "1 woken; 3 woken; 3 woken; go on; 1 woken; 2 from 0; 2 waiting, 0 settled, 2 taken, stop "
        "at 4999, limited; 4 woken; 2 spooled, 2 waiting, 2 settled, 2 taken, empty, stop at 4999, "
        "limited; ");
    run("end, ended? 5, end, ended? 5", "1 woken; no; 5 ms; 1 woken; yes; ");
    options.threads = 3;
    open_queue();
    run("add 2, away, spool 7, @drain 1, pause 60000, pause 50, @stop 30, pause 60000, pause 60000",
        "2 woken; 3 woken; 2 from 0; 3 woken; go on; go on; 50 ms; 3 woken; go on; 30 ms; go on; ");
    run("back, all, pause 60000, close, spool 7, all, end, end, ended? 0, end, ended? 5",
        "2 woken; 2 undelivered, 2 settled, 2 taken, empty, stop at 5085, limited; over; 3 woken; "
        "none; 2 undelivered, 2 settled, 2 taken, empty, done, stop at 5085, limited; 1 woken; 1 "
        "woken; no; 1 woken; yes; ");
}

/* The spooler has written some spans of a batch in the order of arrival, because it had no memory
 * to sort them. A sender sends exactly the other spans. */
TEST(test_arrange_remaining)
{
    static const struct endpoint endpoints[] = {{.service = {"s", 1}}, {.service = {"t", 1}}};
    struct batch_list list = {.batch_spans = 6, .batch_bytes = 4096};

    for (unsigned done = 0; done < 3; done += 2) {
        struct batch *batch;
        const struct span *span;
        unsigned sent = 0;

        for (uint64_t i = 1; i <= 6; i++)
            CHECK(batch_list_add(&list, &(struct span){.id = i, .endpoint = &endpoints[i % 2]}, i));
        batch = batch_list_take(&list, false);
        for (unsigned i = 0; i < done; i++, batch->count--)
            CHECK(batch_span(batch, &batch->next_span) != NULL);
        batch_arrange(batch);
        while (batch_has_more(batch) && (span = batch_span(batch, &batch->next_span)))
            sent = sent * 10 + (unsigned)span->id;
        CHECK(sent == (done ? 3456 : 135246));
        batch_list_recycle(&list, batch);
    }
    batch_list_clear(&list);
}

/* ---- the spool ---- */

TEST(test_records)
{
    open_spool();
    run("all, put 3, later 10, put 2, all",
        "0 lost, stored 1, sync at 99999; yes; 5 woken; yes; 1 woken; 5 spooled, 5 waiting, 578 "
        "bytes, 0 lost, stored 2, sync at 6000; ");
    run("take a, take b, refuse a 1, all, answer a 2, done a, answer b 2, all",
        "3 at 0; 2 at 339; 5 spooled, 1 invalid, 4 waiting, 578 bytes, 1 lost, stored 2, sync at "
        "6000; 1 woken; 4 woken; 5 spooled, 4 delivered, 1 invalid, 578 bytes, 1 lost, stored 2, "
        "sync at 6000; ");
    run("done b, take a, all, put 1, all, sync, all, sync, put 4, all",
        "1 woken; none; 5 spooled, 4 delivered, 1 invalid, 1 lost, stored 2, sync at 6000; yes; 4 "
        "woken; 6 spooled, 4 delivered, 1 invalid, 1 waiting, 139 bytes, 1 lost, stored 3, sync at "
        "6000; yes; 6 spooled, 4 delivered, 1 invalid, 1 waiting, 139 bytes, 1 lost, stored 4, "
        "sync at 99999; yes; yes; 1 woken; 10 spooled, 4 delivered, 1 invalid, 5 waiting, 578 "
        "bytes, 1 lost, stored 4, sync at 6010; ");
    run("take a, take b, answer a 1, done b, done a, all",
        "1 at 0; 4 at 139; 1 woken; 1 woken; 10 spooled, 5 delivered, 1 invalid, 4 waiting, 578 "
        "bytes, 1 lost, stored 4, sync at 6010; ");
}

/* One sender retries for all, but an answer to another sender ends its pause, unless the peer has
 * asked for the pause. */
TEST(test_pauses)
{
    open_spool();
    run("put 1, put 9, put 1, take a, take b, take c",
        "yes; 5 woken; yes; 1 woken; yes; 1 woken; 1 at 0; 9 at 139; 1 at 1078; ");
    run("pause-of a 70, pause-of c 70, asked-pause-of c 70, @answer b 1, pause-of a 9000",
        "yes; 70 ms; yes; 5000 ms; yes; 70 ms; yes; 100 ms; ");
    run("pause-of c 60, pause-of a 70, @answer b 1, asked-pause-of a 9000",
        "yes; 60 ms; yes; 5000 ms; yes; 9000 ms; ");
    run("@answer b 1, pause-of c 60, pause-of c 50, done c, pause-of a 90",
        "yes; 60 ms; yes; 50 ms; 1 woken; yes; 90 ms; ");
    run("@stop-spool, pause-of a 90, take c, wait 9, done a, done b",
        "1 woken; stopped; none; yes; 1 woken; 1 woken; ");
}

/* While the collector is away, one sender at a time has a record, and none in a pause. */
TEST(test_away)
{
    open_spool();
    run("wait 700, put 1, put 1, put 1, wait 700, take b, no-answer 0, wait 998, no-answer 0",
        "yes; yes; 5 woken; yes; 1 woken; yes; 1 woken; waits; 700 ms; 1 at 0; 3 woken; waits; 998 "
        "ms; ");
    run("wait 1, wait 1, wait 700, @answer b 1, take a, wait 700, done b",
        "waits; 1 ms; yes; 1 ms; yes; 4 woken; 1 at 139; waits; 700 ms; 1 woken; ");
    run("no-answer 400, no-answer 300, answer a 1, done a, no-answer 0, take a, all",
        "3 woken; 4 woken; 1 woken; 3 woken; 1 at 278; 400 ms; 3 spooled, 2 delivered, 1 waiting, "
        "417 bytes, 0 lost, stored 2, sync at 6000; ");
    CHECK(spool_is_away(spool) && !spool_is_stopped(spool));
}

/* A record in flight keeps its spans when its file goes. */
TEST(test_full_spool)
{
    spool_options.bytes = 478;
    open_spool();
    run("put 2, put 2, take a, answer a 1, put 1, drop-put 5, all",
        "yes; 5 woken; yes; 1 woken; 2 at 0; the spool \"spool\" is full: spool-bytes allows 478 "
        "bytes; the spool \"spool\" is full: spool-bytes allows 478 bytes; 4 spooled, 6 waiting, 1 "
        "delivered, 3 waiting, 478 bytes, 0 lost, stored 2, sync at 6000; ");
    run("drop-put 2, all, done a, all",
        "yes; 1 woken; 6 spooled, 6 waiting, 1 delivered, 2 dropped, 3 waiting, 239 bytes, 2 lost, "
        "stored 3, sync at 6000; 1 woken; 6 spooled, 6 waiting, 1 delivered, 3 dropped, 2 waiting, "
        "239 bytes, 3 lost, stored 3, sync at 6000; ");
}

TEST(test_disk_fails)
{
    open_spool();
    run("put 2", "yes; 5 woken; ");
    failing = 1;
    run("stored?, sync, sync, stored?, all",
        "yes; the spool \"spool\" cannot be stored: Input/output error; yes; some of the 2 spans "
        "in the spool \"spool\" may not be on disk: fsync failed; 2 spooled, 2 waiting, 1 errors, "
        "239 bytes, 0 lost, stored 3, sync at 99999; ");
    spool_options.fsync = SPOOL_FSYNC_BATCH;
    open_spool();
    failing = 1; /* of the folder */
    run("put 1, all",
        "the spool \"spool\" cannot be written: Input/output error; 1 woken; 1 waiting, 2 waiting, "
        "2 found, 1 errors, 239 bytes, 0 lost, stored 1, sync at 99999; ");
    run("put 4, all", "yes; 1 woken; 4 spooled, 1 waiting, 6 waiting, 2 found, 1 errors, 678 "
                      "bytes, 0 lost, stored 3, sync at 99999; ");
    failing = 1; /* of the file */
    run("put 1, put 1, stored?, all",
        "the spool \"spool\" cannot be written: Input/output error; yes; 1 woken; yes; 5 spooled, "
        "2 waiting, 7 waiting, 2 found, 2 errors, 817 bytes, 0 lost, stored 5, sync at 99999; ");
    spool_options.fsync = SPOOL_FSYNC_NEVER;
    open_spool();
    run("put 1, sync, all", "yes; 2 woken; yes; 1 spooled, 8 waiting, 7 found, 956 bytes, 0 lost, "
                            "stored 0, sync at 99999; ");
}

static void check_refused(const char *folder, const char *message)
{
    struct spool_options wrong = spool_options;

    wrong.folder = folder;
    CHECK(!spool_open(&wrong, queue, &error));
    CHECK_TEXT(error.text, message);
}

TEST(test_folder)
{
    static const unsigned modes[] = {0720, 0702, 0755};
    char message[200];

    open_spool();
    check_refused("", "spool: expected the path of a folder, got an empty text");
    check_refused("/proc/s", "spool \"/proc/s\": cannot be made: No such file or directory");
    check_refused("/etc/passwd", "spool \"/etc/passwd\": expected a folder: Not a directory");
    check_refused("spool",
                  "spool \"spool\": another sink uses it: give each sink a folder of its own");
    for (unsigned i = 0; i < (geteuid() == 0 ? 3 : 2); i++) {
        const uid_t user = i < 2 ? geteuid() : 65534;

        CHECK(chmod("spool", modes[i]) == 0 && chown("spool", user, (gid_t)-1) == 0);
        (void)snprintf(message, sizeof(message),
                       "spool \"spool\": expected a folder of the user who runs this, which nobody "
                       "else can write, but it belongs to user %u and has mode %o",
                       user, modes[i]);
        check_refused("spool", message);
    }
    CHECK(chown("spool", geteuid(), (gid_t)-1) == 0 && unlink("spool/lock") == 0);
    CHECK(chmod("spool", 0700) == 0 && mkdir("spool/lock", 0700) == 0);
    check_refused("spool", "spool \"spool\": cannot be written: Is a directory");
}

/* Leaves this number of descriptors; -1: all. */
static void limit_descriptors(int count)
{
    struct rlimit limit;
    int next = 0;

    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0 && (next = dup(0)) > 0 && close(next) == 0);
    limit.rlim_cur = (rlim_t)(next + count);
    CHECK(count < 0 || setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void free_descriptors(void)
{
    limit_descriptors(-1);
}

/* A file that cannot be opened now is not lost: a start reports it, and a sender tries again. */
TEST(test_no_descriptors)
{
    open_spool();
    run("put 2", "yes; 5 woken; ");
    spool_free(spool);
    spool = NULL;
    limit_descriptors(3); /* for the folder, twice, and the lock */
    check_refused("spool", "spool \"spool\": cannot be read: Too many open files");
    free_descriptors();
    open_spool();
    limit_descriptors(0);
    still.other = free_descriptors;
    run("take a, all, answer a 2, done a, all",
        "2 at 0; 3 woken; 1000 ms; 2 waiting, 2 found, 239 bytes, 0 lost, stored 0, sync at 99999; "
        "5 woken; 1 woken; 2 delivered, 2 found, 239 bytes, 0 lost, stored 0, sync at 99999; ");
    limit_descriptors(0);
    run("put 1", "the spool \"spool\" cannot be written: Too many open files; 1 woken; ");
    free_descriptors();
}

CHECK_MAIN_WITH((take_step = step, check_before = begin, check_after = end), (void)0)
