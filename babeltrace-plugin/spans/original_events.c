/*
 * The original's events: each is an annotation or a tag of a span without an end event.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_parts.h"

static bool apply(const struct closing *closing, struct open_span *open, const struct event *event)
{
    struct span *span = &open->span;

    switch (event->kind) {
    case EVENT_TIMESTAMP:
        if (!span_add(span, SPAN_ANNOTATION, (struct text){NULL, 0}, event->value, event->time_ns))
            return false;
        if (!open->has_timestamp || event->time_ns < span->start_ns)
            span->start_ns = event->time_ns;
        if (!open->has_timestamp || event->time_ns > span->end_ns)
            span->end_ns = event->time_ns;
        open->has_timestamp = true;
        /* Zipkin's core annotations give a span its kind */
        if (text_is(event->value, "cs") || text_is(event->value, "cr"))
            span->kind = SPAN_CLIENT;
        else if (text_is(event->value, "sr") || text_is(event->value, "ss"))
            span->kind = SPAN_SERVER;
        open->closing |= closing_has(closing, event->value);
        return true;
    case EVENT_KEYVAL_TEXT:
        return span_add(span, SPAN_TAG_TEXT, event->key, event->value, 0);
    case EVENT_KEYVAL_INTEGER:
        return span_add(span, SPAN_TAG_INTEGER, event->key, (struct text){NULL, 0}, event->integer);
    default:
        return false;
    }
}

/* Returns NULL when out of memory. */
static struct open_span *find_or_open(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = open_spans_find(&assembler->open, event);
    const struct endpoint *endpoint;

    if (open)
        return open;
    endpoint = assembler_endpoint(assembler, event);
    if (!endpoint)
        return NULL;
    /* the overflow stands for many services: the span may have the endpoint of another event */
    if (endpoint_is_overflow(assembler->endpoints, endpoint))
        open = open_spans_find_at(&assembler->open, event, endpoint);
    return open ? open : assembler_open(assembler, event, endpoint);
}

void assembler_add_original(struct assembler *assembler, const struct event *event)
{
    struct open_span *open = find_or_open(assembler, event);
    uint32_t capacity;

    assembler->has_original = true;
    if (!open) {
        assembler->counts.events_no_room++;
        return;
    }
    open->span.is_cut |= event->is_cut;
    capacity = open->span.log_capacity;
    assembler_count(assembler, open, apply(&assembler->options.closing, open, event));
    assembler_account(assembler, open, capacity);
    open_queue_append(open->closing ? &assembler->closing : &assembler->idle, open,
                      assembler->now_ns);
}
