/*
 * Spans of a host whose wall clock was set after its session had begun.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_lines.h"
#include "babeltrace-plugin/spans/clock.h"

#define MS INT64_C(1000000)

static int64_t start_ns, end_ns, annotation_ns;

static void take_times(void *context, struct span *span)
{
    (void)context;
    start_ns = span->start_ns;
    end_ns = span->end_ns;
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_ANNOTATION)
            annotation_ns = entry->integer;
    }
}

static struct assembler *begin_clock(bool correct)
{
    struct assembler_options own = options;

    own.correct_clocks = correct;
    return assembler_new(&own, take_times, NULL);
}

/* At second, a process says that the wall clock of host is off the trace's. */
static void process_of(struct assembler *assembler, int64_t pid, int64_t second, const char *host,
                       int64_t offset_ns)
{
    struct event event = {.kind = EVENT_PROCESS, .time_ns = second * SECOND};

    event.origin.host = text_of(host);
    event.origin.pid = pid;
    event.realtime = (uint64_t)(event.time_ns + offset_ns);
    assembler_add(assembler, &event);
}

static void process(struct assembler *assembler, int64_t second, const char *host,
                    int64_t offset_ns)
{
    process_of(assembler, 1, second, host, offset_ns);
}

/* By how much a span of five seconds was moved: the same for all of its times. */
static int64_t moved_whole(struct assembler *assembler, int64_t second, const char *host)
{
    struct event event = detail(EVENT_SPAN, second, 2, 0);

    event.thread = 0;
    event.duration_ns = 5 * SECOND;
    event.log = text_of("6300@I=g100mid");
    event.origin.host = text_of(host);
    assembler_add(assembler, &event);
    CHECK(end_ns - start_ns == 5 * SECOND);
    CHECK(annotation_ns - start_ns == 2 * SECOND);
    return end_ns - second * SECOND;
}

static void annotate_at(struct assembler *assembler, int64_t second, const char *host,
                        const char *value)
{
    struct event event = event_of(second, 3, "s");

    event.kind = EVENT_TIMESTAMP;
    event.origin.host = text_of(host);
    event.value = text_of(value);
    assembler_add(assembler, &event);
}

/* Noise moves nothing, and neither does a process that was interrupted. */
static void test_noise(void)
{
    struct assembler *assembler = begin_clock(true);

    process(assembler, 100, "a", -20 * MS);
    CHECK(moved_whole(assembler, 100, "a") == 0);
    process(assembler, 101, "a", -5000);
    process(assembler, 102, "a", -20 * MS);
    process(assembler, 103, "a", -20 * MS);
    process(assembler, 104, "a", MS - 1);
    CHECK(moved_whole(assembler, 104, "a") == 0);
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    end(assembler);
}

/* The clock was set long ago: each of the host's spans is moved, and no other host's. */
static void test_off_from_the_first(void)
{
    struct assembler *assembler = begin_clock(true);

    annotate_at(assembler, 99, "a", "sr");
    process(assembler, 100, "a", 3600 * SECOND);
    process(assembler, 100, "b", 0);
    annotate_at(assembler, 101, "a", "ss");
    assembler_flush(assembler);
    CHECK(start_ns == 3699 * SECOND && end_ns == 3701 * SECOND && annotation_ns == end_ns);
    CHECK(moved_whole(assembler, 100, "a") == 3600 * SECOND);
    CHECK(moved_whole(assembler, 110, "a") == 3600 * SECOND);
    CHECK(moved_whole(assembler, 110, "b") == 0);
    CHECK(moved_whole(assembler, 110, "c") == 0);
    CHECK(assembler_counts(assembler)->spans_corrected == 3);
    end(assembler);

    assembler = begin_clock(true);
    for (int64_t i = 0; i < CLOCK_SAMPLES; i++)
        process(assembler, 100 + i, "a", -60 * SECOND);
    CHECK(moved_whole(assembler, 104, "a") == -60 * SECOND);
    end(assembler);
}

static void test_step_forward(void)
{
    struct assembler *assembler = begin_clock(true);

    for (int64_t i = 100; i < 110; i++)
        process(assembler, i, "a", -5000);
    process(assembler, 110, "a", 7 * SECOND);
    /* began before: stays with those that ended before */
    CHECK(moved_whole(assembler, 111, "a") == 0);
    CHECK(moved_whole(assembler, 115, "a") == 7 * SECOND);
    /* the same, to within noise */
    process(assembler, 116, "a", 7 * SECOND + 900000);
    CHECK(moved_whole(assembler, 130, "a") == 7 * SECOND);
    process(assembler, 131, "a", 7 * SECOND - 900000);
    CHECK(moved_whole(assembler, 140, "a") == 7 * SECOND);
    end(assembler);
}

static void test_step_back(void)
{
    struct assembler *assembler = begin_clock(true);

    for (int64_t i = 100; i < 110; i++)
        process(assembler, i, "a", 2 * MS);
    CHECK(moved_whole(assembler, 110, "a") == 2 * MS);
    for (int64_t i = 110; i < 110 + CLOCK_SAMPLES; i++)
        process(assembler, i, "a", -2 * MS);
    CHECK(moved_whole(assembler, 114, "a") == 2 * MS);
    CHECK(moved_whole(assembler, 115, "a") == -2 * MS);
    end(assembler);
}

/* A process whose clock is wrong moves nothing on a host where another one says that it is right.
 */
static void test_one_is_wrong(void)
{
    struct assembler *assembler = begin_clock(true);

    for (int64_t i = 100; i < 120; i++) {
        process_of(assembler, 1, i, "a", 0);
        process_of(assembler, 2, i, "a", 3600 * SECOND);
        CHECK(moved_whole(assembler, i, "a") == 0);
    }
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    end(assembler);

    /* it was the first: the next ones are believed as soon as they are sure */
    assembler = begin_clock(true);
    process_of(assembler, 2, 100, "a", 3600 * SECOND);
    CHECK(moved_whole(assembler, 100, "a") == 3600 * SECOND);
    for (int64_t i = 101; i < 101 + CLOCK_SAMPLES; i++)
        process_of(assembler, 1, i, "a", 1000);
    CHECK(moved_whole(assembler, 110, "a") == 1000);
    process_of(assembler, 2, 111, "a", 3600 * SECOND);
    CHECK(moved_whole(assembler, 120, "a") == 1000);
    end(assembler);
}

/* The clock is set while many processes run: the spans follow when the most of them have said so.
 */
static void test_vote(void)
{
    struct assembler *assembler = begin_clock(true);

    for (int64_t second = 100; second < 110; second++) {
        for (int64_t pid = 1; pid <= 5; pid++)
            process_of(assembler, pid, second, "a", 0);
    }
    for (int64_t pid = 1; pid <= 2; pid++)
        process_of(assembler, pid, 110, "a", 7 * SECOND);
    CHECK(moved_whole(assembler, 115, "a") == 0);
    process_of(assembler, 3, 111, "a", 7 * SECOND);
    CHECK(moved_whole(assembler, 112, "a") == 0); /* began before it was set */
    CHECK(moved_whole(assembler, 115, "a") == 7 * SECOND);

    /* four have gone: the one that is left is believed again */
    for (int64_t second = 130; second < 130 + CLOCK_SAMPLES; second++)
        process_of(assembler, 5, second, "a", -3 * SECOND);
    CHECK(moved_whole(assembler, 140, "a") == -3 * SECOND);
    end(assembler);
}

/* Most of the processes are new at each step: their places are taken only when they are silent. */
static void test_many_processes(void)
{
    struct assembler *assembler = begin_clock(true);

    for (int64_t pid = 1; pid <= 4 * CLOCK_VOICES; pid++)
        process_of(assembler, pid, 100, "a", pid <= CLOCK_VOICES ? 0 : 60 * SECOND);
    CHECK(moved_whole(assembler, 110, "a") == 0);
    for (int64_t pid = 101; pid <= 100 + 4 * CLOCK_VOICES; pid++)
        process_of(assembler, pid, 200, "a", 60 * SECOND);
    CHECK(moved_whole(assembler, 210, "a") == 60 * SECOND);
    end(assembler);
}

static void test_off_switch(void)
{
    struct assembler *assembler = begin_clock(false);

    process(assembler, 100, "a", 3600 * SECOND);
    CHECK(moved_whole(assembler, 110, "a") == 0);
    end(assembler);
}

/* What cannot be is not believed, and what does not fit is not moved. */
static void test_nonsense(void)
{
    struct assembler *assembler = begin_clock(true);
    struct event event = {.kind = EVENT_PROCESS, .time_ns = 100 * SECOND};

    assembler_add(assembler, &event);
    event.realtime = UINT64_MAX;
    assembler_add(assembler, &event);
    CHECK(moved_whole(assembler, 100, "") == 0);
    event.realtime = INT64_MAX;
    assembler_add(assembler, &event);
    CHECK(moved_whole(assembler, 200, "") == 0);
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    end(assembler);
}

int main(void)
{
    test_noise();
    test_off_from_the_first();
    test_step_forward();
    test_step_back();
    test_one_is_wrong();
    test_vote();
    test_many_processes();
    test_off_switch();
    test_nonsense();
    return check_status();
}
