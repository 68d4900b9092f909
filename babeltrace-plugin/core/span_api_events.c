/*
 * The span API's events: whole spans, and the streaming events of spans in flight.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

#include "log.h"

#include <inttypes.h>
#include <stdio.h>

#include "../../tracepoints/events.h"

static bool add_number(struct span *span, const struct log_record *record)
{
    char text[40];
    double real;

    switch (record->type) {
    case 'd':
        memcpy(&real, &record->bits, sizeof(real));
        snprintf(text, sizeof(text), "%.15g", real);
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

static bool add_log_record(struct assembler *assembler, struct span *span,
                           const struct log_record *record)
{
    switch (record->type) {
    case 'a':
        return span_add(span, SPAN_ANNOTATION, record->key, record->value,
                        (int64_t)((uint64_t)span->start_ns + (uint64_t)record->offset_ns));
    case 's':
        return span_add(span, SPAN_TAG_TEXT, record->key, record->value, 0);
    case 'r':
        span->remote = endpoint_get(assembler->endpoints, record->value, record->key, record->port);
        return span->remote != NULL;
    default:
        return add_number(span, record);
    }
}

/* What is wrong with a log costs its records, not the span. */
static void add_log(struct assembler *assembler, struct span *span, struct text log)
{
    struct log_record record;

    while (log_next(&log, &record)) {
        if (!add_log_record(assembler, span, &record))
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

/* The moment that an event tells of; false if that is not a time after the epoch. */
static bool moment_of(const struct event *event, uint64_t before_ns, int64_t *moment_ns)
{
    if (event->time_ns < 0 || event->age_ns > (uint64_t)event->time_ns ||
        before_ns > (uint64_t)event->time_ns - event->age_ns)
        return false;
    *moment_ns = (int64_t)((uint64_t)event->time_ns - event->age_ns - before_ns);
    return true;
}

/* The span through which its trace came into the process: see assembler_note_loss(). */
static bool is_entry(const struct event *event)
{
    return !event->parent_id || event->flags & BLKIN_SPAN_REMOTE ||
           event->span_kind == SPAN_SERVER || event->span_kind == SPAN_CONSUMER;
}

/*
 * The same span as streaming events: what of it is still open will not be given out. Returns true
 * if it was given out before.
 */
static bool is_repeated(struct assembler *assembler, const struct span *span,
                        const struct event *event)
{
    struct open_span *streamed;

    if (!assembler->has_streamed)
        return false;
    streamed = open_spans_find_repeated(&assembler->open, event, span->kind);
    if (streamed)
        streamed->is_duplicate = true;
    return !streamed && recent_take_streamed(assembler->recent, span,
                                             source_get(assembler->sources, &event->origin));
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
    if (!moment_of(event, event->duration_ns, &span->start_ns)) {
        assembler->counts.events_invalid++;
    } else if (!span->endpoint || !span_set_name(span, event->span_name)) {
        assembler->counts.events_no_room++;
    } else if (is_repeated(assembler, span, event)) {
        assembler->counts.events_duplicate++;
        assembler->counts.spans_duplicate++;
    } else {
        span->debug = event->flags & BLKIN_SPAN_DEBUG;
        span->end_ns = span->start_ns + (int64_t)event->duration_ns;
        assembler_tag_origin(assembler, span, &event->origin);
        add_log(assembler, span, event->log);
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
    if (!moment_of(event, 0, &open->span.start_ns))
        open->span.start_ns = event->time_ns;
    open->span.end_ns = open->span.start_ns;
    queue_append(&assembler->streaming, open, assembler->now_ns);
}

static bool apply_detail(struct assembler *assembler, struct span *span, const struct event *event,
                         int64_t moment_ns)
{
    struct text log = event->log;
    struct log_record record;

    if (event->kind == EVENT_ANNOTATION)
        return span_add(span, SPAN_ANNOTATION, event->key, event->value, moment_ns);
    if (!log_next(&log, &record) || record.type == 'a') {
        assembler->counts.log_errors++; /* as in the log of a whole span */
        return true;
    }
    return add_log_record(assembler, span, &record);
}

static void add_detail(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_find_streamed(&assembler->open, event);
    int64_t moment_ns;
    uint32_t capacity;

    if (!open) {
        assembler->counts.events_late++;
        return;
    }
    if (!moment_of(event, 0, &moment_ns))
        moment_ns = event->time_ns;
    if (moment_ns > open->span.end_ns)
        open->span.end_ns = moment_ns;
    if (event->kind == EVENT_END) {
        assembler_count(assembler, open, true);
        open->closing = true;
        assembler_finish(assembler, open);
        return;
    }
    capacity = open->span.log_capacity;
    assembler_count(assembler, open, apply_detail(assembler, &open->span, event, moment_ns));
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
