/*
 * The main sender with one thread: a text has the peer's answers, and a text all that the sender
 * sends, says and counts. The clock moves by 10 ms with each request, and by 1 ms with each probe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/array.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/deliver/send.h"
#include "one_thread.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *answers, *probe_answers;            /* a letter each; the last one repeats */
static struct transport_reply *waiting[SENT_TOGETHER]; /* for await() */
static uint32_t waiting_count;
static struct error last_message, error;
static struct spool_options spool_options;
static struct span_queue *queue;
static struct spool *spool;
static struct sender sender;
static struct batch *others_batch; /* another sender spools it before the next answers arrive */

/* ---- the peer ---- */

static struct transport_reply answer(const char **letters)
{
    static const struct {
        char letter;
        struct transport_reply reply;
    } all[] = {
        {'a', {.outcome = OUTCOME_ACCEPTED}},
        {'r', {.outcome = OUTCOME_ACCEPTED, .rejected = 1, .error = {"why"}}},
        {'R', {.outcome = OUTCOME_ACCEPTED, .rejected = 1000, .error = {"why"}}},
        {'w', {.outcome = OUTCOME_ACCEPTED, .error = {"why"}}}, /* warns */
        {'i', {.outcome = OUTCOME_INVALID, .error = {"why"}}},
        {'t', {.outcome = OUTCOME_TOO_LARGE, .error = {"why"}}},
        {'x', {.outcome = OUTCOME_REFUSED, .error = {"why"}}},
        {'p', {.outcome = OUTCOME_POSSIBLY_PERSISTED, .error = {"why"}}},
        {'n', {.outcome = OUTCOME_AGAIN, .error = {"why"}}}, /* not now */
        {'b', {.outcome = OUTCOME_AGAIN, .may_be_batch = true, .error = {"why"}}},
        {'m', {.outcome = OUTCOME_AGAIN, .is_misplaced = true, .error = {"why"}}},
        {'s', {.outcome = OUTCOME_AGAIN, .retry_after_ms = 50, .error = {"why"}}},
        {'S', {.outcome = OUTCOME_AGAIN, .retry_after_ms = 5000, .error = {"why"}}},
    };
    const char letter = **letters;
    size_t i = 0;

    while (all[i].letter != letter)
        i++;
    *letters += (*letters)[1] != '\0';
    see("%c ", letter);
    return all[i].reply;
}

static void probe(struct transport *transport, struct transport_reply *reply)
{
    (void)transport;
    still.now_ms++;
    see("?");
    *reply = answer(&probe_answers);
}

/* Shows the numbers of the first and the last span. */
static void send_one(struct transport *transport, const struct payload *payload,
                     struct transport_reply *reply)
{
    const char *at = payload->text.data, *end = at + payload->text.length;
    unsigned first = 0, last = 0;

    CHECK(at[0] == '[' && end[-1] == ']');
    for (; (at = memmem(at, (size_t)(end - at), "\"id\":\"", 6)); at++) {
        last = (unsigned)strtoul(at + 6, NULL, 16);
        first = first ? first : last;
    }
    see(transport->await ? "%u-%u " : "%u-%u", first, last);
    still.now_ms += 10;
    if (transport->await)
        waiting[waiting_count++] = reply;
    else
        *reply = answer(&answers);
}

/* A peer that has a partition for each span. */
static bool arrange(struct transport *transport, const struct encoder *encoder, struct body_run run,
                    size_t bytes, struct arranged *arranged)
{
    (void)transport;
    CHECK(bytes == sender.options.body_bytes);
    body_reset(&arranged->body);
    arranged->count = 0;
    for (uint32_t i = run.first; i < run.end; i++) {
        CHECK(ARRAY_FITS(arranged->runs, arranged->runs_room, arranged->count));
        arranged->runs[arranged->count] = (struct body_run){.body = &arranged->body,
                                                            .first = arranged->count,
                                                            .end = arranged->count + 1,
                                                            .is_arranged = true};
        arranged->count++;
        CHECK(body_append(&arranged->body, encoder, (struct text){NULL, 0},
                          body_unit(run.body, encoder, i)));
    }
    return true;
}

static void await(struct transport *transport)
{
    static const uint32_t starts[] = {0, 11};
    const struct record_body two = {FORMAT_ZIPKIN, starts, 2, {"first span,last span", 20}};

    (void)transport;
    if (others_batch) {
        CHECK(spool_put(spool, &two, others_batch, false, &error));
        queue_finish(queue, others_batch);
    }
    others_batch = NULL;
    see(": ");
    for (uint32_t i = 0; i < waiting_count; i++)
        *waiting[i] = answer(&answers);
    waiting_count = 0;
}

static bool finish(struct transport *transport, struct error *cause)
{
    (void)transport;
    return error_set(cause, ", not stored");
}

/* ---- the sender ---- */

static void report(void *context, const char *message)
{
    (void)context;
    see("%.6s ", message);
    (void)snprintf(last_message.text, sizeof(last_message.text), "%s", message);
}

static void add(unsigned count)
{
    static const struct endpoint endpoint = {.service = {"s", 1}};

    for (uint64_t i = 1; i <= count; i++)
        CHECK(queue_add(queue, &(struct span){.trace_id = 7, .id = i, .endpoint = &endpoint}) ==
              QUEUE_ADDED);
}

static void open_spool(bool has_spool, bool is_blocking)
{
    queue = queue_new(&(struct queue_options){.batch_spans = 4,
                                              .batch_bytes = 1 << 20,
                                              .batch_timeout_ms = 1000,
                                              .queue_bytes = 1 << 20,
                                              .is_blocking = is_blocking,
                                              .has_spool = has_spool,
                                              .threads = 1});
    spool = has_spool ? spool_open(&spool_options, queue, &error) : NULL;
    CHECK(spool || !has_spool);
}

static void close_spool(void)
{
    spool_free(spool);
    queue_free(queue);
}

/* Features: 'l': the trace is live, 'e': delivery ends after 70 ms, 'p': the peer has partitions,
 * 'f': its end fails, 'b': a body has three spans, 'o': another sender has a batch of 2 spans
 * (other batches have 4), 's': there is a spool, 'k': with the spans of the last case, 'w': the
 * spooler. */
static void check(const char *features, unsigned spans, const char *given, const char *given_probes,
                  const char *expected)
{
#define CASE_HAS(feature) (strchr(features, feature) != NULL)
    struct reporter reporter = {.report = report};
    struct transport transport = {.probe = probe,
                                  .send = send_one,
                                  .arrange = CASE_HAS('p') ? arrange : NULL,
                                  .await = CASE_HAS('p') ? await : NULL,
                                  .finish = CASE_HAS('f') ? finish : NULL};
    const int64_t begin_ms = still.now_ms;
    struct exporter_counts counts;

    seen[0] = '\0';
    answers = given;
    probe_answers = given_probes;
    CHECK(CASE_HAS('k') || system("rm -rf spool") == 0);
    open_spool(CASE_HAS('s'), !CASE_HAS('l'));
    if (CASE_HAS('o')) {
        add(2);
        queue_note_pause(queue, 2000);
        others_batch = queue_take(queue);
    }
    add(spans);
    queue_close(queue);
    if (CASE_HAS('e'))
        queue_stop(queue, still.now_ms + 70);
    if (CASE_HAS('w')) {
        spool_note_away(spool, 0);
        queue_set_route(queue, QUEUE_AWAY);
    }
    sender = (struct sender){.options = {.protocol = &zipkin_protocol,
                                         .queue = queue,
                                         .spool = spool,
                                         .reporter = &reporter,
                                         .retry_timeout_ms = 100,
                                         .body_bytes = CASE_HAS('b') ? 300 : 1 << 20},
                             .work = CASE_HAS('w') ? WORK_SPOOL : WORK_MAIN,
                             .transport = &transport,
                             .encoder = zipkin_protocol.encoder_new(),
                             .replies = calloc(SENT_TOGETHER, sizeof(struct transport_reply))};
    (void)sender_run(&sender);
    CHECK(queue_wait(queue, QUEUE_HAS_ENDED, 0));
    CHECK(queue_wait(queue, QUEUE_HAS_BEGUN, 0) == !CASE_HAS('w'));
    counts = spool ? spool_counts(spool) : queue_counts(queue);
    counts.spool.bytes = 0; /* zlib decides */
    see("| %s%d ms", counts_text(&counts), (int)(still.now_ms - begin_ms));
    if (queue_has_failed(queue, &error))
        see(", failed: %s", error.text);
    see("%s", sender.error.text);
    if (strcmp(seen, expected) != 0)
        fprintf(stderr, "%s %u %s %s:\n", features, spans, given, given_probes);
    CHECK_TEXT(seen, expected);
    sender.encoder->free(sender.encoder);
    body_destroy(&sender.body);
    arranged_free(&sender.spare);
    free(sender.replies);
    close_spool();
}

TEST(test_answers)
{
    check("", 6, "a", "a", "?a 1-4a 5-6a | 6 accepted, 2 requests, 21 ms");
    check("f", 2, "a", "n", "?n 1-2a | 2 accepted, 2 unsure, 1 requests, 11 ms, not stored");
    check("", 4, "r", "a", "?a 1-4r BK8004 | 3 accepted, 1 refused, 1 requests, 11 ms");
    CHECK_TEXT(last_message.text, "BK8004 1 of 4 spans refused: why");
    check("", 4, "R", "a", "?a 1-4R BK8004 | 4 refused, 1 requests, 11 ms");
    check("", 4, "w", "a", "?a 1-4w BK8005 | 4 accepted, 1 requests, 11 ms");
    check("", 4, "p", "a", "?a 1-4p BK8008 | 4 possibly_persisted, 1 requests, 11 ms");
    check("", 4, "x", "a", "?a 1-4x ?a 1-4x BK8004 | 4 refused, 2 requests, 1 retries, 22 ms");
    check("", 4, "xa", "a", "?a 1-4x ?a 1-4a | 4 accepted, 2 requests, 1 retries, 22 ms");
}

/* The peer refuses spans: halves, until each span has its answer. */
TEST(test_halves)
{
    check("", 4, "iaai", "a",
          "?a 1-4i ?a 1-2a 3-3a 4-4i BK8006 | 3 accepted, 1 invalid, 4 requests, 42 ms");
    check("", 4, "iiiaiiia", "a",
          "?a 1-4i ?a 1-2i 1-1i BK8006 2-2a 3-4i 3-3i 4-4i | 1 accepted, 3 invalid, 7 requests, 72 "
          "ms");
    check("", 1, "i", "a", "?a 1-1i ?a 1-1i BK8006 | 1 invalid, 2 requests, 1 retries, 22 ms");
    CHECK_TEXT(last_message.text,
               "BK8006 span refused: why; the span is "
               "{\"traceId\":\"0000000000000007\",\"id\":\"0000000000000001\",\"local...");
    check("", 4, "tatta", "a",
          "?a 1-4t 1-2a 3-4t 3-3t BK8007 4-4a | 3 accepted, 1 too_large, 5 requests, 51 ms");
    CHECK(sender.options.body_bytes == 4096);
    check("", 4, "iain", "a",
          "?a 1-4i ?a 1-2a 3-3i BK8006 4-4n BK8001 4-4n 4-4n 4-4n 4-4n 4-4n 4-4n 4-4n 4-4n 4-4n "
          "4-4n BK8003 | 2 accepted, 1 invalid, 1 undelivered, 14 requests, 10 retries, 142 ms, "
          "failed: why");
    check("", 4, "ini", "aan",
          "?a 1-4i ?a 1-2n BK8001 1-2i BK8002 1-1i BK8006 2-2i 3-4i 3-3i 4-4i | 4 invalid, 8 "
          "requests, 1 retries, 82 ms");
}

TEST(test_again)
{
    check("", 4, "na", "a",
          "?a 1-4n BK8001 1-4a BK8002 | 4 accepted, 2 requests, 1 retries, 21 ms");
    check("", 8, "n", "a",
          "?a 1-4n BK8001 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n BK8003 | 8 "
          "undelivered, 11 requests, 10 retries, 111 ms, failed: why");
    check("", 4, "sa", "a",
          "?a 1-4s BK8001 1-4a BK8002 | 4 accepted, 2 requests, 1 retries, 71 ms");
    check("", 4, "S", "a",
          "?a 1-4S BK8003 | 4 undelivered, 1 requests, 11 ms, failed: why; the collector asks for "
          "a longer pause (Retry-After) than retry-timeout-ms leaves");
    CHECK_TEXT(last_message.text, "BK8003 spans undelivered: why; the collector asks for a longer "
                                  "pause (Retry-After) than retry-timeout-ms leaves");
    check("le", 4, "S", "a", "?a 1-4S BK8003 | 4 undelivered, 1 requests, 11 ms");
    CHECK_TEXT(last_message.text, "BK8003 spans undelivered: why; the collector asks for a longer "
                                  "pause (Retry-After) than flush-timeout-ms leaves");
    check("le", 4, "n", "a",
          "?a 1-4n BK8001 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n BK8003 | 4 undelivered, 7 requests, 6 "
          "retries, 71 ms");
    check("l", 8, "bbbbbbbbbbbbba", "a",
          "?a 1-4b BK8001 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b ?a 1-4b BK8003 5-8b "
          "5-8a BK8002 | 4 accepted, 4 undelivered, 14 requests, 12 retries, 142 ms");
    check("l", 4, "bbbbbbbbbbbbbbbbba", "anana",
          "?a 1-4b BK8001 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b ?n 1-4b 1-4b 1-4b 1-4b "
          "1-4b 1-4b 1-4a BK8002 | 4 accepted, 18 requests, 17 retries, 182 ms");
    check("", 4, "xnxa", "anna",
          "?a 1-4x ?n BK8001 1-4n 1-4x ?n 1-4a BK8002 | 4 accepted, 4 requests, 3 retries, 43 ms");
}

TEST(test_spool)
{
    check("s", 4, "a", "a", "?a 1-4a | 4 accepted, 1 requests, 11 ms");
    check("s", 8, "nnnia", "a",
          "?a 1-4n BK8010 1-4n BK8001 1-4n 1-4i ?a BK8002 1-2a 3-3a 4-4a 5-8a | 4 accepted, 4 "
          "spooled, 4 delivered, 8 requests, 2 retries, 82 ms");
    check("s", 4, "ntta", "a",
          "?a 1-4n BK8010 1-4t 1-2t 1-1a 2-2a 3-4a | 4 spooled, 4 delivered, 6 requests, 61 ms");
    check("s", 4, "sna", "a",
          "?a 1-4s BK8010 1-4n BK8001 1-4a BK8002 | 4 spooled, 4 delivered, 3 requests, 1 retries, "
          "81 ms");
    check("bs", 4, "na", "a",
          "?a 1-3n BK8010 1-3a 4-4a | 4 spooled, 4 delivered, 3 requests, 31 ms");
    check("lsp", 4, "aana", "a",
          "?a 1-1 2-2 3-3 4-4 : a a n a BK8010 3-3 : a | 3 accepted, 1 spooled, 1 delivered, 5 "
          "requests, 51 ms");
    check("s", 8, "nbbbbbbbbbbbbba", "a",
          "?a 1-4n BK8010 1-4b BK8001 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b 1-4b ?a 1-4b "
          "BK8003 5-8b 5-8a BK8002 | 8 spooled, 4 delivered, 4 undelivered, 15 requests, 11 "
          "retries, 152 ms"); /* gives up the record, not the next batch */
    spool_options.bytes = 9;
    check("s", 4, "n", "a",
          "?a 1-4n BK8010 BK8011 BK8001 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n 1-4n BK8003 | "
          "4 undelivered, 11 requests, 10 retries, 111 ms, failed: why");
    check("sw", 6, "a", "a",
          "BK8011 | 6 undelivered, 1000 ms, failed: the spool \"spool\" is full: spool-bytes "
          "allows 9 bytes");
    check("lswe", 6, "a", "a", "BK8011 | 6 undelivered, 70 ms");
}

/* ---- spans that wait in the spool ---- */

#define FIRST_FILE "spool/0000000000000000.spool"

/* Changes a byte of the first file. */
static void flip(long at)
{
    const int fd = open(FIRST_FILE, O_RDWR);
    char byte;

    CHECK(pread(fd, &byte, 1, at) == 1);
    byte = (char)~byte;
    CHECK(pwrite(fd, &byte, 1, at) == 1 && close(fd) == 0);
}

static long size_of_first(void)
{
    struct stat status;

    return stat(FIRST_FILE, &status) == 0 ? status.st_size : -1;
}

TEST(test_found)
{
    check("sw", 6, "a", "a", "| 6 spooled, 6 waiting, 0 ms");
    check("skw", 3, "a", "a", "| 3 spooled, 9 waiting, 6 found, 0 ms");
    CHECK(mkdir("spool/00000000000000fe.spool", 0700) == 0);
    CHECK(close(open("spool/00000000000000ff.spool", O_CREAT | O_WRONLY, 0600)) == 0);
    check("skw", 1, "a", "a", "| 1 spooled, 10 waiting, 9 found, 0 ms");
    CHECK(access("spool/0000000000000100.spool", F_OK) == 0);
    check("skl", 1, "aia", "a",
          "?a 1-4a 5-6i ?a 5-5a 6-6a 1-3a 1-1a 1-1a | 1 accepted, 10 delivered, 10 found, 7 "
          "requests, 72 ms");
    CHECK(size_of_first() == -1 && access("spool/0000000000000100.spool", F_OK) != 0);
    check("sk", 0, "a", "a", "?a | 1 ms");
}

TEST(test_damage)
{
    long first;

    check("sw", 4, "a", "a", "| 4 spooled, 4 waiting, 0 ms");
    first = size_of_first();
    check("sw", 16, "a", "a", "| 16 spooled, 16 waiting, 0 ms");
    flip(first - 1);  /* the text of a record */
    flip(first + 20); /* the head of the next one */
    CHECK(truncate(FIRST_FILE, size_of_first() - 1) == 0);
    check("sk", 0, "a", "a",
          "?a 9-12a BK8012 | 4 delivered, 8 corrupt, 12 found, 1 unreadable, 1 requests, 11 ms");
    CHECK(size_of_first() == -1);
}

/* A step of the wall clock, and the time while the host is off, make no record older. */
TEST(test_age)
{
    FILE *lock;

    check("sw", 1, "a", "a", "| 1 spooled, 1 waiting, 0 ms");
    still.asleep_ms += 60000;
    still.wall_ms = 5;
    check("skw", 2, "a", "a", "| 2 spooled, 3 waiting, 1 found, 0 ms");
    still.now_ms++;
    check("skw", 2, "a", "a",
          "BK8012 | 2 spooled, 1 expired, 4 waiting, 3 found, 0 ms"); /* drops the file */
    still.now_ms += 59999;
    check("sk", 0, "a", "a", "?a 1-2a BK8012 | 2 delivered, 2 expired, 4 found, 1 requests, 11 ms");
    check("sw", 3, "a", "a", "| 3 spooled, 3 waiting, 0 ms");
    still.now_ms = 20;
    lock = fopen("spool/lock", "we");
    CHECK(fputs("another-boot 1700000000000, and more", lock) >= 0 && fclose(lock) == 0);
    check("skw", 2, "a", "a", "| 2 spooled, 5 waiting, 3 found, 0 ms");
    still.now_ms += 59999;
    check("sk", 0, "a", "a", "?a 1-3a | 3 delivered, 2 expired, 5 found, 1 requests, 11 ms");
}

/* A message for each span: all are sent before the answers arrive. */
TEST(test_partitions)
{
    check("p", 4, "aaaa", "a", "?a 1-1 2-2 3-3 4-4 : a a a a | 4 accepted, 4 requests, 41 ms");
    check("p", 4, "anaxma", "a",
          "?a 1-1 2-2 3-3 4-4 : a n a x BK8001 2-2 : m BK8002 2-2 : a ?a 4-4 : a | 4 accepted, 7 "
          "requests, 2 retries, 72 ms");
    check("psol", 4, "aaaa", "a",
          "?a 1-1 2-2 3-3 4-4 : a a a a 0-0 0-0 : a a | 4 accepted, 2 spooled, 2 delivered, 6 "
          "requests, 61 ms");
}

static void begin(void)
{
    spool_options = (struct spool_options){
        .format = FORMAT_ZIPKIN, .folder = "spool", .bytes = 1 << 20, .age_ms = 60000};
    still.now_ms = 5000;
    still.asleep_ms = 30;
    still.wall_ms = INT64_C(1700000000000);
    CHECK(chdir(getenv("TMPDIR")) == 0);
}

static void end(void)
{
    CHECK(system("rm -rf spool") == 0);
}

CHECK_MAIN_EACH(begin, end)
