/*
 * Fuzzes packed texts and the steps in their logs, in both forms of a span.
 *
 * The input makes a log as libblkin would write it, of steps in any nesting, with head and tail by
 * libblkin's own functions. All must be read as it was written: each step in one span, with its id,
 * parent, kind, name and records. Then bytes of the text are changed: losses must be counted, and
 * only whole spans be given out.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "fuzz.h"

/* libFuzzer chooses inputs by their coverage of the product, not of this file */
#pragma clang attribute push(__attribute__((no_sanitize("coverage"))), apply_to = function)

#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/spans/event.h"

#include "finished_span.h"

#define BLKIN_PORTABLE
#include "tracepoints/format/digits.h"
#include "tracepoints/format/events.h"
#include "tracepoints/format/step_id.h"

#define PACKED_STEPS_MAX 64
#define DEPTH_SURE       12 /* nesting that libblkin surely writes */
#define SERVICE          "osd"

/* A written step; number 0 is the span. */
struct packed_written {
    uint64_t id, parent_id;
    uint8_t kind, tags;
    bool is_open; /* still open at the end */
    bool is_given;
};

static struct packed_written steps[1 + PACKED_STEPS_MAX];
static unsigned step_count;
static bool is_broken; /* the text was changed: its contents are unknown */
static uint64_t trace_id, last_number, spans, incomplete;

static char *put_text(char *at, const char *text, size_t length)
{
    memcpy(at, text, length);
    return at + length;
}

static char *put_number(char *at, uint64_t number)
{
    *at++ = '#';
    return blkin_put_length(blkin_put_length(at, number & 4095), number >> 12);
}

/* ---- a log ---- */

struct log_writer {
    struct fuzz *source;
    char *at;
    uint64_t span_id;
    uint64_t own_number; /* 0: a span's */
    uint64_t number;     /* the last step's */
    unsigned open[DEPTH_SURE + 1];
    unsigned depth;
};

static void put_begin(struct log_writer *log)
{
    static const char names[] = "the name of a step";
    const uint64_t choice = take(log->source, 1);
    const size_t length = choice % sizeof(names);
    const uint8_t kind = (uint8_t)(choice >> 5);
    struct packed_written *step = &steps[++step_count];

    log->number++;
    if (choice >= 224) {
        log->number += take(log->source, 2);
        log->at = put_number(log->at, log->number);
    }
    *step = (struct packed_written){
        .id = blkin_step_id(log->span_id, log->number - log->own_number),
        .parent_id = steps[log->open[log->depth]].id,
        .kind = kind <= SPAN_CONSUMER ? kind : SPAN_LOCAL,
        .is_open = true,
    };
    log->open[++log->depth] = step_count;
    *log->at++ = '(';
    log->at = blkin_put_length(log->at, length | (size_t)kind << 7);
    log->at = blkin_put_word(log->at, take(log->source, 1));
    log->at = put_text(log->at, names, length);
}

static void put_other(struct log_writer *log, uint64_t choice)
{
    struct packed_written *step = &steps[log->open[log->depth]];

    if (choice < 128) {
        *log->at++ = 's';
        log->at = put_text(blkin_put_length(blkin_put_length(log->at, 1), 3), "k(0)", 4);
        step->tags++;
    } else if (choice < 192) {
        *log->at++ = (char)('0' + choice % 8);
        log->at = blkin_put_word(blkin_put_length(log->at, 6), take(log->source, 8));
        log->at = put_text(log->at, ")queue", 6);
    } else {
        *log->at++ = 'I';
        log->at = blkin_put_word(blkin_put_length(log->at, 2), take(log->source, 6));
        log->at = blkin_put_short(log->at, (uint32_t)take(log->source, 2));
        log->at = put_text(log->at, "#T", 2);
        step->tags++;
    }
}

static void put_log(struct log_writer *log)
{
    for (uint64_t records = take(log->source, 1) % 48; records; records--) {
        const uint64_t choice = take(log->source, 1);

        if (choice < 80 && log->depth < DEPTH_SURE && step_count < PACKED_STEPS_MAX &&
            log->number < BLKIN_STEPS_MAX - 70000) {
            put_begin(log);
        } else if (choice < 140 && log->depth) {
            *log->at++ = ')';
            log->at = blkin_put_word(log->at, take(log->source, 1));
            steps[log->open[log->depth--]].is_open = false;
        } else {
            put_other(log, take(log->source, 1));
        }
    }
}

/* ---- an event ---- */

static size_t put_packed(struct fuzz *source, struct event *event, char *packed)
{
    const bool is_step = event->flags & BLKIN_SPAN_STEP;
    const uint64_t ip_length = take(source, 1) % 46;
    struct log_writer log = {.source = source, .at = packed};
    const char *begin;

    event->trace_id_high = take(source, 8);
    event->span_id = take(source, 8);
    event->sequence = take(source, 4);
    event->dropped = take(source, 2) & BLKIN_DROPPED_MAX;
    event->age_ns = (int64_t)(take(source, 6));
    event->thread = take(source, 8) >> (64 - BLKIN_THREAD_BITS);
    event->port = (int64_t)take(source, 2);
    *log.at++ = '0' + BLKIN_FORMAT_VERSION;
    log.at = blkin_put_length(blkin_put_word(log.at, event->thread), event->thread >> 48);
    log.at = blkin_put_word(log.at, event->trace_id_high);
    log.at = blkin_put_word(log.at, event->trace_id_high >> 48 | event->sequence << 16);
    log.at = blkin_put_word(log.at, event->span_id);
    log.at = blkin_put_word(log.at, event->span_id >> 48 | (take(source, 4) & 0xfffff) << 16 |
                                        event->dropped << 36);
    log.at = blkin_put_word(log.at, (uint64_t)event->age_ns);
    REQUIRE(log.at == packed + BLKIN_HEAD_SIZE);
    begin = log.at;
    log.span_id = steps[0].id = event->span_id;
    if (is_step) {
        log.number = log.own_number = 1 + take(source, 2);
        log.at = put_number(log.at, log.number);
    }
    if (take(source, 1) & 1) {
        *log.at++ = 'T';
        log.at = blkin_put_word(log.at, take(source, 6));
    }
    put_log(&log);
    last_number = log.number - log.own_number;
    event->log = (struct text){begin, (size_t)(log.at - begin)};
    for (uint64_t i = 0; i < ip_length; i++)
        *log.at++ = (char)take(source, 1);
    event->ip = (struct text){log.at - ip_length, ip_length};
    log.at = blkin_put_length(blkin_put_short(log.at, (uint32_t)event->port), ip_length);
    return (size_t)(log.at - packed);
}

static void check_read(const struct event *read, const struct event *written)
{
    REQUIRE(read->trace_id_high == written->trace_id_high && read->span_id == written->span_id);
    REQUIRE(read->sequence == written->sequence && read->dropped == written->dropped);
    REQUIRE(read->age_ns == written->age_ns && read->thread == written->thread);
    REQUIRE(read->port == written->port && text_equal(read->ip, written->ip));
    REQUIRE(text_equal(read->log, written->log));
}

/* ---- decoded events ---- */

static void check_step(const struct span *span, unsigned tags)
{
    for (unsigned i = 1; i <= step_count; i++) {
        struct packed_written *step = &steps[i];

        if (step->id != span->id || step->is_given)
            continue;
        step->is_given = true;
        REQUIRE(span->parent_id == step->parent_id && span->kind == (enum span_kind)step->kind);
        REQUIRE(tags == (unsigned)step->tags + step->is_open);
        return;
    }
    REQUIRE(!"a step that was not written");
}

static void take_span(void *context, struct span *span)
{
    unsigned tags = 0;

    (void)context;
    spans++;
    check_finished(span);
    REQUIRE(span->trace_id == trace_id);
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        tags += entry->type == SPAN_TAG_TEXT || entry->type == SPAN_TAG_INTEGER;
        incomplete += text_is(span_entry_key(entry), "blkin.incomplete");
    }
    if (!is_broken && span->id != steps[0].id)
        check_step(span, tags);
}

static void check_counts(const struct assembler_counts *counts, uint64_t events, uint64_t dropped)
{
    REQUIRE(counts->events == events);
    REQUIRE(events == counts->events_in_span + counts->events_invalid + counts->events_no_room +
                          counts->events_late + counts->events_duplicate + counts->events_process +
                          counts->events_metric);
    REQUIRE(counts->spans_finished == spans && counts->spans_incomplete <= spans);
    REQUIRE(counts->spans_open == 0 && counts->open_bytes == 0);
    REQUIRE(is_broken || counts->log_errors == (counts->events_invalid ? 0 : dropped));
    REQUIRE(is_broken || counts->spans_incomplete == incomplete);
}

/* Streams these steps first, so that they come twice. */
static uint64_t stream(uint64_t which, struct assembler *assembler, const struct event *event)
{
    uint64_t events = 0;

    for (unsigned i = 0; i <= step_count && i < 32; i++) {
        struct event begin = *event;

        if (!(which >> i & 1))
            continue;
        begin.kind = EVENT_BEGIN;
        begin.span_id = steps[i].id;
        begin.parent_id = steps[i].parent_id;
        begin.span_kind = steps[i].kind;
        assembler_add(assembler, &begin);
        events++;
    }
    for (unsigned i = step_count < 32 ? step_count : 31; i > 0; i--) {
        struct event end = *event;

        if (!(which >> i & 1))
            continue;
        end.kind = EVENT_END;
        end.span_id = steps[i].id;
        assembler_add(assembler, &end);
        events++;
    }
    return events;
}

static void assemble(struct fuzz *source, const struct event *event)
{
    static const struct assembler_options options = {
        .idle_timeout_ns = 1000,
        .end_timeout_ns = 1000,
        .open_timeout_ns = 1000,
        .max_open_spans = 1000,
        .max_open_bytes = 1 << 24,
    };
    struct assembler *assembler = assembler_new(&options, take_span, NULL);
    const uint64_t choice = take(source, 1);
    const bool is_as_written = !is_broken;
    struct event both = *event;
    uint64_t events = 1;

    REQUIRE(assembler);
    if (choice >= 192) {
        both.flags |= BLKIN_SPAN_STREAMED;
        is_broken = true;
        events += stream(choice & 1 ? UINT64_MAX : take(source, 4), assembler, event);
    }
    assembler_add(assembler, &both);
    while (assembler_flush_some(assembler, UINT32_MAX))
        ;
    check_counts(assembler_counts(assembler), events, event->dropped);
    if (!is_broken && event->span_id && (event->trace_id | event->trace_id_high))
        REQUIRE(spans == 1 + step_count);
    /* all were streamed before, and each number is noted once */
    if (choice >= 192 && choice & 1 && is_as_written && last_number <= 64 && step_count < 32 &&
        assembler_counts(assembler)->events_invalid == 0)
        REQUIRE(spans == 1 + step_count);
    assembler_free(assembler);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char text[8192];
    static struct fenced fenced;
    struct fuzz source = {data, data + size};
    struct event event = {
        .kind = EVENT_SPAN,
        .time_ns = (int64_t)take(&source, 8),
        .flags = take(&source, 1),
        .trace_id = take(&source, 1),
        .duration_ns = take(&source, 4),
        .span_name = {"write", 5},
        .service = {SERVICE, 3},
    };
    const uint64_t changes = take(&source, 1);
    struct event read = event;
    size_t length;

    random_number = sum_of(data, size);
    step_count = 0;
    spans = incomplete = 0;
    trace_id = event.trace_id;
    steps[0] = (struct packed_written){.is_open = false};
    length = put_packed(&source, &event, text);
    is_broken = changes >= 128;
    for (uint64_t i = changes & 7; is_broken && i; i--)
        text[take(&source, 2) % length] = (char)take(&source, 1);
    if (changes >= 224)
        length = take(&source, 2) % length;
    memcpy(fenced.bytes, text, length);
    fence_put(&fenced, length);
    if (changes >= 240)
        read.kind = (enum event_kind)(EVENT_BEGIN + changes % 4);
    if (packed_read(&read, (struct text){fenced.bytes, length})) {
        if (!is_broken)
            check_read(&read, &event);
        assemble(&source, &read);
    } else {
        REQUIRE(is_broken);
    }
    fence_lift(&fenced, length);
    return 0;
}

#pragma clang attribute pop
