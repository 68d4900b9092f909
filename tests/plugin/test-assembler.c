/*
 * The assembler: which events make which spans, and when a span is finished.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "assembler_lines.h"
#include "babeltrace-plugin/spans/open_spans.h"

#include <locale.h>
#include <stdlib.h>
#include <unistd.h>

/* Client and server halves under one id are two spans; tags go where their endpoint says. */
static void test_one_span_per_endpoint(void)
{
    struct assembler *assembler = begin();

    annotate(assembler, 10, 2, "client", "cs");
    annotate(assembler, 11, 2, "server", "sr");
    tag(assembler, 12, 2, "server", "offset", 4096);
    annotate(assembler, 13, 2, "server", "ss");
    annotate(assembler, 14, 2, "client", "cr");
    assembler_flush(assembler);
    CHECK_TEXT(finished, "write 1/2<1 server server 11+2 shared sr@11 offset=4096 ss@13\n"
                         "write 1/2<1 client client 10+4 cs@10 cr@14\n");
    CHECK(assembler_counts(assembler)->spans_open == 0);
    CHECK(assembler_counts(assembler)->spans_finished == 2);
    end(assembler);
}

/* A server's half under the client's id is told apart, whichever of the two is given out first. */
static void test_shared(void)
{
    struct assembler *assembler = begin();
    struct event event;

    annotate(assembler, 10, 2, "client", "cs");
    annotate(assembler, 10, 2, "server", "sr");
    annotate(assembler, 11, 2, "client", "cr");
    assembler_advance(assembler, 15 * SECOND);
    assembler_advance(assembler, 30 * SECOND);
    CHECK_TEXT(finished, "write 1/2<1 client client 10+1 cs@10 cr@11\n"
                         "write 1/2<1 server server 10+0 shared sr@10\n");

    /* no client's half of this id; and a late event of a span makes it no half of its own */
    finished[0] = '\0';
    annotate(assembler, 40, 3, "server", "sr");
    annotate(assembler, 40, 4, "both", "cr");
    assembler_advance(assembler, 60 * SECOND);
    annotate(assembler, 60, 4, "both", "ss");
    assembler_flush(assembler);
    CHECK_TEXT(finished, "write 1/4<3 both client 40+0 cr@40\n"
                         "write 1/3<2 server server 40+0 sr@40\n"
                         "write 1/4<3 both server 60+0 ss@60\n");

    /* the client's half is a whole span, given out at once */
    finished[0] = '\0';
    annotate(assembler, 70, 5, "server", "sr");
    annotate(assembler, 71, 5, "server", "ss");
    event = event_of(72, 5, "client");
    event.kind = EVENT_SPAN;
    event.span_kind = SPAN_CLIENT;
    assembler_add(assembler, &event);
    assembler_flush(assembler);
    CHECK(strstr(finished, "server 70+1 sr@70 ss@71\n"));
    annotate(assembler, 72, 6, "server", "sr");
    event.span_id = 6;
    assembler_add(assembler, &event);
    assembler_flush(assembler);
    CHECK(strstr(finished, "server 72+0 shared sr@72\n"));
    end(assembler);
}

/* A closing annotation leaves a second for what follows it; anything else ten. */
static void test_time_outs(void)
{
    struct assembler *assembler = begin();

    annotate(assembler, 10, 2, "s", "sr");
    annotate(assembler, 10, 3, "s", "begin");
    annotate(assembler, 11, 2, "s", "ss");
    tag(assembler, 11, 2, "s", "error", 5);
    assembler_advance(assembler, 12 * SECOND - 1);
    CHECK_TEXT(finished, "");
    assembler_advance(assembler, 12 * SECOND);
    CHECK_TEXT(finished, "write 1/2<1 s server 10+1 sr@10 ss@11 error=5\n");
    assembler_advance(assembler, 20 * SECOND - 1);
    CHECK(assembler_counts(assembler)->spans_open == 1);
    annotate(assembler, 20, 9, "s", "other");
    CHECK_TEXT(finished, "write 1/2<1 s server 10+1 sr@10 ss@11 error=5\n"
                         "write 1/3<2 s local 10+0 begin@10\n");
    end(assembler);
}

/* What closes a span is the user's to say; what gives it its kind is not. */
static void test_closing(void)
{
    static const char longest[] =
        "0123456789012345678901234567890123456789012345678901234567890123";
    struct assembler_options own = options;
    struct assembler *assembler;

    CHECK(closing_add(&own.closing, text_of("op_commit")));
    CHECK(closing_add(&own.closing, (struct text){longest, CLOSING_TEXT_MAX}));
    CHECK(!closing_add(&own.closing, text_of(longest)));
    CHECK(!closing_add(&own.closing, text_of("")));
    finished[0] = '\0';
    assembler = assembler_new(&own, take, NULL);
    annotate(assembler, 10, 2, "s", "sr");
    annotate(assembler, 11, 2, "s", "ss");
    annotate(assembler, 11, 3, "s", "op_commis");
    annotate(assembler, 11, 4, "s", "op_commit");
    annotate(assembler, 11, 5, "s", longest);
    assembler_advance(assembler, 12 * SECOND);
    CHECK_TEXT(finished, "write 1/4<3 s local 11+0 op_commit@11\n");
    assembler_advance(assembler, 21 * SECOND);
    CHECK(strstr(finished, "write 1/2<1 s server 10+1 sr@10 ss@11\n"));
    while (own.closing.count < CLOSING_MAX)
        CHECK(closing_add(&own.closing, text_of("x")));
    CHECK(!closing_add(&own.closing, text_of("x")));
    end(assembler);
}

/* A span of tags alone has their times; time that goes back moves nothing. */
static void test_times(void)
{
    struct assembler *assembler = begin();

    tag(assembler, 10, 2, "s", "a", 1);
    tag(assembler, 13, 2, "s", "b", INT64_MIN);
    annotate(assembler, 20, 3, "s", "late");
    annotate(assembler, 18, 3, "s", "early");
    assembler_advance(assembler, INT64_MIN);
    assembler_flush(assembler);
    CHECK_TEXT(finished, "write 1/2<1 s local 10+3 a=1 b=-9223372036854775808\n"
                         "write 1/3<2 s local 18+2 late@20 early@18\n");
    end(assembler);
}

static void test_invalid_and_huge(void)
{
    static char huge[SPAN_LOG_MAX];
    struct assembler *assembler = begin();
    struct event event = event_of(1, 2, "s");

    event.span_id = 0;
    assembler_add(assembler, &event);
    event.span_id = 2;
    event.trace_id = 0;
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->events_invalid == 2);

    memset(huge, 'x', sizeof(huge));
    annotate(assembler, 1, 2, "s", "fits");
    event = event_of(1, 2, "s");
    event.kind = EVENT_TIMESTAMP;
    event.value = (struct text){huge, sizeof(huge)};
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->events_no_room == 1);
    assembler_flush(assembler);
    CHECK_TEXT(finished, "write 1/2<1 s local 1+0 fits@1\n");
    end(assembler);
}

/* More spans than buckets, one trace id, ids that count up. */
static void test_many(void)
{
    struct assembler *assembler = begin();

    for (uint64_t i = 1; i <= 50000; i++)
        annotate(assembler, 1, i, "s", "cs");
    for (uint64_t i = 1; i <= 50000; i++)
        annotate(assembler, 2, i, "s", "cr");
    CHECK(assembler_counts(assembler)->spans_open == 50000);
    assembler_flush(assembler);
    CHECK(assembler_counts(assembler)->spans_finished == 50000);
    CHECK(assembler_counts(assembler)->events_in_span == 100000);
    end(assembler);
}

/* An end in steps, between which something else can be heeded: each span once, in order. */
static void test_flush_in_steps(void)
{
    struct assembler *assembler = begin();

    for (uint64_t i = 1; i <= 10; i++)
        annotate(assembler, 1, i, "s", "a");
    CHECK(assembler_flush_some(assembler, 4));
    CHECK(assembler_counts(assembler)->spans_finished == 4);
    CHECK(assembler_flush_some(assembler, 4));
    CHECK(assembler_counts(assembler)->spans_finished == 8);
    CHECK(!assembler_flush_some(assembler, 4));
    CHECK(assembler_counts(assembler)->spans_finished == 10);
    CHECK(assembler_counts(assembler)->spans_open == 0);
    end(assembler);
}

/* A program that repeats its ids must not make one long list that every event searches. */
static void test_equal_ids(void)
{
    struct assembler *assembler = begin();
    struct event event = detail(EVENT_BEGIN, 1, 2, 1);

    for (uint64_t i = 1; i <= 60000; i++) {
        event.thread = i;
        assembler_add(assembler, &event);
        CHECK(assembler_counts(assembler)->spans_open <= ALIKE_MAX);
        finished[0] = '\0';
    }
    CHECK(assembler_counts(assembler)->spans_evicted == 60000 - ALIKE_MAX);
    assembler_flush(assembler);
    CHECK(assembler_counts(assembler)->spans_finished == 60000);
    end(assembler);
}

/* ---- the span API's events ---- */

static void test_whole_span(void)
{
    struct assembler *assembler = begin();
    struct event event = detail(EVENT_SPAN, 20, 2, 1);

    event.duration_ns = 5 * SECOND;
    event.age_ns = 2 * SECOND;
    event.span_kind = 2;
    event.log = text_of("6300@I=g100mids40@0pool0123456789abcdef"
                        "I60oooooooooo?offsetB4010000000000syncD4000000000@o3half"
                        "r58:1000000000000803010.0.0.2mon");
    assembler_add(assembler, &event);
    CHECK_TEXT(finished, "write 1/2<1 s server 13+5 mid@15 pool=0123456789abcdef offset=-1"
                         " sync=true half=0.25\n");
    CHECK(assembler_counts(assembler)->log_errors == 0);

    /* what is broken costs itself, and is counted */
    finished[0] = '\0';
    event = detail(EVENT_SPAN, 20, 3, 3);
    event.log = text_of("s1010kvso3o3kv");
    event.dropped = 4;
    assembler_add(assembler, &event);
    CHECK_TEXT(finished, "write 1/3<2 s local 20+0 k=v blkin.dropped=4\n");
    CHECK(assembler_counts(assembler)->log_errors == 5);
    CHECK(assembler_counts(assembler)->events_missing == 1);

    event = detail(EVENT_SPAN, 20, 3, 4);
    event.duration_ns = UINT64_MAX;
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->spans_finished == 3);
    end(assembler);
}

/* What is shown of a number is a number for every reader, whatever the locale of who runs the sink.
 */
static void test_decimal_comma(void)
{
    struct assembler *assembler = begin();
    struct event event = detail(EVENT_SPAN, 20, 2, 1);
    char command[600], folder[256];

    snprintf(folder, sizeof(folder), "/tmp/blkin-locale-%d", (int)getpid());
    snprintf(command, sizeof(command),
             "mkdir -p %s && localedef -i de_DE -f UTF-8 %s/comma >/dev/null 2>&1", folder, folder);
    setenv("LOCPATH", folder, 1);
    if (system(command) != 0 || !setlocale(LC_NUMERIC, "comma"))
        printf("SKIP: no locale with a decimal comma (package locales)\n");
    else
        CHECK_TEXT(localeconv()->decimal_point, ",");
    event.log = text_of("D4000000000@o3halfD40JVIVIVIVin3real");
    assembler_add(assembler, &event);
    CHECK_TEXT(finished, "write 1/2<1 s local 20+0 half=0.25 real=0.1\n");
    setlocale(LC_NUMERIC, "C");
    snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
    end(assembler);
}

static void test_streamed_span(void)
{
    struct assembler *assembler = begin();
    struct event event = detail(EVENT_BEGIN, 10, 2, 1);

    assembler_add(assembler, &event);
    event = detail(EVENT_BEGIN, 10, 3, 2);
    assembler_add(assembler, &event);
    event = detail(EVENT_ANNOTATION, 11, 2, 3);
    event.value = text_of("queued");
    assembler_add(assembler, &event);
    event = detail(EVENT_TAG, 12, 2, 4);
    event.log = text_of("s1010kv");
    assembler_add(assembler, &event);
    CHECK_TEXT(finished, "");
    event = detail(EVENT_END, 13, 2, 5);
    assembler_add(assembler, &event);
    CHECK_TEXT(finished, "write 1/2<1 s local 10+3 queued@11 k=v\n");
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->events_late == 1);

    /* the other one hangs */
    finished[0] = '\0';
    assembler_advance(assembler, 70 * SECOND - 1);
    CHECK_TEXT(finished, "");
    assembler_advance(assembler, 70 * SECOND);
    CHECK_TEXT(finished, "write 1/3<2 s local 10+0 blkin.incomplete=its end was not seen\n");
    CHECK(assembler_counts(assembler)->spans_incomplete == 1);
    CHECK(assembler_counts(assembler)->events_missing == 0);

    event = detail(EVENT_END, 79, 3, 9);
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->events_missing == 3);

    /* what does not stream is numbered on its own */
    event = detail(EVENT_PROCESS, 80, 0, 20);
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->events_process == 1);
    CHECK(assembler_counts(assembler)->events_missing == 3);
    event = detail(EVENT_METRIC, 80, 0, 30);
    assembler_add(assembler, &event);
    event = detail(EVENT_PROCESS, 81, 0, 22);
    assembler_add(assembler, &event);
    event = detail(EVENT_METRIC, 81, 0, 31);
    assembler_add(assembler, &event);
    CHECK(assembler_counts(assembler)->events_missing == 4);
    CHECK(assembler_counts(assembler)->metrics_missing == 0);
    end(assembler);
}

/* The hard caps: what goes early is sent, marked and counted, and memory stays below. */
static void test_caps(void)
{
    struct assembler_options small = options;
    struct assembler *assembler;
    static char text[4000];
    struct event event;

    small.max_open_spans = 2;
    finished[0] = '\0';
    assembler = assembler_new(&small, take, NULL);
    annotate(assembler, 1, 2, "s", "a");
    annotate(assembler, 2, 3, "s", "a");
    annotate(assembler, 3, 2, "s", "b");
    annotate(assembler, 4, 4, "s", "a");
    CHECK_TEXT(finished, "write 1/3<2 s local 2+0 a@2 blkin.incomplete=too many spans were open\n");
    CHECK(assembler_counts(assembler)->spans_evicted == 1);
    CHECK(assembler_counts(assembler)->spans_open == 2);
    end(assembler);

    small.max_open_spans = 1000000;
    small.max_open_bytes = 1 << 20;
    finished[0] = '\0';
    assembler = assembler_new(&small, take, NULL);
    memset(text, 'x', sizeof(text));
    event = event_of(1, 2, "s");
    event.kind = EVENT_TIMESTAMP;
    event.value = (struct text){text, sizeof(text)};
    for (uint64_t i = 0; i < 10000; i++) {
        event.span_id = 1 + i % 500;
        assembler_add(assembler, &event);
        CHECK(assembler_counts(assembler)->open_bytes <= (1 << 20) + 2 * SPAN_LOG_MAX);
    }
    CHECK(assembler_counts(assembler)->spans_evicted > 0);
    assembler_flush(assembler);
    CHECK(assembler_counts(assembler)->open_bytes == 0);
    end(assembler);
}

static void test_too_many_services(void)
{
    struct endpoint_table *table = endpoint_table_new();
    const struct endpoint *endpoint = NULL;

    for (int64_t i = 0; i <= ENDPOINTS_MAX; i++)
        endpoint = endpoint_get(table, text_of("s"), text_of(""), INT64_C(100000) + i);
    CHECK(endpoint_is_overflow(table, endpoint));
    CHECK(!endpoint_is_overflow(table, endpoint_get(table, text_of("s"), text_of(""), 100000)));
    endpoint_table_free(table);
}

static void test_endpoints(void)
{
    static char name[1 << 20];
    struct endpoint_table *table = endpoint_table_new();
    const struct endpoint *endpoint;

    endpoint = endpoint_get(table, text_of("s"), text_of("10.0.0.1"), -15536);
    CHECK_TEXT(endpoint->ipv4, "10.0.0.1");
    CHECK(endpoint->port == 50000);
    CHECK(endpoint_get(table, text_of("s"), text_of("10.0.0.1"), -15536) == endpoint);
    CHECK(endpoint_get(table, text_of("t"), text_of("10.0.0.1"), -15536) != endpoint);
    endpoint = endpoint_get(table, text_of("s"), text_of("fe80::1%eth0"), 0);
    CHECK_TEXT(endpoint->ipv6, "fe80::1");
    CHECK_TEXT(endpoint->ipv4, "");
    endpoint = endpoint_get(table, text_of("s"), text_of("::ffff:10.0.0.2"), 65536);
    CHECK_TEXT(endpoint->ipv4, "10.0.0.2");
    CHECK_TEXT(endpoint->ipv6, "");
    CHECK(endpoint->port == 0);
    endpoint = endpoint_get(table, text_of("s"), text_of("NaN"), 1);
    CHECK(!endpoint->ipv4[0] && !endpoint->ipv6[0] && endpoint->port == 1);
    memset(name, 'n', sizeof(name));
    endpoint = endpoint_get(table, (struct text){name, sizeof(name)}, text_of("::1"), 0);
    CHECK(endpoint->service.length == ENDPOINT_TEXT_MAX && endpoint->ipv6[0]);
    CHECK(endpoint_is(endpoint, (struct text){name, sizeof(name)}, text_of("::1"), 0));
    CHECK(endpoint_get(table, (struct text){name, sizeof(name)}, text_of("::1"), 0) == endpoint);
    endpoint = endpoint_get(table, text_of(""), text_of("osd.example.org"), INT64_MIN);
    CHECK(!endpoint->ipv4[0] && !endpoint->ipv6[0] && endpoint->port == 0);
    endpoint_table_free(table);
}

int main(void)
{
    test_one_span_per_endpoint();
    test_shared();
    test_time_outs();
    test_closing();
    test_times();
    test_invalid_and_huge();
    test_many();
    test_whole_span();
    test_decimal_comma();
    test_flush_in_steps();
    test_equal_ids();
    test_streamed_span();
    test_caps();
    test_too_many_services();
    test_endpoints();
    return check_status();
}
