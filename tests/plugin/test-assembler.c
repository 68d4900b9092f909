/*
 * Cases of the assembler that scripts/ does not have: clocks that were set, long names, a flush in
 * steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/spans/source.h"

#include "check.h"

static int64_t start_ns, end_ns, annotation_ns;

static void take(void *context, struct span *span)
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

static struct assembler *begin(void)
{
    static const struct assembler_options options = {
        .idle_timeout_ns = 10 * SECOND,
        .end_timeout_ns = SECOND,
        .open_timeout_ns = 60 * SECOND,
        .max_open_spans = 60000,
        .max_open_bytes = 64 << 20,
        .correct_clocks = true,
    };

    return assembler_new(&options, take, NULL);
}

static struct event event_of(enum event_kind kind, int64_t second, uint64_t span_id)
{
    return (struct event){
        .kind = kind,
        .time_ns = second * SECOND,
        .trace_id = 1,
        .span_id = span_id,
        .span_name = text_of("write"),
        .service = text_of("s"),
        .value = text_of("x"),
    };
}

/* ---- spans of a host whose wall clock was set after its session had begun ---- */

/* A process reports at that second how much the host's wall clock differs from the trace's. */
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

/* Processes first_pid to last_pid report at each second from `from` to `to` - 1. */
static void processes(struct assembler *assembler, int64_t first_pid, int64_t last_pid,
                      int64_t from, int64_t to, int64_t offset_ns)
{
    for (int64_t second = from; second < to; second++) {
        for (int64_t pid = first_pid; pid <= last_pid; pid++)
            process_of(assembler, pid, second, "a", offset_ns);
    }
}

/* Adds a span of five seconds, checks that its times moved equally, and returns by how much. */
static int64_t moved_whole(struct assembler *assembler, int64_t second, const char *host)
{
    struct event event = event_of(EVENT_SPAN, second, 2);

    event.duration_ns = 5 * SECOND;
    event.log = text_of("6300@I=g100mid");
    event.origin.host = text_of(host);
    assembler_add(assembler, &event);
    CHECK(end_ns - start_ns == 5 * SECOND);
    CHECK(annotation_ns - start_ns == 2 * SECOND);
    return end_ns - second * SECOND;
}

/* Noise moves no span, nor does a process that was interrupted. */
TEST(test_noise)
{
    struct assembler *assembler = begin();

    process(assembler, 100, "a", -20 * MS);
    CHECK(moved_whole(assembler, 100, "a") == 0);
    process(assembler, 101, "a", -5000);
    process(assembler, 102, "a", -20 * MS);
    process(assembler, 103, "a", -20 * MS);
    process(assembler, 104, "a", MS - 1);
    CHECK(moved_whole(assembler, 104, "a") == 0);
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    assembler_free(assembler);
}

/* A difference from the first event on is intended, as with --clock-offset: no span moves until
 * the clock is set. Corrections count from this difference, and from 0 once most processes report
 * no difference. */
TEST(test_off_from_the_first)
{
    for (int sign = -1; sign <= 1; sign += 2) {
        struct assembler *assembler = begin();

        for (int64_t i = 50100; i < 50120; i++) {
            process_of(assembler, 1 + i % 2, i, "a", sign * 3600 * SECOND - (i < 50102) * 5 * MS);
            CHECK(moved_whole(assembler, i, "a") == 0);
        }
        CHECK(assembler_counts(assembler)->spans_corrected == 0);
        processes(assembler, 1, 2, 50120, 50130, sign * 3600 * SECOND + 7 * SECOND);
        CHECK(moved_whole(assembler, 50135, "a") == 7 * SECOND);
        processes(assembler, 1, 2, 50140, 50150, 1000);
        CHECK(moved_whole(assembler, 50155, "a") == 1000);
        assembler_free(assembler);
    }
}

TEST(test_step_back)
{
    struct assembler *assembler = begin();

    process(assembler, 99, "a", 0);
    processes(assembler, 1, 1, 100, 110, 2 * MS);
    CHECK(moved_whole(assembler, 110, "a") == 2 * MS);
    processes(assembler, 1, 1, 110, 110 + CLOCK_SAMPLES, -2 * MS);
    CHECK(moved_whole(assembler, 114, "a") == 2 * MS);
    CHECK(moved_whole(assembler, 115, "a") == -2 * MS);
    assembler_free(assembler);
}

/* One process with a wrong clock moves no span if another process on the host reports that the
 * clock is right. */
TEST(test_one_is_wrong)
{
    struct assembler *assembler = begin();

    for (int64_t i = 100; i < 120; i++) {
        process_of(assembler, 1, i, "a", 0);
        process_of(assembler, 2, i, "a", 3600 * SECOND);
        CHECK(moved_whole(assembler, i, "a") == 0);
    }
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    assembler_free(assembler);

    /* the wrong process is the first */
    assembler = begin();
    processes(assembler, 2, 2, 100, 120, 3600 * SECOND);
    CHECK(moved_whole(assembler, 120, "a") == 0);
    for (int64_t i = 121; i < 130; i++) {
        process_of(assembler, 1, i, "a", 1000);
        process_of(assembler, 3, i, "a", 1000);
        process_of(assembler, 2, i, "a", 3600 * SECOND);
    }
    CHECK(moved_whole(assembler, 140, "a") == 0);
    processes(assembler, 1, 1, 141, 150, 5 * SECOND);
    processes(assembler, 3, 3, 141, 150, 5 * SECOND);
    CHECK(moved_whole(assembler, 155, "a") == 5 * SECOND);
    assembler_free(assembler);
}

/* The clock is set while many processes run: spans move when most processes have reported the
 * change. */
TEST(test_vote)
{
    struct assembler *assembler = begin();

    processes(assembler, 1, 5, 100, 110, 0);
    processes(assembler, 1, 2, 110, 111, 7 * SECOND);
    CHECK(moved_whole(assembler, 115, "a") == 0);
    process_of(assembler, 3, 111, "a", 7 * SECOND);
    CHECK(moved_whole(assembler, 112, "a") == 0); /* began before the clock was set */
    CHECK(moved_whole(assembler, 115, "a") == 7 * SECOND);

    /* the votes of four processes are too old: the fifth process decides */
    processes(assembler, 5, 5, 130, 130 + CLOCK_SAMPLES, -3 * SECOND);
    CHECK(moved_whole(assembler, 140, "a") == -3 * SECOND);
    assembler_free(assembler);
}

/* More processes than slots report, at two times: only silent processes give up their slots. */
TEST(test_many_processes)
{
    struct assembler *assembler = begin();

    processes(assembler, 1, CLOCK_VOICES, 100, 101, 0);
    processes(assembler, CLOCK_VOICES + 1, 4 * CLOCK_VOICES, 100, 101, 60 * SECOND);
    CHECK(moved_whole(assembler, 110, "a") == 0);
    processes(assembler, 101, 100 + 4 * CLOCK_VOICES, 200, 201, 60 * SECOND);
    CHECK(moved_whole(assembler, 210, "a") == 60 * SECOND);
    assembler_free(assembler);
}

/* Impossible times are ignored, and spans without room for the move are not moved. */
TEST(test_nonsense)
{
    struct assembler *assembler = begin();
    struct event event = {.kind = EVENT_PROCESS, .time_ns = 100 * SECOND};

    assembler_add(assembler, &event);
    event.realtime = UINT64_MAX;
    assembler_add(assembler, &event);
    CHECK(moved_whole(assembler, 100, "") == 0);
    event.realtime = INT64_MAX;
    assembler_add(assembler, &event);
    CHECK(moved_whole(assembler, 200, "") == 0);
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    assembler_free(assembler);
}

/* ---- limits, and the flush ---- */

TEST(test_long_service)
{
    static char name[1 << 20];
    const struct text text = {name, sizeof(name)};
    struct endpoint_table *table = endpoint_table_new();
    const struct endpoint *endpoint;

    memset(name, 'n', sizeof(name));
    endpoint = endpoint_get(table, text, text_of("::1"), 0);
    CHECK(endpoint->service.length == ENDPOINT_TEXT_MAX && endpoint->ipv6[0]);
    CHECK(endpoint_is(endpoint, text, text_of("::1"), 0));
    CHECK(endpoint_get(table, text, text_of("::1"), 0) == endpoint);
    CHECK(endpoint_get(table, text, text_of("::2"), 0) != endpoint);
    endpoint_table_free(table);
}

/* Each call of assembler_flush_some() ends some spans, and each span is given out once. */
TEST(test_flush_in_steps)
{
    struct assembler *assembler = begin();
    const struct assembler_counts *counts = assembler_counts(assembler);

    for (uint64_t i = 1; i <= 10; i++)
        assembler_add(assembler,
                      &(struct event){.kind = EVENT_TIMESTAMP, .trace_id = 1, .span_id = i});
    CHECK(assembler_flush_some(assembler, 4) && counts->spans_finished == 4);
    CHECK(assembler_flush_some(assembler, 4) && counts->spans_finished == 8);
    CHECK(!assembler_flush_some(assembler, 4) && counts->spans_finished == 10);
    CHECK(counts->spans_open == 0);
    assembler_free(assembler);
}

CHECK_MAIN
