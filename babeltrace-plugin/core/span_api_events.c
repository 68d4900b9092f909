/*
 * The span API's events: whole spans, and the streaming events of spans in flight.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "log.h"

#include <inttypes.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../tracepoints/events.h"

/* The shortest text that reads back as the same number, with a point whatever the locale has. */
static void print_real(char *text, size_t size, double real)
{
    const char *point = localeconv()->decimal_point;
    char *at;

    for (int digits = 15; digits <= 17; digits++) {
        snprintf(text, size, "%.*g", digits, real);
        if (strtod(text, NULL) == real)
            break;
    }
    at = strstr(text, point);
    if (at && *at) {
        const char *rest = at + strlen(point);

        *at = '.';
        memmove(at + 1, rest, strlen(rest) + 1);
    }
}

static bool add_number(struct span *span, const struct log_record *record)
{
    char text[40];
    double real;

    switch (record->type) {
    case 'd':
        memcpy(&real, &record->bits, sizeof(real));
        print_real(text, sizeof(text), real);
        break;
    case 'b':
        snprintf(text, sizeof(text), "%s", record->bits ? "true" : "false");
        break;
    case 'u':
        snprintf(text, sizeof(text), "%" PRIu64, record->bits);
        break;
    default:
        return span_add(span, SPAN_TAG_INTEGER, record->key, (struct text){NULL, 0},
                        (int64_t)record->bits);
    }
    return span_add(span, SPAN_TAG_TEXT, record->key, text_of(text), 0);
}

/* Of a whole span the start is known, and what was noted before is to be moved. */
static bool move_start(struct open_span *open, int64_t by_ns)
{
    struct span *span = &open->span;
    int64_t start_ns;

    if (!open->streaming) {
        span_shift_annotations(span, by_ns);
        return true;
    }
    if (__builtin_sub_overflow(span->start_ns, by_ns, &start_ns) || start_ns < 0 ||
        start_ns > span->end_ns)
        return false;
    span->start_ns = start_ns;
    return true;
}

static bool add_log_record(struct assembler *assembler, struct open_span *open,
                           const struct log_record *record)
{
    struct span *span = &open->span;
    const struct endpoint *endpoint;

    switch (record->type) {
    case 'a':
        return span_add(span, SPAN_ANNOTATION, record->key, record->value,
                        (int64_t)((uint64_t)span->start_ns + (uint64_t)record->offset_ns));
    case 's':
        return span_add(span, SPAN_TAG_TEXT, record->key, record->value, 0);
    case 'l':
        return (record->link.trace_id | record->link.trace_id_high) && record->link.span_id &&
               span_add_link(span, &record->link);
    case 'r':
    case 'e':
        endpoint = endpoint_get(assembler->endpoints, record->value, record->key, record->port);
        if (endpoint)
            *(record->type == 'r' ? &span->remote : &span->endpoint) = endpoint;
        return endpoint != NULL;
    case 'n':
        return span_change_name(span, record->value);
    case 't':
        return move_start(open, record->offset_ns);
    default:
        return add_number(span, record);
    }
}

/* What is wrong with a log costs its records, not the span. */
static void add_log(struct assembler *assembler, struct open_span *open, struct text log)
{
    struct log_record record;

    while (log_next(&log, &record)) {
        if (!add_log_record(assembler, open, &record))
            assembler->counts.log_errors++;
    }
    if (log.length)
        assembler->counts.log_errors++;
}

static void add_dropped(struct assembler *assembler, struct span *span, uint64_t dropped)
{
    char text[24];

    if (!dropped)
        return;
    assembler->counts.log_errors += dropped;
    snprintf(text, sizeof(text), "%" PRIu64, dropped);
    if (!span_add(span, SPAN_TAG_TEXT, text_of("blkin.dropped"), text_of(text), 0))
        assembler->counts.log_errors++;
}

static enum span_kind kind_of(const struct event *event)
{
    return event->span_kind <= SPAN_CONSUMER ? (enum span_kind)event->span_kind : SPAN_LOCAL;
}

/*
 * The moment that an event tells of. A trace may claim anything: an age that goes back beyond the
 * epoch is none, and a moment too early to be told the earliest.
 */
static int64_t moment_of(const struct event *event, uint64_t before_ns)
{
    const bool is_age =
        event->age_ns >= -EVENT_AHEAD_NS && (event->time_ns < 0 || event->age_ns <= event->time_ns);
    int64_t moment_ns;

    if (__builtin_sub_overflow(event->time_ns, is_age ? event->age_ns : 0, &moment_ns) ||
        __builtin_sub_overflow(moment_ns, before_ns, &moment_ns))
        return INT64_MIN;
    return moment_ns;
}

/* The span through which its trace came into the process: see assembler_note_loss(). */
static bool is_entry(const struct event *event)
{
    return !event->parent_id || event->flags & BLKIN_SPAN_REMOTE ||
           event->span_kind == SPAN_SERVER || event->span_kind == SPAN_CONSUMER;
}

/* It may be before what came last: blkin_span_end_at(). */
static void set_end(struct span *span, int64_t end_ns)
{
    span->end_ns = end_ns > span->start_ns ? end_ns : span->start_ns;
}

/*
 * The same span as streaming events: given out already, or still open, which is what libblkin makes
 * of it. Then nothing but blkin:end is missing, and its time is known: should it not come, the span
 * is complete all the same.
 */
static bool is_repeated(struct assembler *assembler, const struct span *span,
                        const struct event *event)
{
    struct open_span *streamed;

    if (!assembler->has_streamed)
        return false;
    streamed = open_spans_find_repeated(&assembler->open, event, span->kind);
    if (!streamed)
        return recent_take_streamed(assembler->recent, span,
                                    source_get(assembler->sources, &event->origin));
    set_end(&streamed->span, span->end_ns);
    streamed->closing = true;
    queue_append(&assembler->closing, streamed, assembler->now_ns);
    return true;
}

static void add_whole_span(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_take(&assembler->open);
    struct span *span;

    if (!open) {
        assembler->counts.events_no_room++;
        return;
    }
    span = &open->span;
    span->endpoint = assembler_endpoint(assembler, event);
    span->trace_id_high = event->trace_id_high;
    span->trace_id = event->trace_id;
    span->id = event->span_id;
    span->parent_id = event->parent_id;
    span->kind = kind_of(event);
    span->start_ns = moment_of(event, event->duration_ns);
    span->end_ns = moment_of(event, 0);
    if (!span->endpoint || !span_set_name(span, event->span_name)) {
        assembler->counts.events_no_room++;
    } else if (is_repeated(assembler, span, event)) {
        assembler->counts.events_duplicate++;
        assembler->counts.spans_duplicate++;
    } else {
        span->debug = event->flags & BLKIN_SPAN_DEBUG;
        assembler_tag_origin(assembler, span, &event->origin);
        add_log(assembler, open, event->log);
        add_dropped(assembler, span, event->dropped);
        if (assembler->has_losses && is_entry(event))
            assembler_tag_loss_below(assembler, span, &event->origin);
        /* its server may be one of the original's, and end later */
        if (assembler->has_original && span->kind == SPAN_CLIENT)
            recent_note_client(assembler->recent, span);
        if (assembler->has_offsets)
            assembler_correct_times(assembler, span,
                                    source_get(assembler->sources, &event->origin));
        assembler->counts.events_in_span++;
        assembler->counts.spans_finished++;
        assembler->sink(assembler->sink_context, span);
    }
    open_spans_give(&assembler->open, open);
}

static void begin_streamed(struct assembler *assembler, const struct event *event)
{
    const struct endpoint *endpoint = assembler_endpoint(assembler, event);
    struct open_span *open = endpoint ? assembler_open(assembler, event, endpoint) : NULL;

    assembler_count(assembler, open, open != NULL);
    if (!open)
        return;
    assembler->has_streamed = true;
    assembler->open.has_halves = true; /* nothing looks for the other one */
    open->streaming = true;
    open->span.kind = kind_of(event);
    open->span.debug = event->flags & BLKIN_SPAN_DEBUG;
    open->span.start_ns = moment_of(event, 0);
    open->span.end_ns = open->span.start_ns;
    queue_append(&assembler->streaming, open, assembler->now_ns);
}

static bool apply_detail(struct assembler *assembler, struct open_span *open,
                         const struct event *event, int64_t moment_ns)
{
    struct span *span = &open->span;
    struct text log = event->log;
    struct log_record record;

    if (event->kind == EVENT_ANNOTATION)
        return span_add(span, SPAN_ANNOTATION, event->key, event->value, moment_ns);
    if (!log_next(&log, &record) || record.type == 'a') {
        assembler->counts.log_errors++; /* as in the log of a whole span */
        return true;
    }
    return add_log_record(assembler, open, &record);
}

static void add_detail(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_find_streamed(&assembler->open, event);
    const int64_t moment_ns = moment_of(event, 0);
    uint32_t capacity;

    if (!open) {
        assembler->counts.events_late++;
        return;
    }
    if (event->kind == EVENT_END) {
        set_end(&open->span, moment_ns);
        assembler_count(assembler, open, true);
        open->closing = true;
        assembler_finish(assembler, open);
        return;
    }
    if (moment_ns > open->span.end_ns)
        open->span.end_ns = moment_ns;
    capacity = open->span.log_capacity;
    assembler_count(assembler, open, apply_detail(assembler, open, event, moment_ns));
    assembler_account(assembler, open, capacity);
    queue_append(&assembler->streaming, open, assembler->now_ns);
}

void assembler_add_span_api(struct assembler *assembler, const struct event *event)
{
    switch (event->kind) {
    case EVENT_SPAN:
        add_whole_span(assembler, event);
        break;
    case EVENT_BEGIN:
        begin_streamed(assembler, event);
        break;
    default:
        add_detail(assembler, event);
    }
}
