/*
 * The span API's events of streamed spans, and the records that streamed and whole spans share.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "babeltrace-plugin/base/real.h"

#include <inttypes.h>
#include <stdio.h>

#include "tracepoints/format/events.h"

static bool add_number(struct span *span, const struct log_record *record)
{
    char text[40];
    double real;

    if (record->type == 'i' || (record->type == 'u' && record->bits <= INT64_MAX))
        return span_add(span, SPAN_TAG_INTEGER, record->key, (struct text){NULL, 0},
                        (int64_t)record->bits);
    switch (record->type) {
    case 'd':
        memcpy(&real, &record->bits, sizeof(real));
        (void)real_show(text, sizeof(text), real);
        break;
    case 'b':
        snprintf(text, sizeof(text), "%s", record->bits ? "true" : "false");
        break;
    case 'u':
        snprintf(text, sizeof(text), "%" PRIu64, record->bits);
        break;
    default:
        return false;
    }
    return span_add(span, SPAN_TAG_TEXT, record->key, text_of(text), 0);
}

/* Moves the start of a streamed span. A whole span's event has the start. */
static bool move_start(struct open_span *open, int64_t by_ns)
{
    struct span *span = &open->span;
    int64_t start_ns;

    if (!open->streaming || __builtin_sub_overflow(span->start_ns, by_ns, &start_ns) ||
        start_ns < 0 || start_ns > span->end_ns)
        return false;
    span->start_ns = start_ns;
    return true;
}

bool assembler_add_record(struct assembler *assembler, struct open_span *open,
                          const struct log_record *record, int64_t from_ns)
{
    struct span *span = &open->span;
    const struct endpoint *endpoint;

    switch (record->type) {
    case 'a':
        return span_add(span, SPAN_ANNOTATION, record->key, record->value,
                        assembler_moment_after(from_ns, record->offset_ns));
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
    case 'o':
        open->left_open = true;
        return true;
    default:
        return add_number(span, record);
    }
}

/* The moment of an event. An age beyond the epoch is ignored, and a moment before INT64_MIN becomes
 * INT64_MIN: a trace may contain any numbers. */
int64_t assembler_moment_of(const struct event *event, uint64_t before_ns)
{
    const bool is_age =
        event->age_ns >= -EVENT_AHEAD_NS && (event->time_ns < 0 || event->age_ns <= event->time_ns);
    int64_t moment_ns;

    if (__builtin_sub_overflow(event->time_ns, is_age ? event->age_ns : 0, &moment_ns) ||
        __builtin_sub_overflow(moment_ns, before_ns, &moment_ns))
        return INT64_MIN;
    return moment_ns;
}

static void begin_streamed(struct assembler *assembler, const struct event *event)
{
    const struct endpoint *endpoint = assembler_endpoint(assembler, event);
    struct open_span *open = endpoint ? assembler_open(assembler, event, endpoint) : NULL;

    assembler_count(assembler, open, open != NULL);
    if (!open)
        return;
    assembler->open.has_halves = true; /* nothing searches for the other half */
    open->streaming = true;
    open->span.kind = assembler_kind_of(event->span_kind);
    open->span.debug = event->flags & BLKIN_SPAN_DEBUG;
    open->span.start_ns = assembler_moment_of(event, 0);
    open->span.end_ns = open->span.start_ns;
    open_queue_append(&assembler->streaming, open, assembler->now_ns);
}

static bool apply_detail(struct assembler *assembler, struct open_span *open,
                         const struct event *event, int64_t moment_ns)
{
    struct span *span = &open->span;
    struct text log = event->log;
    struct log_record record;

    if (event->kind == EVENT_ANNOTATION)
        return span_add(span, SPAN_ANNOTATION, event->key, event->value, moment_ns);
    if (!log_next(&log, &record) || strchr("a()#T?", record.type)) {
        assembler->counts.log_errors++; /* same as in the log of a whole span */
        return true;
    }
    assembler->counts.log_errors += log.length != 0; /* a second record is an error */
    /* records that the program has dropped */
    if (record.type == 'u' && record.bits <= BLKIN_DROPPED_MAX &&
        text_is(record.key, "blkin.dropped"))
        assembler->counts.log_errors += record.bits;
    return assembler_add_record(assembler, open, &record, span->start_ns);
}

static void add_detail(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_find_streamed(&assembler->open, event);
    const int64_t moment_ns = assembler_moment_of(event, 0);
    uint32_t capacity;

    if (!open) {
        assembler->counts.events_late++;
        return;
    }
    if (event->kind == EVENT_END) {
        assembler_set_end(&open->span, moment_ns);
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
    open_queue_append(&assembler->streaming, open, assembler->now_ns);
}

void assembler_add_span_api(struct assembler *assembler, const struct event *event)
{
    switch (event->kind) {
    case EVENT_SPAN:
        assembler_add_whole_span(assembler, event);
        break;
    case EVENT_BEGIN:
        begin_streamed(assembler, event);
        break;
    default:
        add_detail(assembler, event);
    }
}
