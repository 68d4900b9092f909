/*
 * A provider that needs no LTTng: it has all events enabled and counts the whole spans it gets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../tracepoints/events.h"
#include "../../../tracepoints/provider.h"

#include <string.h>

static const int off = 0, on = 1;
static unsigned long spans, broken;

static void record_zipkin(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                          const struct blkin_annotation *annotation)
{
    (void)trace;
    (void)endpoint;
    (void)annotation;
}

/* Spans come with an event pointer, all others with NULL. */
static void record(struct packed_event *event, const void *payload, size_t length)
{
    struct blkin_span_event span;

    if (!event)
        return;
    memcpy(&span, payload, sizeof(span));
    __atomic_add_fetch(&spans, 1, __ATOMIC_RELAXED);
    if (length <= sizeof(span) || !span.trace_id || !span.span_id || !span.thread)
        __atomic_add_fetch(&broken, 1, __ATOMIC_RELAXED);
}

BLKIN_PUBLIC unsigned long counted_spans(void);
unsigned long counted_spans(void)
{
    return __atomic_load_n(&spans, __ATOMIC_RELAXED);
}

BLKIN_PUBLIC unsigned long broken_spans(void);
unsigned long broken_spans(void)
{
    return __atomic_load_n(&broken, __ATOMIC_RELAXED);
}

BLKIN_PUBLIC extern const struct blkin_provider blkin_lttng_provider;
const struct blkin_provider blkin_lttng_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {{&on, record_zipkin}, {&on, record_zipkin}, {&on, record_zipkin}},
    .events =
        {
            [BLKIN_EVENT_SPAN] = {&on, (struct packed_event *)(void *)&spans},
            [BLKIN_EVENT_BEGIN] = {&off, NULL},
            [BLKIN_EVENT_TAG... BLKIN_EVENTS - 1] = {&on, NULL},
        },
    .record = record,
};
