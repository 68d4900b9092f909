/*
 * What a worker itself does with a span: the messages of the load (see tests/scale/traces.h) go
 * through its stage, in the order and with the times of a log, without Kafka. Beside it the CPU
 * time there are, per span, the page faults; first with fresh memory, then with the memory of the
 * rounds before.
 *
 *     bench-stage [SPANS [ROUNDS [chain]]]
 *     valgrind --tool=callgrind --toggle-collect=read_log build/tests/scale/bench-stage
 * 200000 1
 *
 * Prints "NAME NS FAULTS" for the first round and for the best of the others. With "chain" each
 * span also passes five stages of the sink's chain that let all pass, for which it is decoded: what
 * a worker would pay for using that.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "traces.h"
#include "babeltrace-plugin/stages/chain.h"
#include "tools/work/heap.h"
#include "tools/work/stage.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define PARTITIONS    12
#define RATE          400000 /* spans a second */
#define MESSAGE_SPANS 500
#define FLUSH_MS      50
#define SPREAD_MS     100 /* between a trace's first service and its last one */
#define WINDOW        (1U << 16)
#define TRACE_SPANS   7.5
#define WAIT_MS       3000
#define HEAP          ((size_t)512 << 20)
#define COMMIT_MS     1000
#define EPOCH_MS      INT64_C(1735732800000)

struct entry {
    int64_t time_ms;
    char *bytes;
    size_t length;
    unsigned partition;
    unsigned spans;
};

static struct entry *entries;
static size_t entries_count, entries_room;
static uint64_t spans;

static void fail(const char *what)
{
    (void)fprintf(stderr, "bench-stage: %s\n", what);
    exit(1);
}

/* ---- the log --------------------------------------------------------------------------------- */

struct filling {
    size_t length;
    unsigned spans;
    int64_t since_ms;
    char bytes[OPENING_MAX + MESSAGE_SPANS * (PIECE_MAX / PIECE_SPANS) + PIECE_MAX];
};

static struct filling fillings[SERVICES][PARTITIONS];
static struct trace window[WINDOW];
static uint64_t made, next[SERVICES];

static void append(struct filling *filling, unsigned partition, int64_t now_ms)
{
    struct entry *entry;

    if (entries_count == entries_room) {
        entries_room = entries_room ? 2 * entries_room : 1024;
        entries = reallocarray(entries, entries_room, sizeof(*entries));
        if (!entries)
            fail("out of memory");
    }
    message_close(filling->bytes, filling->length);
    entry = &entries[entries_count++];
    *entry =
        (struct entry){now_ms, malloc(filling->length), filling->length, partition, filling->spans};
    if (!entry->bytes)
        fail("out of memory");
    memcpy(entry->bytes, filling->bytes, filling->length);
    spans += filling->spans;
    filling->spans = 0;
}

static void add_piece(const struct piece *piece, unsigned service, const struct trace *trace,
                      int64_t now_ms)
{
    struct filling *filling = &fillings[service][trace->partition];

    if (piece->spans == 0)
        return;
    if (filling->spans == 0) {
        filling->length = message_open(filling->bytes, service);
        filling->since_ms = now_ms;
    }
    filling->length += piece_write(filling->bytes + filling->length, piece, trace);
    filling->spans += piece->spans;
    if (filling->spans >= MESSAGE_SPANS)
        append(filling, trace->partition, now_ms);
}

static void make_log(uint64_t wanted)
{
    const struct template *templates = templates_new();

    if (!templates)
        fail("out of memory");
    for (int64_t now_ms = EPOCH_MS; spans < wanted; now_ms++) {
        const uint64_t due = (uint64_t)((double)(now_ms - EPOCH_MS) * RATE / 1000 / TRACE_SPANS);

        for (; made < due; made++) {
            window[made % WINDOW] = trace_of(1, made, PARTITIONS);
            window[made % WINDOW].start_ns = now_ms * 1000000;
        }
        for (unsigned service = 0; service < SERVICES; service++) {
            const int64_t lag_ms = SPREAD_MS * service / (SERVICES - 1);
            const struct trace *trace;

            for (; next[service] < made; next[service]++) {
                trace = &window[next[service] % WINDOW];
                if (trace->start_ns / 1000000 + lag_ms > now_ms)
                    break;
                add_piece(&templates[trace->template].piece[service], service, trace, now_ms);
            }
            for (unsigned i = 0; i < PARTITIONS; i++) {
                if (fillings[service][i].spans && now_ms - fillings[service][i].since_ms > FLUSH_MS)
                    append(&fillings[service][i], i, now_ms);
            }
        }
    }
}

/* ---- reading it ------------------------------------------------------------------------------ */

static bool drop(void *context, uint32_t partition, const char *data, size_t length)
{
    (void)context;
    (void)partition;
    (void)data;
    (void)length;
    return true;
}

struct cost {
    double ns;
    double faults;
};

static struct cost now(void)
{
    struct timespec time;
    struct rusage usage;

    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    (void)getrusage(RUSAGE_SELF, &usage);
    return (struct cost){(double)time.tv_sec * 1e9 + (double)time.tv_nsec, (double)usage.ru_minflt};
}

/* ---- the sink's chain ------------------------------------------------------------------------ */

#define CHAIN_STAGES 5

static bool has_chain;
static struct chain chain;
static struct endpoint_table *endpoints;
static void (*close_trace)(void *context, const struct held_trace *trace);

static bool skip_none(void *context, struct span *span)
{
    (void)context;
    return span->id == 0;
}

static void deliver_nowhere(void *context, const struct span *span)
{
    (void)context;
    (void)span;
}

static void open_chain(void)
{
    endpoints = endpoint_table_new();
    chain_init(&chain, deliver_nowhere, NULL);
    for (int i = 0; i < CHAIN_STAGES; i++) {
        struct stage *stage = skip_stage_new("none", skip_none, NULL);

        if (!stage || !endpoints)
            fail("out of memory");
        chain_append(&chain, stage);
    }
}

static void close_through_chain(void *context, const struct held_trace *trace)
{
    static struct span whole;

    for (const struct held_span *held = trace->first; held; held = held->next) {
        const struct held_origin *from = held_origin(held);
        const struct otlp_origin origin = {
            .resource = from->resource, .scope = from->scope, .service = from->service};
        struct otlp_span fast;

        if (!otlp_read_span((struct text){held->raw, held->raw_length}, &fast) ||
            !otlp_decode_span(&origin, &fast, endpoints, &whole))
            fail("a span cannot be decoded");
        chain_take(&chain, &whole, whole.end_ns);
    }
    chain_advance(&chain, whole.end_ns);
    close_trace(context, trace);
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void open_stage(struct work_stage *stage)
{
    static const char rules[] = "error\n* > 50ms\n";
    struct error error;

    *stage = (struct work_stage){.keeper = keeper_new_topic(4, drop, NULL)};
    stage->rules = tail_rules_parse((struct text){rules, sizeof(rules) - 1}, "rules", &error);
    if (!work_stage_open(stage, WAIT_MS) || !stage->keeper || !stage->rules)
        fail("out of memory");
    if (has_chain) {
        close_trace = stage->assembly.close;
        stage->assembly.close = close_through_chain;
    }
}

__attribute__((noinline)) static struct cost read_log(void)
{
    static struct work_stage stage;
    static struct partition partitions[PARTITIONS];
    static int64_t offsets[PARTITIONS];
    int64_t commit_ms = EPOCH_MS + COMMIT_MS;
    struct cost begin, end;

    open_stage(&stage);
    memset(offsets, 0, sizeof(offsets));
    for (unsigned i = 0; i < PARTITIONS; i++) {
        if (!partition_open(&partitions[i], &stage.assembly, (struct place){0, 0, 0, 0}))
            fail("out of memory");
    }
    begin = now();
    for (size_t i = 0; i < entries_count; i++) {
        const struct entry *entry = &entries[i];

        partition_read(&partitions[entry->partition],
                       &(struct log_message){.offset = offsets[entry->partition]++,
                                             .time_ms = entry->time_ms,
                                             .bytes = {entry->bytes, entry->length}});
        if (entry->time_ms >= commit_ms) {
            statistics_begin_period(stage.statistics);
            commit_ms += COMMIT_MS;
        }
    }
    for (unsigned i = 0; i < PARTITIONS; i++)
        partition_pass(&partitions[i], INT64_MAX / 2);
    end = now();
    if (stage.counts.spans_counted != spans || !stage.counts.traces_kept ||
        stage.assembly.is_starved)
        fail("not all spans were counted");
    for (unsigned i = 0; i < PARTITIONS; i++)
        partition_close(&partitions[i]);
    work_stage_close(&stage);
    return (struct cost){(end.ns - begin.ns) / (double)spans,
                         (end.faults - begin.faults) / (double)spans};
}

int main(int argc, char **argv)
{
    const uint64_t wanted = argc > 1 ? strtoull(argv[1], NULL, 10) : 1500000;
    const int rounds = argc > 2 ? atoi(argv[2]) : 5;
    struct cost best = {.ns = 0};

    has_chain = argc > 3 && strcmp(argv[3], "chain") == 0;
    if (has_chain)
        open_chain();
    make_log(wanted);
    heap_prepare(HEAP);
    for (int i = 0; i < rounds; i++) {
        const struct cost cost = read_log();

        if (i == 0)
            (void)printf("stage_fresh %.1f %.4f\n", cost.ns, cost.faults);
        else if (best.ns == 0 || cost.ns < best.ns)
            best = cost;
    }
    if (has_chain && (!chain_adds_up(&chain) || chain.counts.out != spans * (uint64_t)rounds))
        fail("the chain has not passed all spans");
    if (best.ns > 0)
        (void)printf("stage %.1f %.4f\n", best.ns, best.faults);
    return 0;
}
