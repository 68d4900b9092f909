/*
 * The traces of a partition: the counts are a function of the log, for any reader and any number of
 * kills. test-place.c tests the text of a place.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "seed.h"
#include "spans.h"
#include "tools/work/stage.h"
#include "tools/work/partition.h"

#include <stdio.h>
#include <stdlib.h>

#define PARTITION_WAIT_MS 100

/* ---- a log, and a worker that reads it ------------------------------------------------------- */

struct partition_entry {
    int64_t time_ms;
    struct buffer bytes;
};

/* Does the sum hold? */
static bool adds_up(const struct work_counts *counts)
{
    return counts->spans_in + counts->spans_taken_over ==
           counts->spans_counted + counts->spans_late + counts->spans_over + counts->spans_invalid +
               counts->spans_handed_over + counts->spans_open;
}

#define LOG_MAX 4000

static struct partition_entry entries[LOG_MAX];
static int64_t log_end;

static void clear_log(void)
{
    for (int64_t i = 0; i < log_end; i++)
        buffer_free(&entries[i].bytes);
    log_end = 0;
}

/* Appends a message; ids ends with 0. Spans are numbered in the order of the log. */
static void append_traces(int64_t time_ms, const uint64_t *ids)
{
    static uint64_t number;
    struct partition_entry *entry = &entries[log_end++];

    *entry = (struct partition_entry){.time_ms = time_ms};
    for (; *ids; ids++)
        add_test_span(&entry->bytes, &(struct test_span){.trace_id = *ids,
                                                         .id = ++number,
                                                         .start_ns = 1,
                                                         .duration_ns = 5,
                                                         .service = "osd",
                                                         .name = "write"});
}

#define APPEND(time_ms, ...) append_traces((time_ms), (const uint64_t[]){__VA_ARGS__, 0})

/* The committed counts: for each trace the number of its counted spans, and of its pieces. */
#define TRACES 4096

struct results {
    struct work_counts counts;
    uint32_t spans[TRACES];
    uint32_t pieces[TRACES];
};

struct partition_worker {
    struct work_counts counts;
    struct assembly assembly;
    struct partition partition;
    struct results since;           /* since the last commit */
    struct work_counts last_counts; /* at the last commit */
};

static struct results committed;
static struct place committed_place;

static void on_close(void *context, const struct held_trace *trace)
{
    struct partition_worker *worker = context;
    uint32_t count = 0;

    for (const struct held_span *span = trace->first; span; span = span->next) {
        CHECK(span->span.of == span && held_origin(span)->service.length == 3);
        CHECK(span->raw > span->message->bytes);
        count++;
    }
    CHECK(count == trace->spans);
    worker->since.spans[trace->low % TRACES] += count;
    worker->since.pieces[trace->low % TRACES]++;
}

static void on_late(void *context, const struct trace_span *span)
{
    (void)context;
    CHECK(span->duration_ns == 5);
}

static void start(struct partition_worker *worker)
{
    *worker = (struct partition_worker){.last_counts = {0}};
    worker->assembly = (struct assembly){.wait_ms = PARTITION_WAIT_MS,
                                         .names = names_new(1000, 100000),
                                         .counts = &worker->counts,
                                         .close = on_close,
                                         .late = on_late,
                                         .context = worker};
    assembly_open(&worker->assembly);
    CHECK(partition_open(&worker->partition, &worker->assembly, committed_place));
}

static void commit(struct partition_worker *worker)
{
    const struct work_counts delta = work_counts_since(&worker->counts, &worker->last_counts);
    char text[PLACE_TEXT_MAX];
    struct place place = partition_place(&worker->partition);

    CHECK(adds_up(&worker->counts));
    CHECK(place.watermark >= committed_place.watermark && place.read_to >= place.watermark);
    place_write(&place, text);
    committed_place = place_read(place.watermark, text_of(text));
    CHECK(memcmp(&place, &committed_place, sizeof(place)) == 0);
    work_counts_add(&committed.counts, &delta);
    for (int i = 0; i < TRACES; i++) {
        committed.spans[i] += worker->since.spans[i];
        committed.pieces[i] += worker->since.pieces[i];
    }
    memset(&worker->since, 0, sizeof(worker->since));
    worker->last_counts = worker->counts;
}

/* Stops like a kill: uncommitted work is lost. */
static void stop(struct partition_worker *worker)
{
    partition_close(&worker->partition);
    CHECK(worker->assembly.messages == 0 && worker->counts.open_bytes == 0);
    CHECK(worker->counts.spans_open == 0 && worker->counts.traces_open == 0);
    CHECK(adds_up(&worker->counts));
    assembly_close(&worker->assembly);
    names_free(worker->assembly.names);
}

static void read_one(struct partition_worker *worker)
{
    const int64_t offset = worker->partition.next;

    partition_read(
        &worker->partition,
        &(struct log_message){.offset = offset,
                              .time_ms = entries[offset].time_ms,
                              .bytes = {entries[offset].bytes.data, entries[offset].bytes.length}});
}

static void read_all(struct partition_worker *worker)
{
    while (worker->partition.next < log_end)
        read_one(worker);
}

static void begin(void)
{
    memset(&committed, 0, sizeof(committed));
    committed_place = (struct place){0, 0, 0, 0};
    clear_log();
}

/* ---- a partition that reads a log ------------------------------------------------------------ */

TEST(test_closing)
{
    struct partition_worker worker;

    begin();
    APPEND(1000, 1, 1, 2);
    APPEND(1050, 1, 3);
    APPEND(1099, 2);
    APPEND(1100, 4, 1); /* 1 and 2 are due before it: its span of 1 is late */
    start(&worker);
    read_one(&worker);
    read_one(&worker);
    read_one(&worker);
    CHECK(worker.counts.traces_closed == 0 && worker.counts.spans_open == 6);
    CHECK(partition_place(&worker.partition).watermark == 0 && worker.assembly.messages == 3);
    read_one(&worker);
    CHECK(worker.counts.traces_closed == 2 && worker.counts.spans_counted == 5);
    CHECK(worker.counts.spans_late == 1 && worker.counts.spans_open == 2);
    CHECK(worker.since.spans[1] == 3 && worker.since.spans[2] == 2);
    /* 3 is the oldest trace now; no earlier message is held */
    CHECK(partition_place(&worker.partition).watermark == 1 && worker.assembly.messages == 3);
    CHECK(partition_due_ms(&worker.partition) == 1150);
    partition_pass(&worker.partition, 1149);
    CHECK(worker.since.spans[3] == 0);
    partition_pass(&worker.partition, 1150);
    CHECK(worker.since.spans[3] == 1 && worker.assembly.messages == 1);
    partition_pass(&worker.partition, 1200);
    CHECK(worker.since.spans[4] == 1 && worker.assembly.messages == 0);
    CHECK(partition_place(&worker.partition).watermark == 4);
    CHECK(partition_due_ms(&worker.partition) == INT64_MAX);
    commit(&worker);
    stop(&worker);
}

/* A closed trace is remembered until it has had no span for twice the wait. A later span begins
 * another trace. */
TEST(test_late_and_later)
{
    struct partition_worker worker;

    begin();
    APPEND(1000, 1);
    APPEND(1150, 1);
    APPEND(1349, 1);
    APPEND(1548, 1); /* 199 ms after the one before */
    APPEND(1748, 1);
    start(&worker);
    read_all(&worker);
    CHECK(worker.counts.spans_late == 3 && worker.counts.spans_counted == 1);
    CHECK(worker.counts.spans_open == 1);
    partition_pass(&worker.partition, 2000);
    CHECK(worker.since.pieces[1] == 2);
    stop(&worker);
}

/* A trace that never ends: it has a limited number of spans, and no more memory. */
TEST(test_endless_trace)
{
    struct partition_worker worker;
    uint64_t ids[501];
    uint64_t most = 0;

    begin();
    for (int i = 0; i < 500; i++)
        ids[i] = 1;
    ids[500] = 0;
    for (int i = 0; i < 200; i++)
        append_traces(1000 + i / 10, ids);
    APPEND(1200, 2);
    start(&worker);
    while (worker.partition.next < log_end) {
        read_one(&worker);
        most = worker.counts.open_bytes > most ? worker.counts.open_bytes : most;
    }
    CHECK(worker.counts.spans_over == 100000 - TRACE_SPANS_MAX);
    CHECK(worker.counts.spans_counted == TRACE_SPANS_MAX);
    CHECK(most < 40000000);
    CHECK(adds_up(&worker.counts));
    stop(&worker);
}

TEST(test_relieve)
{
    struct partition_worker worker;

    begin();
    APPEND(1000, 1);
    APPEND(1001, 2);
    APPEND(1002, 1, 3);
    start(&worker);
    read_one(&worker);
    read_one(&worker);
    CHECK(partition_relieve(&worker.partition) && worker.since.spans[1] == 1);
    CHECK(worker.counts.traces_early == 1 && worker.assembly.messages == 1);
    read_one(&worker);
    CHECK(worker.counts.spans_late == 1);
    CHECK(partition_relieve(&worker.partition) && partition_relieve(&worker.partition));
    CHECK(worker.counts.traces_early == 3 && worker.counts.traces_forgotten == 0);
    CHECK(partition_relieve(&worker.partition) && worker.counts.traces_forgotten == 1);
    CHECK(partition_relieve(&worker.partition) && partition_relieve(&worker.partition));
    CHECK(!partition_relieve(&worker.partition) && worker.counts.open_bytes == 0);
    CHECK(adds_up(&worker.counts));
    stop(&worker);
}

TEST(test_invalid_messages)
{
    static const char no_ids[] = {0x0a, 0x06, 0x12, 0x04, 0x12, 0x02, 0x2a, 0x00};
    static const char broken[] = {0x0a, 0x7f, 0x12};
    struct partition_worker worker;

    begin();
    for (int i = 0; i < 2; i++) {
        const char *bytes = i ? broken : no_ids;
        const size_t length = i ? sizeof(broken) : sizeof(no_ids);

        entries[log_end] = (struct partition_entry){.time_ms = 1000};
        CHECK(buffer_reserve(&entries[log_end].bytes, length));
        memcpy(entries[log_end].bytes.data, bytes, length);
        entries[log_end++].bytes.length = length;
    }
    APPEND(900, 1); /* the clock of a new broker */
    APPEND(1100, 2);
    start(&worker);
    read_all(&worker);
    CHECK(worker.counts.messages == 4 && worker.counts.messages_broken == 1);
    CHECK(worker.counts.spans_invalid == 1 && worker.counts.messages_skewed == 1);
    CHECK(worker.since.spans[1] == 1 && worker.counts.spans_open == 1);
    CHECK(adds_up(&worker.counts));
    /* the offsets 2 to 4 are missing */
    worker.partition.next = 2;
    worker.partition.start.read_to = 2;
    worker.counts.offsets_missing = 0;
    entries[5] = entries[3];
    partition_read(&worker.partition,
                   &(struct log_message){.offset = 5, .time_ms = 1100, .bytes = {"", 0}});
    CHECK(worker.counts.offsets_missing == 3);
    stop(&worker);
}

/* ---- workers killed at any time -------------------------------------------------------------- */

/* Makes a log: traces of some spans each, mostly shorter than the wait; some never end. */
static void make_log(uint64_t seed)
{
    uint64_t first = 1, next = 1;
    int64_t time_ms = 1000;

    dice_state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    while (log_end < 600) {
        uint64_t ids[9];
        const int count = 1 + (int)dice(8);

        for (int i = 0; i < count; i++) {
            if (dice(3) == 0)
                next++;
            if (next - first > 30)
                first = next - 30;
            ids[i] = dice(20) == 0 ? 1 : first + dice(next - first + 1);
        }
        ids[count] = 0;
        append_traces(time_ms, ids);
        time_ms += dice(4) ? (int64_t)dice(9) : dice(30) ? 0 : 350;
    }
    APPEND(time_ms + 1000, TRACES - 1);
}

/* Reads the log to its end, with some kills if is_killed. */
static struct results run(uint64_t seed, bool is_killed)
{
    struct partition_worker worker;

    memset(&committed, 0, sizeof(committed));
    committed_place = (struct place){0, 0, 0, 0};
    dice_state = seed + 77;
    start(&worker);
    while (worker.partition.next < log_end) {
        read_one(&worker);
        if (dice(8) == 0)
            commit(&worker);
        if (is_killed && dice(200) == 0) {
            stop(&worker);
            start(&worker);
        }
    }
    commit(&worker);
    stop(&worker);
    return committed;
}

TEST(test_kills)
{
    const char *kills = getenv("KILLS");
    const uint64_t runs = kills ? strtoull(kills, NULL, 10) : 300;
    static struct results calm, killed;

    for (uint64_t seed = 1; seed <= runs; seed++) {
        begin();
        make_log(seed);
        calm = run(seed, false);
        killed = run(seed, true);
        CHECK(calm.counts.spans_in == killed.counts.spans_in);
        CHECK(calm.counts.spans_counted == killed.counts.spans_counted);
        CHECK(calm.counts.spans_late == killed.counts.spans_late);
        CHECK(calm.counts.traces_closed == killed.counts.traces_closed);
        CHECK(calm.counts.messages == killed.counts.messages);
        CHECK(memcmp(calm.spans, killed.spans, sizeof(calm.spans)) == 0);
        CHECK(memcmp(calm.pieces, killed.pieces, sizeof(calm.pieces)) == 0);
        CHECK(killed.counts.spans_in == killed.counts.spans_counted + killed.counts.spans_late + 1);
        if (check_failures) {
            fprintf(stderr, "seed %llu\n", (unsigned long long)seed);
            break;
        }
    }
}

/* ---- kept traces ----------------------------------------------------------------------------- */

static void keep(void *context, const struct held_trace *trace)
{
    struct work_counts counts = {0};

    CHECK(keeper_add(context, trace, &counts));
}

static void on_kept(void *context, const struct otlp_origin *origin, const struct otlp_span *span)
{
    char *kept = context;

    sprintf(kept + strlen(kept), "%d %.*s %.*s,", (int)span->id, (int)origin->schema.length,
            origin->schema.data, (int)origin->scope_schema.length, origin->scope_schema.data);
}

static bool on_message(void *context, uint32_t partition, const char *data, size_t length)
{
    CHECK(partition == 0 && !otlp_decode((struct text){data, length}, on_kept, context).is_broken);
    return true;
}

/* Spans of equal resources that differ in a schema are in different groups, as in the input. */
TEST(test_schemas)
{
    static const char *const schemas[][2] = {
        {"r1", "s1"}, {NULL, "s1"}, {"r1", NULL}, {"r1", "s1"}};
    static const char expected[] = "1 r1 s1,2  s1,3 r1 ,4 r1 s1,";
    char kept[100] = "";
    struct keeper *keeper = keeper_new_topic(1, on_message, kept);
    struct partition_worker worker;

    begin();
    entries[log_end++] = (struct partition_entry){.time_ms = 1000};
    for (unsigned i = 0; i < 4; i++)
        add_test_span(&entries[0].bytes, &(struct test_span){.trace_id = 1,
                                                             .id = i + 1,
                                                             .start_ns = i,
                                                             .service = "osd",
                                                             .name = "write",
                                                             .schema = schemas[i][0],
                                                             .scope_schema = schemas[i][1]});
    APPEND(1000 + 2 * PARTITION_WAIT_MS, 2);
    start(&worker);
    worker.assembly.close = keep;
    worker.assembly.context = keeper;
    read_all(&worker);
    CHECK(keeper_flush(keeper, &(struct error){.text = ""}));
    CHECK_TEXT(kept, expected);
    stop(&worker);
    keeper_free(keeper);
}

CHECK_MAIN_WITH((void)0, clear_log())
