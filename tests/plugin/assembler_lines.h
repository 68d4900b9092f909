/*
 * What the assembler's tests share: events in, finished spans out as lines of text.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_ASSEMBLER_LINES_H
#define TESTS_ASSEMBLER_LINES_H

#include "babeltrace-plugin/spans/assembler.h"

#include "check.h"

#include <inttypes.h>

#define SECOND INT64_C(1000000000)

static const struct assembler_options options = {
    .idle_timeout_ns = 10 * SECOND,
    .end_timeout_ns = SECOND,
    .open_timeout_ns = 60 * SECOND,
    .max_open_spans = 60000,
    .max_open_bytes = 64 << 20,
};

/* The finished spans, one line each. */
static char finished[4096];

static inline void append(const char *text)
{
    const size_t length = strlen(finished);

    snprintf(finished + length, sizeof(finished) - length, "%s", text);
}

static inline void take(void *context, struct span *span)
{
    static const char *const kinds[] = {"local", "client", "server"};
    char line[256];

    (void)context;
    snprintf(line, sizeof(line),
             "%.*s %" PRIu64 "/%" PRIu64 "<%" PRIu64 " %.*s %s %" PRId64 "+%" PRId64,
             (int)span_name(span).length, span_name(span).data, span->trace_id, span->id,
             span->parent_id, (int)span->endpoint->service.length, span->endpoint->service.data,
             kinds[span->kind], span->start_ns / SECOND, (span->end_ns - span->start_ns) / SECOND);
    append(line);
    if (span->shared)
        append(" shared");
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        const struct text key = span_entry_key(entry), value = span_entry_value(entry);

        if (entry->type == SPAN_ANNOTATION)
            snprintf(line, sizeof(line), " %.*s@%" PRId64, (int)value.length, value.data,
                     entry->integer / SECOND);
        else if (entry->type == SPAN_TAG_TEXT)
            snprintf(line, sizeof(line), " %.*s=%.*s", (int)key.length, key.data, (int)value.length,
                     value.data);
        else
            snprintf(line, sizeof(line), " %.*s=%" PRId64, (int)key.length, key.data,
                     entry->integer);
        append(line);
    }
    append("\n");
}

static inline struct assembler *begin(void)
{
    finished[0] = '\0';
    return assembler_new(&options, take, NULL);
}

/* Frees it and checks the account: every event is in a span or in one counter. */
static inline void end(struct assembler *assembler)
{
    const struct assembler_counts *counts = assembler_counts(assembler);

    CHECK(counts->events == counts->events_in_span + counts->events_invalid +
                                counts->events_no_room + counts->events_late +
                                counts->events_duplicate + counts->events_process +
                                counts->events_metric);
    assembler_free(assembler);
}

static inline struct event event_of(int64_t second, uint64_t span_id, const char *service)
{
    return (struct event){
        .time_ns = second * SECOND,
        .trace_id = 1,
        .span_id = span_id,
        .parent_id = span_id - 1,
        .span_name = text_of("write"),
        .service = text_of(service),
        .ip = text_of("10.0.0.1"),
        .port = 6789,
    };
}

static inline void annotate(struct assembler *assembler, int64_t second, uint64_t span_id,
                            const char *service, const char *value)
{
    struct event event = event_of(second, span_id, service);

    event.kind = EVENT_TIMESTAMP;
    event.value = text_of(value);
    assembler_add(assembler, &event);
}

static inline void tag(struct assembler *assembler, int64_t second, uint64_t span_id,
                       const char *service, const char *key, int64_t value)
{
    struct event event = event_of(second, span_id, service);

    event.kind = EVENT_KEYVAL_INTEGER;
    event.key = text_of(key);
    event.integer = value;
    assembler_add(assembler, &event);
}

/* An event of the span API, of thread 7. */
static inline struct event detail(enum event_kind kind, int64_t second, uint64_t span_id,
                                  uint64_t sequence)
{
    struct event event = event_of(second, span_id, "s");

    event.kind = kind;
    event.thread = 7;
    event.sequence = sequence;
    return event;
}

#endif
