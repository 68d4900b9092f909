/*
 * A span that is recorded as a whole and as streaming events is given out once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_lines.h"

#include "tracepoints/format/events.h"

static void add(struct assembler *assembler, enum event_kind kind, int64_t second, uint64_t span_id,
                uint64_t span_kind)
{
    struct event event = detail(kind, second, span_id, 0);

    event.thread = 0;
    event.span_kind = span_kind;
    event.flags = BLKIN_SPAN_STREAMED;
    event.value = text_of("queued");
    event.duration_ns = kind == EVENT_SPAN ? 3 * SECOND : 0;
    assembler_add(assembler, &event);
}

/* What a span given out twice would add to the account, is in the counters. */
static void check_duplicates(struct assembler *assembler, uint64_t spans, uint64_t duplicates,
                             uint64_t duplicate_events)
{
    const struct assembler_counts *counts = assembler_counts(assembler);

    CHECK(counts->spans_finished == spans);
    CHECK(counts->spans_duplicate == duplicates);
    CHECK(counts->events_duplicate == duplicate_events);
    CHECK(counts->events_late == 0);
    CHECK(counts->spans_incomplete == 0 && counts->spans_evicted == 0);
}

/* As libblkin records it. Log levels have selected the annotations of the streamed one. */
static void test_whole_first(void)
{
    struct assembler *assembler = begin();

    add(assembler, EVENT_BEGIN, 10, 2, SPAN_SERVER);
    add(assembler, EVENT_ANNOTATION, 11, 2, 0);
    add(assembler, EVENT_SPAN, 13, 2, SPAN_SERVER);
    add(assembler, EVENT_END, 13, 2, 0);
    CHECK_TEXT(finished, "write 1/2<1 s server 10+3 queued@11\n");
    check_duplicates(assembler, 1, 1, 1);
    CHECK(assembler_counts(assembler)->spans_open == 0);
    CHECK(assembler_counts(assembler)->open_bytes == 0);
    end(assembler);
}

static void test_streamed_first(void)
{
    struct assembler *assembler = begin();

    add(assembler, EVENT_BEGIN, 10, 2, SPAN_SERVER);
    add(assembler, EVENT_ANNOTATION, 11, 2, 0);
    add(assembler, EVENT_END, 13, 2, 0);
    add(assembler, EVENT_SPAN, 13, 2, SPAN_SERVER);
    CHECK_TEXT(finished, "write 1/2<1 s server 10+3 queued@11\n");
    check_duplicates(assembler, 1, 1, 1);
    end(assembler);
}

/* The streamed one's end is lost: the whole one has told it. */
static void test_end_is_lost(void)
{
    struct assembler *assembler = begin();

    add(assembler, EVENT_BEGIN, 10, 2, SPAN_LOCAL);
    add(assembler, EVENT_SPAN, 13, 2, SPAN_LOCAL);
    CHECK_TEXT(finished, "");
    assembler_advance(assembler, 14 * SECOND);
    CHECK_TEXT(finished, "write 1/2<1 s local 10+3\n");
    check_duplicates(assembler, 1, 1, 1);
    end(assembler);
}

/* A hung span was given out as incomplete; when it ends after all, the whole one tells more. */
static void test_incomplete_then_whole(void)
{
    struct assembler *assembler = begin();

    add(assembler, EVENT_BEGIN, 10, 2, SPAN_LOCAL);
    assembler_advance(assembler, 80 * SECOND);
    CHECK_TEXT(finished, "write 1/2<1 s local 10+0 blkin.incomplete=its end was not seen\n");
    finished[0] = '\0';
    add(assembler, EVENT_SPAN, 90, 2, SPAN_LOCAL);
    CHECK_TEXT(finished, "write 1/2<1 s local 87+3\n");
    CHECK(assembler_counts(assembler)->spans_duplicate == 0);
    end(assembler);
}

/* Client and server halves may share one id: neither is the other's duplicate. */
static void test_halves(void)
{
    struct assembler *assembler = begin();

    add(assembler, EVENT_BEGIN, 10, 2, SPAN_CLIENT);
    add(assembler, EVENT_SPAN, 14, 2, SPAN_SERVER);
    add(assembler, EVENT_END, 15, 2, 0);
    add(assembler, EVENT_SPAN, 16, 2, SPAN_SERVER);
    CHECK_TEXT(finished, "write 1/2<1 s server 11+3\n"
                         "write 1/2<1 s client 10+5\n"
                         "write 1/2<1 s server 13+3\n");
    check_duplicates(assembler, 3, 0, 0);
    end(assembler);
}

static void add_of(struct assembler *assembler, enum event_kind kind, int64_t second,
                   uint64_t thread, int64_t pid, uint64_t span_kind)
{
    struct event event = detail(kind, second, 2, 0);

    event.thread = thread;
    event.origin.pid = pid;
    event.span_kind = span_kind;
    event.value = text_of("here");
    assembler_add(assembler, &event);
}

/* Streamed halves with one id: an event goes to its thread's; another thread's to its process's. */
static void test_streamed_halves(void)
{
    struct assembler *assembler = begin();

    add_of(assembler, EVENT_BEGIN, 10, 1, 41, SPAN_CLIENT);
    add_of(assembler, EVENT_BEGIN, 11, 2, 42, SPAN_SERVER);
    add_of(assembler, EVENT_ANNOTATION, 12, 9, 41, 0);
    add_of(assembler, EVENT_ANNOTATION, 13, 2, 42, 0);
    add_of(assembler, EVENT_END, 14, 8, 42, 0);
    add_of(assembler, EVENT_END, 15, 1, 41, 0);
    CHECK_TEXT(finished, "write 1/2<1 s server 11+3 lttng.vpid=42 here@13\n"
                         "write 1/2<1 s client 10+5 lttng.vpid=41 here@12\n");
    check_duplicates(assembler, 2, 0, 0);
    end(assembler);

    assembler = begin();
    add_of(assembler, EVENT_BEGIN, 10, 2, 42, SPAN_SERVER);
    add_of(assembler, EVENT_BEGIN, 11, 2, 42, SPAN_CLIENT);
    add_of(assembler, EVENT_END, 12, 2, 42, 0);
    CHECK_TEXT(finished, "write 1/2<1 s client 11+1 lttng.vpid=42\n");
    assembler_flush(assembler);
    end(assembler);
}

/* Two sessions may record one form each: their clocks' offsets differ, the host does not. */
static void test_two_sessions(void)
{
    struct assembler *assembler = begin();
    struct event event = detail(EVENT_BEGIN, 10, 2, 1);

    event.origin = (struct origin){.host = text_of("a"), .clock = 1};
    assembler_add(assembler, &event);
    event.kind = EVENT_END;
    assembler_add(assembler, &event);
    event.kind = EVENT_SPAN;
    event.flags = BLKIN_SPAN_STREAMED;
    event.origin = (struct origin){.host = text_of("b"), .clock = 2};
    assembler_add(assembler, &event);
    event.origin = (struct origin){.host = text_of("a"), .clock = 2};
    assembler_add(assembler, &event);
    check_duplicates(assembler, 2, 1, 1);
    end(assembler);
}

/* As many as a busy host ends in a row. */
static void test_many(void)
{
    struct assembler *assembler = begin();

    for (uint64_t i = 1; i <= 10000; i++)
        add(assembler, EVENT_BEGIN, 10, i, SPAN_LOCAL);
    for (uint64_t i = 1; i <= 10000; i++) {
        add(assembler, i % 2 ? EVENT_END : EVENT_SPAN, 13, i, SPAN_LOCAL);
        add(assembler, i % 2 ? EVENT_SPAN : EVENT_END, 13, i, SPAN_LOCAL);
    }
    check_duplicates(assembler, 10000, 10000, 10000);
    end(assembler);
}

int main(void)
{
    test_whole_first();
    test_streamed_first();
    test_end_is_lost();
    test_incomplete_then_whole();
    test_halves();
    test_streamed_halves();
    test_two_sessions();
    test_many();
    return check_status();
}
