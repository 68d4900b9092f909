/*
 * Cases of the assembler that scripts/ does not have: clocks that were set, losses, long names and
 * logs, a flush in steps.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/spans/assembler.h"
#include "babeltrace-plugin/spans/source.h"

#include "check.h"

#include <stdlib.h>

static int64_t start_ns, end_ns, annotation_ns, recorded_ns;
static bool is_cut;

static void take(void *context, struct span *span)
{
    (void)context;
    CHECK(span->recorded_ns == recorded_ns);
    is_cut = span->is_cut;
    start_ns = span->start_ns;
    end_ns = span->end_ns;
    SPAN_FOR_EACH_ENTRY(span, entry)
    {
        if (entry->type == SPAN_ANNOTATION)
            annotation_ns = entry->integer;
    }
}

static const struct assembler_options usual = {
    .idle_timeout_ns = 10 * SECOND,
    .end_timeout_ns = SECOND,
    .open_timeout_ns = 60 * SECOND,
    .max_open_spans = 60000,
    .max_open_bytes = 64 << 20,
    .correct_clocks = true,
};

static struct assembler *begin(void)
{
    return assembler_new(&usual, take, NULL);
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

/* Processes first_pid to last_pid report at each second from `from` to `to` - 1. */
static void processes(struct assembler *assembler, int64_t first_pid, int64_t last_pid,
                      int64_t from, int64_t to, int64_t offset_ns)
{
    for (int64_t second = from; second < to; second++) {
        for (int64_t pid = first_pid; pid <= last_pid; pid++)
            process_of(assembler, pid, second, "a", offset_ns);
    }
}

/* Adds a span of five seconds with a step, checks that its times moved equally, and returns by how
 * much. */
static int64_t moved_whole(struct assembler *assembler, int64_t second, const char *host)
{
    struct event event = event_of(EVENT_SPAN, second, 2);

    event.duration_ns = 5 * SECOND;
    event.log = text_of("(0000000000)000000006300@I=g100mid");
    event.origin.host = text_of(host);
    recorded_ns = event.time_ns;
    assembler_add(assembler, &event);
    CHECK(end_ns - start_ns == 5 * SECOND);
    CHECK(annotation_ns - start_ns == 2 * SECOND);
    return end_ns - second * SECOND;
}

/* Noise moves no span, nor does a process that was interrupted. */
TEST(test_noise)
{
    struct assembler *assembler = begin();

    process_of(assembler, 1, 100, "a", -20 * MS);
    CHECK(moved_whole(assembler, 100, "a") == 0);
    process_of(assembler, 1, 101, "a", -5000);
    process_of(assembler, 1, 102, "a", -20 * MS);
    process_of(assembler, 1, 103, "a", -20 * MS);
    process_of(assembler, 1, 104, "a", MS - 1);
    CHECK(moved_whole(assembler, 104, "a") == 0);
    CHECK(assembler_counts(assembler)->spans_corrected == 0);
    process_of(assembler, 1, 105, "a", MS); /* no noise */
    CHECK(moved_whole(assembler, 109, "a") == 0 && moved_whole(assembler, 110, "a") == MS);
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

    process_of(assembler, 1, 99, "a", 0);
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
    CHECK(moved_whole(assembler, 114, "a") == 0); /* began before the clock was set */
    CHECK(moved_whole(assembler, 115, "a") == 7 * SECOND);

    /* the votes of the others are too old when the last sample of a sixth process arrives */
    processes(assembler, 6, 6, 118, 118 + CLOCK_SAMPLES - 1, -8 * SECOND);
    CHECK(moved_whole(assembler, 130, "a") == 7 * SECOND);
    process_of(assembler, 6, 121, "a", -8 * SECOND);
    CHECK(moved_whole(assembler, 122, "a") == 7 * SECOND);
    CHECK(moved_whole(assembler, 123, "a") == -8 * SECOND);
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

static int64_t metric_ns;

static void take_metric(void *context, const struct event *event, int64_t time_ns)
{
    (void)context;
    (void)event;
    metric_ns = time_ns;
}

/* The options say how far the trace's clock is from the wall clock, or that no clock is corrected:
 * the reports of processes move nothing. */
TEST(test_known_clock)
{
    static const struct {
        int64_t wall_clock_ns, moved_ns;
    } cases[] = {{MS, MS}, {MS - 1, 0}, {-MS, -MS}, {1 - MS, 0}, {SECOND, 0}, {0, 0}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const struct event metric = {.kind = EVENT_METRIC, .time_ns = SECOND, .age_ns = MS};
        struct assembler_options options = usual;
        struct assembler *assembler;

        options.wall_clock_ns = cases[i].wall_clock_ns;
        options.correct_clocks = i < 4;
        options.metric = take_metric;
        assembler = assembler_new(&options, take, NULL);
        process_of(assembler, 1, 100, "a", 0);
        process_of(assembler, 1, 101, "a", 60 * SECOND);
        CHECK(moved_whole(assembler, 110, "a") == cases[i].moved_ns);
        assembler_add(assembler, &metric);
        CHECK(metric_ns == SECOND - MS + cases[i].moved_ns);
        assembler_free(assembler);
    }
}

/* ---- losses ---- */

static void check_losses(const struct losses *losses, int64_t from_ns, int64_t to_ns,
                         uint64_t process, struct loss_sum expected)
{
    struct loss_sum sum;

    CHECK(losses_overlap(losses, from_ns, to_ns, process, &sum) ==
          (expected.events || expected.packets || expected.is_more));
    CHECK(sum.events == expected.events && sum.packets == expected.packets);
    CHECK(sum.process == expected.process && sum.is_more == expected.is_more);
}

/* A span overlaps a loss if they have one moment in common, and perhaps the process. */
TEST(test_losses)
{
    static const struct loss_interval intervals[] = {
        {10, 20, 7, 1, 0}, {30, 25, 8, 0, 2}, {40, 50, 0, 0, 0}, {100, 110, 0, UINT64_MAX, 0}};
    struct losses losses = {.last_end_ns = INT64_MIN};

    check_losses(&losses, INT64_MIN, INT64_MAX, 0, (struct loss_sum){0, 0, 0, false});
    for (size_t i = 0; i < LOSSES_MAX; i++)
        CHECK(losses_add(&losses, &intervals[i < 3 ? i : 3]));
    CHECK(losses.last_end_ns == 110);
    check_losses(&losses, 0, 9, 0, (struct loss_sum){0, 0, 0, false});
    check_losses(&losses, 0, 10, 7, (struct loss_sum){1, 0, 7, false});
    check_losses(&losses, 20, 29, 0, (struct loss_sum){1, 0, 7, false});
    check_losses(&losses, 20, 29, 8, (struct loss_sum){0, 0, 0, false});
    check_losses(&losses, 21, 29, 7, (struct loss_sum){0, 0, 0, false});
    check_losses(&losses, 30, 30, 0, (struct loss_sum){0, 2, 8, false});
    check_losses(&losses, 15, 30, 0, (struct loss_sum){1, 2, 0, false});
    check_losses(&losses, 31, 39, 0, (struct loss_sum){0, 0, 0, false});
    check_losses(&losses, 50, 99, 9, (struct loss_sum){0, 0, 0, true});
    check_losses(&losses, 51, 100, 9, (struct loss_sum){UINT64_MAX, 0, 0, false});
    /* the oldest losses are added up: then two, from 10 to 30 */
    CHECK(losses_add(&losses, &intervals[3]));
    check_losses(&losses, 21, 29, 0, (struct loss_sum){0, 0, 0, false});
    CHECK(losses_add(&losses, &intervals[3]));
    check_losses(&losses, 0, 9, 0, (struct loss_sum){0, 0, 0, false});
    check_losses(&losses, 0, 10, 0, (struct loss_sum){0, 0, 0, true});
    check_losses(&losses, 30, 39, 0, (struct loss_sum){0, 0, 0, true});
    check_losses(&losses, 31, 39, 0, (struct loss_sum){0, 0, 0, false});
    free(losses.ring);
}

/* ---- limits, and the flush ---- */

/* A log may have SPAN_LOG_MAX bytes. An entry beyond them leaves the span as it was. */
TEST(test_long_log)
{
    static char bytes[SPAN_LOG_MAX];
    const size_t longest = SPAN_LOG_MAX - 8 - sizeof(struct span_entry);
    struct span span = {.log = NULL};

    CHECK(span_set_name(&span, text_of("eight by")));
    CHECK(!span_add(&span, SPAN_TAG_TEXT, text_of("k"), (struct text){bytes, longest}, 0));
    CHECK(span.log_length == 8);
    CHECK(span_add(&span, SPAN_TAG_TEXT, text_of("k"), (struct text){bytes, longest - 1}, 0));
    CHECK(!span_change_name(&span, text_of("nine byte")) && text_is(span_name(&span), "eight by"));
    CHECK(span.log_length == SPAN_LOG_MAX && span_change_name(&span, text_of("")));
    CHECK(span.log_length == SPAN_LOG_MAX - 8 && span_name(&span).length == 0);
    CHECK(span_find_tag(&span, text_of("k"))->value_length == longest - 1);
    CHECK(span_change_name(&span, text_of("seven b")) && span.log_length == SPAN_LOG_MAX);
    CHECK(span_find_tag(&span, text_of("k"))->value_length == longest - 1);
    free(span.log);
}

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
    struct marks marks = {.first = 0};
    struct assembler_options options = usual;
    const struct assembler_counts *counts;
    struct assembler *assembler;

    options.marks = &marks;
    assembler = assembler_new(&options, take, NULL);
    counts = assembler_counts(assembler);
    recorded_ns = 0;
    for (uint64_t i = 1; i <= 10; i++)
        assembler_add(assembler,
                      &(struct event){
                          .kind = EVENT_TIMESTAMP, .trace_id = 1, .span_id = i, .is_cut = i == 10});
    CHECK(marks.ring[0].open == 10);
    CHECK(assembler_flush_some(assembler, 4) && counts->spans_finished == 4);
    CHECK(assembler_flush_some(assembler, 4) && counts->spans_finished == 8 && !is_cut);
    CHECK(marks.ring[0].open == 2);
    CHECK(!assembler_flush_some(assembler, 4) && counts->spans_finished == 10 && is_cut);
    CHECK(marks.ring[0].open == 0 && counts->spans_open == 0 && counts->open_bytes == 0);
    assembler_free(assembler);
}

CHECK_MAIN
