/*
 * A provider without LTTng, for test-portable.sh: prints the events that libblkin lays out, less
 * what differs from run to run. With STREAMING in the environment all events are on, else those of
 * one event per span.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "../../../tracepoints/events.h"
#include "../../../tracepoints/provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct packed_event {
    enum blkin_packed_event number;
};

static struct packed_event events[BLKIN_EVENTS];
static int is_on[BLKIN_EVENTS];
static const int never;

static size_t size_of(enum blkin_packed_event number)
{
    switch (number) {
    case BLKIN_EVENT_SPAN:
        return sizeof(struct blkin_span_event);
    case BLKIN_EVENT_BEGIN:
        return sizeof(struct blkin_begin_event);
    case BLKIN_EVENT_PROCESS:
        return sizeof(struct blkin_process_event);
    default:
        return sizeof(struct blkin_detail_event);
    }
}

/* The strings, with each NUL as a "|" and each digit of times and values as a 0. */
static void record(struct packed_event *event, const void *payload, size_t length,
                   void **thread_slot)
{
    const char *bytes = payload;

    (void)thread_slot;
    printf("%d: ", (int)event->number);
    if (event->number == BLKIN_EVENT_SPAN) {
        struct blkin_span_event span;

        memcpy(&span, payload, sizeof(span));
        printf("%u %u %u %u %u ", span.sampled, span.dropped, span.kind, span.flags, span.port);
    }
    for (size_t i = size_of(event->number); i < length; i++) {
        if (bytes[i] == '\0')
            putchar('|');
        else
            putchar(bytes[i] >= '0' && bytes[i] <= '?' ? '0' : bytes[i]);
    }
    putchar('\n');
}

static void record_nothing(const struct blkin_trace *trace, const struct blkin_endpoint *endpoint,
                           const struct blkin_annotation *annotation)
{
    (void)trace;
    (void)endpoint;
    (void)annotation;
}

static bool follow_forks(bool at_once)
{
    (void)at_once;
    return false;
}

static bool is_registered(void)
{
    return true;
}

static void do_nothing(void)
{
}

#define EVENT(number) [number] = {&is_on[number], &events[number]}

BLKIN_PUBLIC extern const struct blkin_provider blkin_lttng_provider;
const struct blkin_provider blkin_lttng_provider = {
    .version = BLKIN_PROVIDER_VERSION,
    .zipkin = {{&never, record_nothing}, {&never, record_nothing}, {&never, record_nothing}},
    .events = {EVENT(0), EVENT(1), EVENT(2), EVENT(3), EVENT(4), EVENT(5), EVENT(6), EVENT(7),
               EVENT(8), EVENT(9), EVENT(10), EVENT(11), EVENT(12)},
    .record = record,
    .follow_forks = follow_forks,
    .register_process = do_nothing,
    .is_registered = is_registered,
    .init_thread = do_nothing,
};

__attribute__((constructor)) static void switch_on(void)
{
    const bool streaming = getenv("STREAMING") != NULL;

    for (int i = 0; i < BLKIN_EVENTS; i++) {
        events[i].number = (enum blkin_packed_event)i;
        is_on[i] = streaming || i == BLKIN_EVENT_SPAN || i == BLKIN_EVENT_PROCESS;
    }
}
