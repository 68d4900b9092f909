/*
 * Losses: which spans are tagged with what was lost in their time.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_lines.h"
#include "babeltrace-plugin/spans/loss.h"

/* LTTng says that events were lost at host between two seconds. */
static void lose(struct assembler *assembler, const char *host, int64_t begin, int64_t end,
                 uint64_t events, uint64_t packets)
{
    assembler_note_loss(assembler, &(struct loss){
                                       .origin = {.host = text_of(host)},
                                       .has_times = true,
                                       .begin_ns = begin * SECOND,
                                       .end_ns = end * SECOND,
                                       .events = events,
                                       .packets = packets,
                                   });
}

static void add_at(struct assembler *assembler, struct event event, const char *host, int64_t pid,
                   const char *value)
{
    event.origin = (struct origin){.host = text_of(host), .pid = pid};
    event.value = text_of(value);
    assembler_add(assembler, &event);
}

/* Tags that tell where a span is from stand before what the test is about. */
static const char *after(const char *what)
{
    const char *found = strstr(finished, what);

    return found ? found : finished;
}

/* An open span of the original's, on the same host, in that time: else it was not touched. */
static void test_original(void)
{
    struct assembler *assembler = begin();

    add_at(assembler, event_of(10, 2, "s"), "a", 0, "sr");
    add_at(assembler, event_of(10, 3, "s"), "b", 0, "sr");
    lose(assembler, "a", 11, 12, 171, 0);
    add_at(assembler, event_of(13, 2, "s"), "a", 0, "ss");
    add_at(assembler, event_of(13, 3, "s"), "b", 0, "ss");
    add_at(assembler, event_of(13, 4, "s"), "a", 0, "sr");
    add_at(assembler, event_of(14, 4, "s"), "a", 0, "ss");
    assembler_flush(assembler);
    CHECK_TEXT(finished, "write 1/2<1 s server 10+3 lttng.host=a sr@10 ss@13"
                         " blkin.lost=up to 171 events lost on a while it was open:"
                         " what it tells may be incomplete\n"
                         "write 1/3<2 s server 10+3 lttng.host=b sr@10 ss@13\n"
                         "write 1/4<3 s server 13+1 lttng.host=a sr@13 ss@14\n");
    CHECK(assembler_counts(assembler)->spans_with_loss == 1);
    end(assembler);
}

/* Nothing has closed it: what was lost after its last event may have been its end. */
static void test_end_not_seen(void)
{
    struct assembler *assembler = begin();

    add_at(assembler, event_of(10, 2, "s"), "a", 0, "sr");
    lose(assembler, "a", 12, 13, 3, 2);
    lose(assembler, "a", 12, 14, 0, 1);
    assembler_advance(assembler, 30 * SECOND);
    CHECK_TEXT(after(" blkin.lost"),
               " blkin.lost=up to 3 events and 3 packets lost on a while it was open:"
               " what it tells may be incomplete\n");
    end(assembler);
}

/* A loss of which no time is known was about now. */
static void test_without_times(void)
{
    struct assembler *assembler = begin();

    add_at(assembler, event_of(10, 2, "s"), "a", 0, "sr");
    add_at(assembler, event_of(20, 2, "s"), "a", 0, "ss");
    add_at(assembler, event_of(19, 3, "s"), "a", 0, "sr");
    add_at(assembler, event_of(19, 3, "s"), "a", 0, "ss");
    assembler_note_loss(assembler, &(struct loss){.origin = {.host = text_of("a")}, .events = 1});
    assembler_flush(assembler);
    CHECK(assembler_counts(assembler)->spans_with_loss == 1);
    CHECK(strstr(finished, "1/2<1") < strstr(finished, "blkin.lost=up to 1 event lost"));
    CHECK(strstr(finished, "blkin.lost=up to 1 event lost") < strstr(finished, "1/3<2"));
    end(assembler);
}

/* A loss of unknown size makes what is known a minimum. */
static void test_unknown_size(void)
{
    struct assembler *assembler = begin();

    add_at(assembler, event_of(10, 2, "s"), "a", 0, "sr");
    lose(assembler, "a", 11, 12, 0, 0);
    assembler_advance(assembler, 30 * SECOND);
    CHECK(strstr(finished, "blkin.lost=events lost on a "));
    lose(assembler, "a", 31, 32, 5, 0);
    lose(assembler, "a", 31, 32, 0, 0);
    add_at(assembler, event_of(31, 3, "s"), "a", 0, "sr");
    assembler_flush(assembler);
    CHECK(strstr(finished, "blkin.lost=5 events or more lost on a "));
    end(assembler);
}

/* A gap in a thread's numbers touches the open spans of its process. */
static void test_gap(void)
{
    struct assembler *assembler = begin();
    struct event other = detail(EVENT_BEGIN, 9, 5, 1);

    other.thread = 8;
    add_at(assembler, other, "a", 43, "");
    add_at(assembler, detail(EVENT_BEGIN, 10, 2, 1), "a", 42, "");
    add_at(assembler, detail(EVENT_END, 13, 2, 5), "a", 42, "");
    CHECK_TEXT(
        finished,
        "write 1/2<1 s local 10+3 lttng.host=a lttng.vpid=42"
        " blkin.lost=up to 3 events lost or filtered out on a in process 42 while it was open:"
        " what it tells may be incomplete\n");
    finished[0] = '\0';
    other = detail(EVENT_END, 14, 5, 2);
    other.thread = 8;
    add_at(assembler, other, "a", 43, "");
    CHECK_TEXT(finished, "write 1/5<4 s local 9+5 lttng.host=a lttng.vpid=43\n");
    end(assembler);
}

/* A session may record slow spans only: its gaps are no news of any whole span. */
static void test_filtered(void)
{
    struct assembler *assembler = begin();

    for (uint64_t i = 1; i <= 3 * LOSSES_MAX; i++) {
        struct event event = detail(EVENT_SPAN, 10, 2, 10 * i);

        event.duration_ns = SECOND;
        event.parent_id = 0;
        assembler_add(assembler, &event);
        add_at(assembler, event_of(10, 3, "s"), "", 0, "sr");
    }
    assembler_flush(assembler);
    CHECK(assembler_counts(assembler)->events_missing > 0);
    CHECK(assembler_counts(assembler)->spans_with_loss == 0);
    end(assembler);
}

/* LTTng and the gap tell of the same events: they are not added up. */
static void test_told_twice(void)
{
    struct assembler *assembler = begin();

    add_at(assembler, detail(EVENT_BEGIN, 10, 2, 1), "a", 42, "");
    lose(assembler, "a", 11, 12, 10, 0);
    add_at(assembler, detail(EVENT_END, 13, 2, 5), "a", 42, "");
    CHECK_TEXT(after(" blkin.lost"), " blkin.lost=up to 10 events lost on a while it was open:"
                                     " what it tells may be incomplete\n");
    end(assembler);
}

static void whole(struct assembler *assembler, int64_t second, uint64_t parent_id, uint64_t kind,
                  uint64_t flags)
{
    struct event event = detail(EVENT_SPAN, second, 2, 0);

    event.duration_ns = 5 * SECOND;
    event.parent_id = parent_id;
    event.span_kind = kind;
    event.flags = flags;
    event.thread = 0;
    assembler_add(assembler, &event);
}

/* Whole spans: only the one through which the trace came into the process answers for the rest. */
static void test_whole(void)
{
    struct assembler *assembler = begin();
    const struct assembler_counts *counts = assembler_counts(assembler);

    lose(assembler, "", 12, 13, 5, 0);
    whole(assembler, 15, 1, SPAN_LOCAL, 0);
    whole(assembler, 15, 1, SPAN_CLIENT, 0);
    CHECK(counts->spans_with_loss == 0);
    whole(assembler, 15, 0, SPAN_LOCAL, 0);
    whole(assembler, 15, 1, SPAN_SERVER, 0);
    whole(assembler, 15, 1, SPAN_LOCAL, 2);
    CHECK(counts->spans_with_loss == 3);
    CHECK(
        strstr(finished,
               " blkin.lost=up to 5 events lost while it was open: spans below it may be missing"));
    whole(assembler, 19, 0, SPAN_LOCAL, 0);
    CHECK(counts->spans_with_loss == 3);
    end(assembler);
}

/* What is too long ago to be known one by one is not forgotten altogether. */
static void test_many_losses(void)
{
    struct assembler *assembler = begin();

    add_at(assembler, event_of(10, 2, "s"), "a", 0, "sr");
    for (int64_t i = 0; i < LOSSES_MAX; i++)
        lose(assembler, "a", 11, 12, 1, 0);
    add_at(assembler, event_of(20, 2, "s"), "a", 0, "ss");
    assembler_flush(assembler);
    CHECK(strstr(finished, "=up to 64 events lost on a "));

    finished[0] = '\0';
    add_at(assembler, event_of(10, 3, "s"), "a", 0, "sr");
    for (int64_t i = 0; i < LOSSES_MAX / 2; i++)
        lose(assembler, "a", 11, 12, 1, 0);
    for (int64_t i = 0; i < LOSSES_MAX / 2; i++)
        lose(assembler, "a", 30, 31, UINT64_MAX, 0);
    add_at(assembler, event_of(20, 3, "s"), "a", 0, "ss");
    assembler_flush(assembler);
    CHECK(strstr(finished, "=32 events or more lost on a "));

    finished[0] = '\0';
    for (int64_t i = 0; i < LOSSES_MAX; i++)
        lose(assembler, "a", 30, 31, UINT64_MAX, 0);
    add_at(assembler, event_of(11, 5, "s"), "a", 0, "sr");
    add_at(assembler, event_of(11, 5, "s"), "a", 0, "ss");
    add_at(assembler, event_of(30, 6, "s"), "a", 0, "sr");
    assembler_flush(assembler);
    CHECK(strstr(finished, "=events lost on a "));
    CHECK(strstr(finished, "=18446744073709551615 events or more lost on a "));
    end(assembler);
}

int main(void)
{
    test_original();
    test_end_not_seen();
    test_without_times();
    test_unknown_size();
    test_gap();
    test_filtered();
    test_told_twice();
    test_whole();
    test_many_losses();
    return check_status();
}
