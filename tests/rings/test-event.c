/*
 * Decodes records to events: all kinds, the times of events, and invalid records.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "check.h"
#include "rings/packed.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/provider_table.h"

#define NOW    INT64_C(0x3000000000000)
#define AFTER  (NOW - 30000000)
#define OFFSET INT64_C(1700000000000000000)

static const struct ring_clock moment = {AFTER, NOW, OFFSET};
static struct event event;
static char payload[RING_RECORD_MAX];
static size_t length;

/* Makes a payload of a struct and texts. */
#define FILL(head, ...) put(&(head), sizeof(head), (const char *const[]){__VA_ARGS__, NULL})

static void put(const void *head, size_t size, const char *const texts[])
{
    memcpy(payload, head, size);
    for (length = size; *texts; length += strlen(*texts++) + 1)
        memcpy(payload + length, *texts, strlen(*texts) + 1);
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

    FILL(head, "read", packed_whole(version, time, "xlog"), "osd");
}

/* Checks a decoded event that has a head of packed_whole(). */
static void check_whole(enum event_kind kind, uint64_t flags, uint64_t span_kind, int64_t ago)
{
    CHECK(event.kind == kind && event.flags == flags && event.span_kind == span_kind);
    CHECK(event.trace_id_high == 9 && event.trace_id == 7 && event.span_id == 42);
    CHECK(event.parent_id == 8 && event.sequence == 5 && event.thread == 0x1234);
    CHECK(event.dropped == 3 && event.port == 6789 && event.origin.pid == 77);
    CHECK(text_is(event.span_name, "read") && text_is(event.service, "osd"));
    CHECK(text_is(event.ip, "10.0.0.1") && event.key.length == 0);
    CHECK(event.time_ns == NOW - ago + OFFSET && event.age_ns == 0);
}

TEST(test_span)
{
    put_span('1', NOW - 1000000);
    CHECK(decode(BLKIN_EVENT_SPAN) == DECODED);
    check_whole(EVENT_SPAN, BLKIN_SPAN_ERROR, 2, 1000000);
    CHECK(event.duration_ns == 1000 && text_is(event.log, "xlog"));
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
    CHECK(ring_clock_offset() + clock_ns() > (time(NULL) - 3600) * SECOND);
    CHECK(ring_clock_offset() + clock_ns() < (time(NULL) + 3600) * SECOND);
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

/* Checks a decoded event that has a head of packed_detail(). */
static void check_detail(enum event_kind kind, const char *value)
{
    CHECK(event.kind == kind && event.trace_id_high == 0 && event.trace_id == 7);
    CHECK(event.span_id == 42 && event.sequence == 6 && event.thread == 0x1234);
    CHECK(event.time_ns == NOW + OFFSET && event.age_ns == 0);
    CHECK(kind == EVENT_ANNOTATION ? text_is(event.value, value) : event.key.length == 0);
}

TEST(test_streamed)
{
    const struct blkin_begin_event head = {7, 8, BLKIN_SPAN_DEBUG, 1};
    const struct blkin_detail_event of = {7};

    FILL(head, "read", packed_whole('1', NOW, ""), "osd");
    CHECK(decode(BLKIN_EVENT_BEGIN) == DECODED && event.log.length == 0);
    check_whole(EVENT_BEGIN, BLKIN_SPAN_DEBUG, 1, 0);
    FILL(of, packed_detail(NOW, "a record"));
    CHECK(decode(BLKIN_EVENT_TAG) == DECODED && text_is(event.log, "a record"));
    check_detail(EVENT_TAG, NULL);
    CHECK(decode(BLKIN_EVENT_END) == DECODED_UNREADABLE);
    FILL(of, packed_detail(NOW, ""), "queued");
    CHECK(decode(BLKIN_EVENT_END) == DECODED);
    check_detail(EVENT_END, NULL);
    CHECK(decode(BLKIN_EVENT_ANNOTATION + 6) == DECODED && event.key.length == 0);
    check_detail(EVENT_ANNOTATION, "queued");
    CHECK(decode(BLKIN_EVENT_ANNOTATION + 3) == DECODED && text_is(event.key, "err"));
    CHECK(decode(BLKIN_EVENT_ANNOTATION) == DECODED && text_is(event.key, "emerg"));
}

TEST(test_others)
{
    const struct blkin_process_event process = {123, (uint64_t)NOW - 60000000, 5, 6, 1234};
    const struct blkin_metric_event metric = {(uint64_t)AFTER - 1, 8, 9, 100};

    FILL(process, "osd", "1.0", "all");
    CHECK(decode(BLKIN_EVENT_PROCESS) == DECODED && event.kind == EVENT_PROCESS);
    CHECK(event.realtime == 123 && event.thread == 5 && event.sequence == 6);
    CHECK(event.origin.pid == 1234 && event.origin.pid_namespace == 4026531836);
    /* the event has both clocks of one moment, so its time is not moved to the time of writing */
    CHECK(event.time_ns == NOW - 60000000 + OFFSET && event.age_ns == 0);
    FILL(metric, "disk", "-", "a:B:c", "1 2");
    CHECK(decode(BLKIN_EVENT_METRIC) == DECODED && event.kind == EVENT_METRIC);
    CHECK(text_is(event.group, "disk") && event.instance.length == 0);
    CHECK(text_is(event.names, "a:B:c") && text_is(event.values, "1 2") && event.period_ms == 100);
    CHECK(event.thread == 8 && event.sequence == 9 && event.origin.pid == 77);
    CHECK(event.time_ns == AFTER + OFFSET && event.age_ns == 1);
}

TEST(test_original)
{
    const struct ring_original head = {(uint64_t)AFTER - 1, 1, 2, 3, -4, 50000};

    FILL(head, "write", "rados", "::1", "key", "value");
    CHECK(decode(RING_ORIGINAL + 0) == DECODED && event.kind == EVENT_KEYVAL_TEXT);
    CHECK(event.trace_id == 1 && event.span_id == 2 && event.parent_id == 3);
    CHECK(event.trace_id_high == 0 && event.port == 50000 && text_is(event.ip, "::1"));
    CHECK(text_is(event.span_name, "write") && text_is(event.service, "rados"));
    CHECK(text_is(event.key, "key") && text_is(event.value, "value"));
    /* the original's events have their own time, also if they were written later */
    CHECK(event.time_ns == AFTER - 1 + OFFSET && event.age_ns == 0);
    CHECK(decode(RING_ORIGINAL + 1) == DECODED && event.kind == EVENT_KEYVAL_INTEGER);
    CHECK(text_is(event.key, "key") && event.integer == -4);
    CHECK(decode(RING_ORIGINAL + 2) == DECODED && event.kind == EVENT_TIMESTAMP);
    CHECK(text_is(event.value, "key") && event.key.length == 0);
}

/* Each text in turn is longer than libblkin writes it; in the end, none. */
TEST(test_cut)
{
    static char name[RING_NAME_MAX + 2], text[RING_TEXT_MAX + 2];
    const struct ring_original head = {.monotonic = (uint64_t)NOW};

    memset(name, 'x', RING_NAME_MAX + 1);
    memset(text, 'x', RING_TEXT_MAX + 1);
    for (unsigned cut = 0; cut <= 5; cut++) {
        FILL(head, name + (cut != 0), name + (cut != 1), name + (cut != 2), name + (cut != 3),
             text + (cut != 4));
        CHECK(decode(RING_ORIGINAL + 0) == DECODED && event.is_cut == (cut < 5));
        CHECK(decode(RING_ORIGINAL + 1) == DECODED && event.is_cut == (cut < 4));
        /* the fourth text is the annotation, which may be longer than a name */
        CHECK(decode(RING_ORIGINAL + 2) == DECODED && event.is_cut == (cut < 3));
    }
}

TEST(test_alarm)
{
    static const char versions[] = "029:1"; /* the last digit of the mark */
    static const enum decoded decoded[] = {DECODED_UNREADABLE, DECODED_NEWER, DECODED_NEWER,
                                           DECODED_UNREADABLE, DECODED_ALARM};
    const struct blkin_slow_event head = {BLKIN_SLOW_MARK, 5, 6, 7, 8, 9, 10, 11, 12};
    struct ring_entry entry = {BLKIN_EVENT_SLOW, 77, payload, 0, 78};
    struct ring_alarm alarm;

    FILL(head, "*>20ms", "read", "osd");
    CHECK(decode(BLKIN_EVENT_SLOW) == DECODED_ALARM);
    entry.length = length;
    for (unsigned i = 0; i < 5; i++) {
        payload[7] = versions[i];
        CHECK(ring_alarm(&entry, &alarm) == decoded[i]);
    }
    CHECK(memcmp(&alarm.event, &head, sizeof(head)) == 0 && alarm.pid_namespace == 78);
    CHECK(text_is(alarm.why, "*>20ms") && text_is(alarm.name, "read"));
    CHECK(text_is(alarm.service, "osd"));
    while (entry.length--)
        CHECK(ring_alarm(&entry, &alarm) == DECODED_UNREADABLE);
    entry.length = length;
    payload[7] = '2', payload[0] = 'x';
    CHECK(ring_alarm(&entry, &alarm) == DECODED_UNREADABLE);
}

CHECK_MAIN
