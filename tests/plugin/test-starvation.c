/*
 * The allocations between events and the file. For each one, the test makes a run in which only
 * this allocation fails, and a run in which all later ones fail, too. Nothing crashes, leaks, hangs
 * or is lost without a count. The output is well-formed. The test does not use babeltrace2.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/deliver/exporter.h"
#include "babeltrace-plugin/encode/protobuf.h"

#include "check.h"
#include "starvation/starve.h"
#include "zipkin_rules.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

/* A workload and its results. */
struct starved_run {
    struct assembler *assembler;
    struct exporter *exporter;
    struct assembler_counts core;
    struct exporter_counts out;
    bool set_up;
    json_t *spans; /* in the file; of OTLP, an object: how often each span is in the file */
    int64_t time_ns;
    uint32_t sequence;
};

static char *path;
static char *endpoint; /* file:path */
static char large[20000];
static enum protocol_format format = FORMAT_ZIPKIN;
static size_t min_size;

/* ---- the workloads: they reach every allocation ---- */

static struct event next_event(struct starved_run *run, enum event_kind kind, uint64_t span_id,
                               const char *service)
{
    run->time_ns += MS;
    return (struct event){
        .kind = kind,
        .time_ns = run->time_ns,
        .origin = {.host = text_of("node1"), .process = text_of("osd"), .pid = 7, .tid = 8},
        .trace_id = 1,
        .span_id = span_id,
        .span_name = text_of("write"),
        .service = text_of(service),
        .ip = text_of("10.0.0.1"),
        .port = 6800,
        .thread = 1,
        .sequence = ++run->sequence,
    };
}

static void add_original(struct starved_run *run, uint64_t span_id, const char *service,
                         const char *value)
{
    struct event event = next_event(run, EVENT_TIMESTAMP, span_id, service);

    event.value = text_of(value);
    assembler_add(run->assembler, &event);
}

static void add_text(struct starved_run *run, uint64_t span_id, size_t length)
{
    struct event event = next_event(run, EVENT_KEYVAL_TEXT, span_id, "osd");

    event.key = text_of("text");
    event.value = (struct text){large, length};
    assembler_add(run->assembler, &event);
}

static void add_whole(struct starved_run *run, uint64_t span_id, const char *service,
                      const char *log)
{
    struct event event = next_event(run, EVENT_SPAN, span_id, service);

    event.duration_ns = (uint64_t)MS;
    /* long enough to make the log grow when the next number is added */
    event.origin.process = (struct text){large, 150};
    event.dropped = span_id % 3;
    event.log = text_of(log);
    assembler_add(run->assembler, &event);
}

static void add_streamed(struct starved_run *run, enum event_kind kind, uint64_t span_id)
{
    struct event event = next_event(run, kind, span_id, "osd");

    event.value = text_of("queued");
    event.log = text_of("s4030poolrbd");
    assembler_add(run->assembler, &event);
}

#define STARVED_STEPS 5 /* in one event */

/* Adds a few spans of every kind. */
static void add_few(struct starved_run *run)
{
    char service[32];

    /* steps in steps, before any memory was freed for reuse */
    for (uint64_t i = 1; i <= 2; i++)
        add_whole(run, 500 + i, "osd",
                  "(3000000000one"
                  "(30?0000000twos4030poolrbd(F000000000three of a longer name)10000000)20000000"
                  ")30000000(4000000000four(4000000000five");
    for (uint64_t i = 1; i <= 3; i++) {
        add_original(run, i, "client", "cs");
        add_original(run, i, "osd", "sr");
        add_text(run, i, 100 * i * i);
        add_original(run, i, "osd", "ss");
        add_original(run, i, "client", "cr");
        add_streamed(run, EVENT_BEGIN, 100 + i);
        add_streamed(run, EVENT_ANNOTATION, 100 + i);
        add_streamed(run, EVENT_TAG, 100 + i);
        add_whole(run, 200 + i, "mon",
                  "s4030poolrbd"
                  "r58:1000000000000803010.0.0.2mon");
    }
    for (uint64_t i = 1; i <= 2; i++)
        add_streamed(run, EVENT_END, 100 + i);
    /* texts larger than all buffers so far, and services that the encoder does not know yet */
    add_text(run, 50, sizeof(large));
    add_text(run, 50, 10);
    for (unsigned i = 0; i < 5; i++) {
        snprintf(service, sizeof(service), "service %u", i);
        add_whole(run, 300 + i, service,
                  "I6010000000000offset"
                  "D4000000000@o3half");
    }
    assembler_advance(run->assembler, run->time_ns + 2000 * MS);
    add_whole(run, 400, "osd", "broken");
}

/* Adds more open spans than the table has buckets at first, and then more than the limit. */
static void add_many(struct starved_run *run)
{
    for (uint64_t i = 1; i <= 1300; i++)
        add_original(run, i, "osd", "sr");
    for (uint64_t i = 1200; i <= 1300; i++)
        add_original(run, i, "osd", "ss");
}

/* ---- one run ---- */

static void take_span(void *context, struct span *span)
{
    struct starved_run *run = context;

    exporter_add(run->exporter, span);
}

static bool never(void *context)
{
    (void)context;
    return false;
}

static void ignore(void *context, const char *message)
{
    (void)context;
    (void)message;
}

static bool set_up(struct starved_run *run)
{
    static const struct assembler_options options = {
        .idle_timeout_ns = 10000 * MS,
        .end_timeout_ns = 1000 * MS,
        .open_timeout_ns = 60000 * MS,
        .max_open_spans = 1250,
        .max_open_bytes = 64 << 20,
    };
    struct error error = {""};

    run->assembler = assembler_new(&options, take_span, run);
    if (!run->assembler)
        return false;
    run->exporter = exporter_new(
        &(struct exporter_options){
            .transport.endpoint = endpoint,
            .format = format,
            .batch_spans = 8,
            .batch_bytes = 4096,
            .batch_timeout_ms = 60000,
            .queue_bytes = 64 << 20,
            .on_full = ON_FULL_BLOCK,
            .flush_timeout_ms = 10000,
        },
        &(struct exporter_callbacks){never, ignore, run, NULL}, &error);
    if (!run->exporter)
        CHECK(strstr(error.text, "out of memory"));
    return run->exporter != NULL;
}

/* ---- the content of the file ---- */

/* Returns the next field with this number. Stores fields with number 1 in *first; there are no
 * fields with other numbers. */
static struct text next_of(struct pb_reader *reader, uint32_t number, struct text *first)
{
    struct pb_member field = {.tag = 0};

    while (pb_next(reader, &field)) {
        if (field.tag == PB_TAG(number, PB_TYPE_BYTES))
            return pb_text(&field);
        CHECK(field.tag == PB_TAG(1, PB_TYPE_BYTES));
        *first = pb_text(&field);
    }
    CHECK(!pb_is_broken(reader));
    return (struct text){NULL, 0};
}

static void count_span(json_t *counts, struct text resource, struct text span)
{
    char *name = calloc(2, resource.length + span.length + 1);
    char *at = name;

    for (size_t i = 0; i < resource.length; i++)
        at += sprintf(at, "%02x", (unsigned char)resource.data[i]);
    for (size_t i = 0; i < span.length; i++)
        at += sprintf(at, "%02x", (unsigned char)span.data[i]);
    json_object_set_new(counts, name,
                        json_integer(1 + json_integer_value(json_object_get(counts, name))));
    free(name);
}

/* Reads a whole request. Returns how often each span is in the request. */
static json_t *load_otlp(void)
{
    FILE *file = fopen(path, "rb");
    static char data[1 << 20];
    const size_t length = file ? fread(data, 1, sizeof(data), file) : 0;
    struct pb_reader request = pb_reader_of((struct text){data, length});
    json_t *counts = json_object();
    struct text none = {NULL, 0};
    struct text group, spans, span;

    CHECK(file != NULL && length < sizeof(data));
    if (file)
        fclose(file);
    while ((group = next_of(&request, 1, &none)).data) {
        struct pb_reader in_group = pb_reader_of(group);
        struct text resource = none, scope = none;

        while ((spans = next_of(&in_group, 2, &resource)).data) {
            struct pb_reader in_scope = pb_reader_of(spans);

            while ((span = next_of(&in_scope, 2, &scope)).data)
                count_span(counts, resource, span);
        }
    }
    return counts;
}

static json_t *load_file(void)
{
    return format == FORMAT_OTLP ? load_otlp() : json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
}

static void perform(struct starved_run *run, void (*workload)(struct starved_run *),
                    uint64_t fail_at, bool fails_after)
{
    struct error error = {""};

    *run = (struct starved_run){.time_ns = 1000000 * MS};
    starve = (struct starve){.fail_at = fail_at, .fails_after = fails_after, .min_size = min_size};
    run->set_up = set_up(run);
    if (run->set_up) {
        workload(run);
        while (assembler_flush_some(run->assembler, UINT32_MAX))
            ;
        exporter_flush(run->exporter);
        run->core = *assembler_counts(run->assembler);
        CHECK(exporter_close(run->exporter, &error));
        run->out = exporter_counts(run->exporter);
    }
    exporter_free(run->exporter);
    assembler_free(run->assembler);
    starve.fail_at = 0;
    run->spans = run->set_up ? load_file() : NULL;
    (void)unlink(path);
}

/* ---- checks of a run ---- */

static void check_otlp_file(const struct starved_run *run)
{
    json_int_t count = 0;
    const char *name;
    json_t *times;

    json_object_foreach(run->spans, name, times) count += json_integer_value(times);
    CHECK((uint64_t)count == run->out.outcome[OUTCOME_ACCEPTED]);
}

static void check_file(const struct starved_run *run)
{
    size_t i;
    json_t *span;

    CHECK(run->spans);
    if (format == FORMAT_OTLP) {
        check_otlp_file(run);
        return;
    }
    CHECK(json_array_size(run->spans) == run->out.outcome[OUTCOME_ACCEPTED]);
    json_array_foreach(run->spans, i, span) CHECK(!span_fault(span));
}

static void check_account(const struct starved_run *run)
{
    const struct assembler_counts *core = &run->core;
    const struct exporter_counts *out = &run->out;

    CHECK(starve.live == 0);
    CHECK(core->events == core->events_in_span + core->events_invalid + core->events_no_room +
                              core->events_duplicate + core->events_late + core->events_process +
                              core->events_metric);
    CHECK(core->spans_open == 0 && core->open_bytes == 0);
    CHECK(core->spans_finished == out->spans);
    CHECK(out->spans == out->outcome[OUTCOME_ACCEPTED] + out->outcome[OUTCOME_NO_MEMORY]);
    CHECK(out->waiting == 0);
}

/* Every loss is counted: if no counter differs from a run without failures, no span differs. */
static void check_nothing_silent(const struct starved_run *run, const struct starved_run *whole)
{
    if (memcmp(&run->core, &whole->core, sizeof(run->core)) == 0 &&
        run->out.outcome[OUTCOME_NO_MEMORY] == whole->out.outcome[OUTCOME_NO_MEMORY])
        CHECK(json_equal(run->spans, whole->spans));
}

/* A single failed allocation loses at most one span or event. */
static void check_small_loss(const struct starved_run *run, const struct starved_run *whole)
{
    CHECK(run->core.events == whole->core.events);
    CHECK(run->core.events_no_room <= 1);
    /* with a step its inner steps are lost, and with an event all of its steps */
    CHECK(run->out.outcome[OUTCOME_ACCEPTED] + 1 + run->core.log_errors - whole->core.log_errors +
              STARVED_STEPS * run->core.events_no_room >=
          whole->out.outcome[OUTCOME_ACCEPTED]);
    CHECK(run->out.outcome[OUTCOME_NO_MEMORY] <= 1);
}

static bool check_failure(void (*workload)(struct starved_run *), const struct starved_run *whole,
                          uint64_t fail_at, bool fails_after)
{
    const int failures = check_failures;
    struct starved_run run;
    uint64_t failed;

    perform(&run, workload, fail_at, fails_after);
    failed = starve.failed;
    check_account(&run);
    if (run.set_up) {
        check_file(&run);
        check_nothing_silent(&run, whole);
        if (!fails_after)
            check_small_loss(&run, whole);
    }
    json_decref(run.spans);
    if (check_failures != failures)
        fprintf(stderr, "with allocation %" PRIu64 "%s failing\n", fail_at,
                fails_after ? " and all after it" : "");
    return failed != 0;
}

/* Fails each allocation of the workload in turn. There must be at least `least` allocations. */
static void test(const char *name, void (*workload)(struct starved_run *), uint64_t least)
{
    struct starved_run whole;
    uint64_t fail_at[2] = {1, 1};

    perform(&whole, workload, 0, false);
    check_account(&whole);
    check_file(&whole);
    CHECK(whole.core.events_no_room == 0 &&
          whole.out.outcome[OUTCOME_ACCEPTED] == whole.core.spans_finished);
    for (int fails_after = 0; fails_after <= 1; fails_after++) {
        while (check_failure(workload, &whole, fail_at[fails_after], fails_after))
            fail_at[fails_after]++;
        CHECK(fail_at[fails_after] > least);
    }
    printf("%s: %" PRIu64 " events, %" PRIu64 " spans, %" PRIu64 " allocations\n", name,
           whole.core.events, whole.core.spans_finished, fail_at[0] - 1);
    json_decref(whole.spans);
}

int main(void)
{
    const char *folder = getenv("TMPDIR");

    memset(large, 'x', sizeof(large));
    if (asprintf(&endpoint, "file:%s/starvation-%d.json", folder ? folder : "/tmp", (int)getpid()) <
        0)
        return 2;
    path = endpoint + strlen("file:");
    test("few spans", add_few, 60);
    /* the small allocations of each span would take long, and were tested above */
    min_size = 16384;
    test("many spans", add_many, 2);
    format = FORMAT_OTLP;
    test("many spans as OTLP", add_many, 2);
    min_size = 0;
    test("few spans as OTLP", add_few, 60);
    free(endpoint);
    return check_status();
}
