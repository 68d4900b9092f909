/*
 * Fuzzes the assembler with hostile decoded events: any values, any order, tiny limits. After each
 * input every event must be in a span or in one counter. Every span is given out exactly once, and
 * each span's entries lie within its log.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/spans/source.h"

#include "finished_span.h"

/* Returns a small number mostly, so that several events have the same ids and keys; sometimes a
 * number at an edge of a range. */
static uint64_t take_number(struct fuzz *source)
{
    static const uint64_t edges[] = {UINT64_MAX, INT64_MAX, (uint64_t)INT64_MAX + 1, 1, 999, 1001};
    const uint64_t choice = take(source, 1);

    if (choice < 200)
        return choice % 8;
    if (choice < 240)
        return edges[choice % (sizeof(edges) / sizeof(edges[0]))];
    return take(source, 8);
}

/* Returns mostly one of a few texts, so that several events have the same ids and keys. */
static struct text take_text(struct fuzz *source)
{
    static const char *const texts[] = {"", "a", "host", "cr", "ss", "cs", "sr", "10.0.0.1", "::1"};
    const uint64_t choice = take(source, 1);

    return choice < 160 ? text_of(texts[choice % (sizeof(texts) / sizeof(texts[0]))])
                        : take_bytes(source, choice % 40);
}

/* Programs repeat ids: in every second input, nearly all ids are 1 or 2. */
static bool repeats_ids;

static uint64_t take_id(struct fuzz *source)
{
    const uint64_t number = take_number(source);

    return repeats_ids && number < 8 ? 1 + number % 2 : number;
}

static void take_event(struct fuzz *source, struct event *event)
{
    *event = (struct event){
        .kind = (enum event_kind)(take(source, 1) % (EVENT_METRIC + 1)),
        .time_ns = (int64_t)take_number(source),
        .trace_id_high = take_number(source) & 1,
        .trace_id = take_id(source),
        .span_id = take_id(source),
        .parent_id = take_number(source),
        .port = (int64_t)take_number(source),
        .integer = (int64_t)take_number(source),
        .duration_ns = take_number(source),
        .age_ns = take_number(source),
        .thread = take_number(source),
        .sequence = take_number(source),
        .span_kind = take_number(source),
        .flags = take_number(source),
        .dropped = take_number(source),
        .realtime = take_number(source),
    };
    event->origin.pid = (int64_t)take_number(source);
    event->origin.clock = (int64_t)take_number(source) & 1;
    event->origin.host = take_text(source);
    event->span_name = take_text(source);
    event->service = take_text(source);
    event->ip = take_text(source);
    event->key = take_text(source);
    event->value = take_text(source);
    event->log = take_bytes(source, take(source, 1) % 64);
}

static void note_loss(struct fuzz *source, struct assembler *assembler)
{
    const struct loss loss = {
        .origin = {.host = take_text(source), .pid = (int64_t)take_number(source)},
        .has_times = take(source, 1) & 1,
        .begin_ns = (int64_t)take_number(source),
        .end_ns = (int64_t)take_number(source),
        .events = take_number(source),
        .packets = take_number(source),
    };
    const unsigned copies = take(source, 1) == 255 ? LOSSES_MAX + 2 : 1;

    /* more losses than the assembler stores: the source may report one for each event */
    for (unsigned i = 0; i < copies; i++)
        assembler_note_loss(assembler, &loss);
}

static uint64_t spans;

static void take_span(void *context, struct span *span)
{
    (void)context;
    spans++;
    REQUIRE(!span->shared || span->kind == SPAN_SERVER);
    check_finished(span);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz source = {data, data + size};
    /* seldom, because it is slow: enough to make the tables grow */
    const bool is_many = is_one_in(4001, data, size);
    const uint64_t copies = is_many ? 1500 : 1;
    const struct assembler_options options = {
        .idle_timeout_ns = (int64_t)take(&source, 1),
        .end_timeout_ns = (int64_t)take(&source, 1),
        .open_timeout_ns = (int64_t)take(&source, 1),
        .max_open_spans = 1 + (is_many ? take(&source, 2) % 2500 : take(&source, 1) % 8),
        .correct_clocks = take(&source, 1) & 1,
        .max_open_bytes = 1 + take(&source, 2) * (is_many ? 1000 : 1),
    };
    const bool repeats = take(&source, 1) & 1;
    struct assembler *assembler;
    const struct assembler_counts *counts;
    struct event event;

    random_number = hash_of(data, size);
    assembler = assembler_new(&options, take_span, NULL);
    REQUIRE(assembler);
    spans = 0;
    repeats_ids = repeats;
    while (source.at < source.end) {
        const uint64_t choice = take(&source, 1);

        if (choice < 16)
            assembler_advance(assembler, (int64_t)take_number(&source));
        else if (choice < 32)
            note_loss(&source, assembler);
        take_event(&source, &event);
        for (uint64_t i = 0; i < copies; i++) {
            assembler_add(assembler, &event);
            event.span_id += !repeats;
            event.port = (int64_t)((uint64_t)event.port + 1);
            event.time_ns ^= (int64_t)(i & 1);
        }
    }
    while (assembler_flush_some(assembler, 1 + hash_of(data, size) % 3))
        ;
    counts = assembler_counts(assembler);
    REQUIRE(counts->events == counts->events_in_span + counts->events_invalid +
                                  counts->events_no_room + counts->events_late +
                                  counts->events_duplicate + counts->events_process +
                                  counts->events_metric);
    REQUIRE(counts->spans_finished == spans);
    REQUIRE(counts->spans_corrected <= spans);
    REQUIRE(counts->spans_with_loss <= spans);
    REQUIRE(counts->spans_open == 0 && counts->open_bytes == 0);
    assembler_free(assembler);
    return 0;
}
