/*
 * Decodes records to events: all kinds, the times of events, and invalid records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "rings/packed.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/provider_table.h"

#define NOW    INT64_C(0x3000000000000)
#define AFTER  (NOW - 30000000)
#define OFFSET INT64_C(1700000000000000000)

static const struct ring_clock moment = {AFTER, NOW, OFFSET};
static struct event event;
static char payload[1000];
static size_t length;

static void begin(const void *head, size_t size)
{
    memcpy(payload, head, size);
    length = size;
}

static void add(const char *text)
{
    memcpy(payload + length, text, strlen(text) + 1);
    length += strlen(text) + 1;
}

static enum decoded decode(unsigned kind)
{
    const struct ring_entry entry = {kind, 77, payload, length, 4026531836};

    memset(&event, 0xee, sizeof(event));
    return ring_event(&entry, &moment, &event);
}

static void put_span(char version, uint64_t time)
{
    const struct blkin_span_event head = {7, 8, 1000, BLKIN_SPAN_ERROR, 2};

    begin(&head, sizeof(head));
    add("read");
    add(packed_whole(version, time, "xlog"));
    add("osd");
}

TEST(test_span)
{
    put_span('1', NOW - 1000000);
    CHECK(decode(BLKIN_EVENT_SPAN) == DECODED && event.kind == EVENT_SPAN);
    CHECK(event.trace_id_high == 9 && event.trace_id == 7 && event.span_id == 42);
    CHECK(event.parent_id == 8 && event.duration_ns == 1000 && event.flags == BLKIN_SPAN_ERROR);
    CHECK(event.span_kind == 2 && event.sequence == 5 && event.thread == 0x1234);
    CHECK(event.dropped == 3 && event.port == 6789 && event.origin.pid == 77);
    CHECK(text_is(event.span_name, "read") && text_is(event.service, "osd"));
    CHECK(text_is(event.log, "xlog") && text_is(event.ip, "10.0.0.1"));
    CHECK(event.time_ns == NOW - 1000000 + OFFSET && event.age_ns == 0);
}

TEST(test_times)
{
    static const struct {
        int64_t ago, stamp_ago, age;
    } times[] = {
        {0, 0, 0},
        {10000000, 10000000, 0},
        {NOW - AFTER, NOW - AFTER, 0},
        {50000000, NOW - AFTER, 50000000 - (NOW - AFTER)}, /* the program has set the time back */
        {24 * 3600 * SECOND, NOW - AFTER, 24 * 3600 * SECOND - (NOW - AFTER)},
        {-MS, -MS, 0},
        {-MS - 1, NOW - AFTER, 0}, /* impossible: the event gets the earliest possible time */
        {24 * 3600 * SECOND + 1, NOW - AFTER, 0},
    };

    for (size_t i = 0; i < sizeof(times) / sizeof(times[0]); i++) {
        /* the event has 48 bits of the time */
        put_span('1', (uint64_t)(NOW - times[i].ago) & ((UINT64_C(1) << 48) - 1));
        CHECK(decode(BLKIN_EVENT_SPAN) == DECODED);
        CHECK(event.time_ns == NOW - times[i].stamp_ago + OFFSET);
        CHECK(event.age_ns == times[i].age);
    }
    CHECK(ring_clock_offset() > INT64_C(1000000000) * 3600 * 24 * 365 * 30);
}

TEST(test_damage)
{
    put_span('2', NOW);
    CHECK(decode(BLKIN_EVENT_SPAN) == DECODED_NEWER);
    put_span('0', NOW);
    CHECK(decode(BLKIN_EVENT_SPAN) == DECODED_UNREADABLE);
    put_span('1', NOW);
    while (--length)
        CHECK(decode(BLKIN_EVENT_SPAN) == DECODED_UNREADABLE);
    CHECK(decode(BLKIN_EVENT_METRIC) == DECODED_UNREADABLE);
    CHECK(decode(RING_ORIGINAL) == DECODED_UNREADABLE);
    CHECK(decode(BLKIN_EVENTS) == DECODED_FOREIGN);
    CHECK(decode(RING_ORIGINAL + BLKIN_ORIGINAL_EVENTS) == DECODED_FOREIGN);
}

TEST(test_streamed)
{
    const struct blkin_begin_event head = {7, 8, 0, 1};
    const struct blkin_detail_event of = {7};

    begin(&head, sizeof(head));
    add("read"), add(packed_whole('1', NOW, "")), add("osd");
    CHECK(decode(BLKIN_EVENT_BEGIN) == DECODED && event.kind == EVENT_BEGIN);
    CHECK(event.parent_id == 8 && event.span_kind == 1 && event.log.length == 0);
    begin(&of, sizeof(of));
    add(packed_detail(NOW, "a record"));
    CHECK(decode(BLKIN_EVENT_TAG) == DECODED && event.kind == EVENT_TAG);
    CHECK(text_is(event.log, "a record") && event.sequence == 6 && event.trace_id_high == 0);
    CHECK(decode(BLKIN_EVENT_END) == DECODED_UNREADABLE);
    begin(&of, sizeof(of));
    add(packed_detail(NOW, "")), add("queued");
    CHECK(decode(BLKIN_EVENT_END) == DECODED && event.kind == EVENT_END && event.span_id == 42);
    CHECK(decode(BLKIN_EVENT_ANNOTATION + 6) == DECODED && event.kind == EVENT_ANNOTATION);
    CHECK(text_is(event.value, "queued") && event.key.length == 0);
    CHECK(decode(BLKIN_EVENT_ANNOTATION + 3) == DECODED && text_is(event.key, "err"));
}

TEST(test_others)
{
    const struct blkin_process_event process = {123, (uint64_t)NOW - 60000000, 5, 6, 1234};
    const struct blkin_metric_event metric = {(uint64_t)NOW, 5, 6, 100};

    begin(&process, sizeof(process));
    CHECK(decode(BLKIN_EVENT_PROCESS) == DECODED && event.kind == EVENT_PROCESS);
    CHECK(event.realtime == 123 && event.thread == 5 && event.sequence == 6);
    CHECK(event.origin.pid == 1234 && event.origin.pid_namespace == 4026531836);
    /* the event has both clocks of one moment, so its time is not moved to the time of writing */
    CHECK(event.time_ns == NOW - 60000000 + OFFSET && event.age_ns == 0);
    begin(&metric, sizeof(metric));
    add("disk"), add("-"), add("a:B:c"), add("1 2");
    CHECK(decode(BLKIN_EVENT_METRIC) == DECODED && event.kind == EVENT_METRIC);
    CHECK(text_is(event.group, "disk") && event.instance.length == 0);
    CHECK(text_is(event.names, "a:B:c") && text_is(event.values, "1 2") && event.period_ms == 100);
}

TEST(test_original)
{
    const struct ring_original head = {(uint64_t)NOW, 1, 2, 3, -4, 50000};
    char name[RING_NAME_MAX + 2] = "";

    begin(&head, sizeof(head));
    add("write"), add("rados"), add("::1"), add("key"), add("value");
    CHECK(decode(RING_ORIGINAL + 0) == DECODED && event.kind == EVENT_KEYVAL_TEXT);
    CHECK(event.trace_id == 1 && event.span_id == 2 && event.parent_id == 3);
    CHECK(event.trace_id_high == 0 && event.port == 50000 && text_is(event.ip, "::1"));
    CHECK(text_is(event.span_name, "write") && text_is(event.service, "rados"));
    CHECK(text_is(event.key, "key") && text_is(event.value, "value"));
    CHECK(event.time_ns == NOW + OFFSET && !event.is_cut);
    CHECK(decode(RING_ORIGINAL + 1) == DECODED && event.kind == EVENT_KEYVAL_INTEGER);
    CHECK(text_is(event.key, "key") && event.integer == -4);
    CHECK(decode(RING_ORIGINAL + 2) == DECODED && event.kind == EVENT_TIMESTAMP);
    CHECK(text_is(event.value, "key") && !event.is_cut);
    memset(name, 'x', sizeof(name) - 1);
    begin(&head, sizeof(head));
    add("write"), add("rados"), add("::1"), add(name), add("value");
    CHECK(decode(RING_ORIGINAL + 0) == DECODED && event.is_cut);
    CHECK(decode(RING_ORIGINAL + 2) == DECODED && !event.is_cut); /* an event's text */
}

TEST(test_alarm)
{
    struct blkin_slow_event head = {.mark = BLKIN_SLOW_MARK, .trace_id = 5, .pid = 6};
    struct ring_entry entry = {BLKIN_EVENT_SLOW, 77, payload, 0, 78};
    struct ring_alarm alarm;

    begin(&head, sizeof(head));
    add("*>20ms"), add("read"), add("osd");
    CHECK(decode(BLKIN_EVENT_SLOW) == DECODED_ALARM);
    entry.length = length;
    CHECK(ring_alarm(&entry, &alarm) == DECODED_ALARM && alarm.event.trace_id == 5);
    CHECK(text_is(alarm.why, "*>20ms") && text_is(alarm.name, "read"));
    CHECK(text_is(alarm.service, "osd") && alarm.pid_namespace == 78);
    entry.length--;
    CHECK(ring_alarm(&entry, &alarm) == DECODED_UNREADABLE);
    entry.length = 10;
    CHECK(ring_alarm(&entry, &alarm) == DECODED_UNREADABLE);
    head.mark += UINT64_C(1) << 56;
    memcpy(payload, &head, sizeof(head));
    entry.length = length;
    CHECK(ring_alarm(&entry, &alarm) == DECODED_NEWER);
    payload[0] = 'x';
    CHECK(ring_alarm(&entry, &alarm) == DECODED_UNREADABLE);
}

CHECK_MAIN
