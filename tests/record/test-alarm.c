/*
 * Alarms in snapshots that overlap: each is given once, and what is missing is counted.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/record/alarm.h"
#include "ring.h"

#define MS UINT64_C(1000000)

static struct ring_content content;
static struct alarm_reader *reader;
static uint64_t lost;
static unsigned count;
static struct alarm last;
static uint64_t last_monotonic;
static char given[4096]; /* "PID:SEQUENCE " of each */

static void note(void *context, const struct alarm *alarm)
{
    (void)context;
    count++;
    CHECK(alarm->monotonic_ns >= last_monotonic || alarm->trace_id == 0);
    last_monotonic = alarm->monotonic_ns;
    last = *alarm;
    if (strlen(given) < sizeof(given) - 32)
        sprintf(given + strlen(given), "%u:%u ", alarm->pid, alarm->sequence);
}

static void slow(uint32_t pid, uint32_t sequence, uint64_t monotonic)
{
    const struct blkin_slow_event event = {.mark = BLKIN_SLOW_MARK,
                                           .trace_id = monotonic ? 0x1000 + sequence : 0,
                                           .trace_id_high = 7,
                                           .span_id = 0x2000 + sequence,
                                           .duration = 30 * MS,
                                           .monotonic = monotonic,
                                           .pid = pid,
                                           .sequence = sequence};

    ring_other(&content, 29);
    ring_slow(&content, &event, "*>20ms", "write", "osd.3");
}

static void flush(const char *stream)
{
    ring_add(stream, &(struct ring_packet){
                         .begin = 1, .end = 2, .content = content.bytes, .length = content.length});
    content.length = 0;
}

/* Reads a snapshot. Are these its new alarms, and so many lost? */
static void expect(const char *name, const char *alarms, uint64_t expected_lost)
{
    struct error error = {""};

    given[0] = '\0';
    count = 0;
    last_monotonic = 0;
    CHECK(alarm_read(reader, ring_path(name), note, NULL, &lost, &error));
    CHECK_TEXT(given, alarms);
    if (lost != expected_lost)
        fprintf(stderr, "%s: lost %llu, expected %llu\n", name, (unsigned long long)lost,
                (unsigned long long)expected_lost);
    CHECK(lost == expected_lost);
}

static void begin(void)
{
    alarm_reader_free(reader);
    reader = alarm_reader_new();
}

static void empty_snapshot(void)
{
    static char name[32];
    static int number;

    sprintf(name, "empty-%d/0", number++);
    flush(name);
    *strchr(name, '/') = '\0';
    expect(name, "", 0);
}

static void begin_running(void)
{
    begin();
    empty_snapshot();
}

static void test_fields(void)
{
    const struct blkin_slow_event event = {.mark = BLKIN_SLOW_MARK,
                                           .trace_id = 0x1111,
                                           .trace_id_high = 0x2222,
                                           .span_id = 0x3333,
                                           .duration = 44,
                                           .monotonic = 55,
                                           .pid = 66,
                                           .sequence = 1,
                                           .dropped = 88};
    char longest[300];

    begin_running();
    ring_other(&content, 13);
    ring_slow(&content, &event, "osd*:write>20ms", "wr\x1b[31mite\x9f \xc3\xa4\xc2\x9b", "");
    flush("fields/64-bit/blkin_0");
    expect("fields", "66:1 ", 0);
    CHECK(last.trace_id == 0x1111 && last.trace_id_high == 0x2222 && last.span_id == 0x3333);
    CHECK(last.duration_ns == 44 && last.monotonic_ns == 55 && last.dropped == 88);
    CHECK_TEXT(last.why, "osd*:write>20ms");
    CHECK_TEXT(last.name, "wr?[31mite? \xc3\xa4??");
    CHECK_TEXT(last.service, "");

    memset(longest, 'x', sizeof(longest) - 1);
    longest[sizeof(longest) - 1] = '\0';
    memcpy(longest + sizeof(last.name) - 2, "\xe2\x82\xac", 3);
    begin_running();
    ring_slow(&content, &event, longest, longest, longest);
    flush("long/64-bit/blkin_0");
    expect("long", "66:1 ", 0);
    CHECK(strlen(last.why) == sizeof(last.why) - 2); /* before the character that is cut */
    CHECK(strlen(last.service) == sizeof(last.service) - 1);
}

/* The same ones again, in other packets beside new ones, of two CPUs. */
static void test_overlap(void)
{
    begin_running();
    slow(10, 1, 1 * MS);
    slow(10, 3, 3 * MS);
    flush("o1/a/blkin_0");
    slow(10, 2, 2 * MS);
    flush("o1/a/blkin_1");
    expect("o1", "10:1 10:2 10:3 ", 0);
    expect("o1", "", 0);
    slow(10, 1, 1 * MS);
    slow(10, 3, 3 * MS);
    flush("o2/a/blkin_0");
    slow(10, 4, 4 * MS);
    flush("o2/a/blkin_0");
    slow(11, 1, 4 * MS);
    flush("o2/b/blkin_0");
    slow(10, 2, 2 * MS);
    flush("o2/a/blkin_1");
    expect("o2", "10:4 11:1 ", 0);
    empty_snapshot();
}

static void test_lost(void)
{
    begin_running();
    slow(10, 1, 1 * MS);
    slow(10, 5, 5 * MS); /* 3 may still come */
    flush("l1/blkin_0");
    expect("l1", "10:1 10:5 ", 0);
    slow(10, 3, 3 * MS); /* one does */
    slow(10, 6, 6 * MS);
    flush("l2/blkin_0");
    expect("l2", "10:3 10:6 ", 2);
    slow(10, 2, 2 * MS); /* far too late: it was counted */
    slow(10, 8, 8 * MS);
    flush("l3/blkin_0");
    expect("l3", "10:2 10:8 ", 0);
    slow(10, 11, 11 * MS);
    flush("l4/blkin_0");
    expect("l4", "10:11 ", 0); /* 7 is lost: so it is even with the one above */
    slow(10, 12, 12 * MS);
    flush("l5/blkin_0");
    expect("l5", "10:12 ", 2); /* 9 and 10 */
    empty_snapshot();

    /* all that a program has: its first ones are missing */
    slow(12, 4, 11 * MS);
    flush("l6/blkin_0");
    expect("l6", "12:4 ", 0);
    slow(12, 4, 11 * MS);
    flush("l7/blkin_0");
    expect("l7", "", 3);
}

/* A reader that starts later does not know what was before. */
static void test_start(void)
{
    begin();
    slow(10, 9, 2 * MS);
    slow(10, 8, 1 * MS);
    slow(10, 7, 3 * MS); /* another order than that of the times */
    slow(10, 11, 4 * MS);
    flush("s1/blkin_0");
    expect("s1", "10:8 10:9 10:7 10:11 ", 0);
    slow(10, 12, 5 * MS);
    flush("s2/blkin_0");
    expect("s2", "10:12 ", 1);
}

/* Another reader has seen what was in the ring before that was made anew. */
static void test_told(void)
{
    begin();
    alarm_reader_knows(reader, 20, 17);
    alarm_reader_knows(reader, 21, 17);
    empty_snapshot();
    slow(20, 18, 1 * MS);
    slow(21, 20, 2 * MS); /* 18 and 19 are missing */
    slow(22, 3, 3 * MS);  /* nobody knows it: 1 and 2 */
    flush("t1/a/blkin_0");
    expect("t1", "20:18 21:20 22:3 ", 0);
    expect("t1", "", 4);
    begin();
    alarm_reader_knows(reader, 23, 17);
    empty_snapshot();
    slow(23, 5, 1 * MS); /* the pid is another one's now */
    flush("t2/a/blkin_0");
    expect("t2", "23:5 ", 0);
    expect("t2", "", 4);
}

/* The pid is used again; and several containers have the same one. */
static void test_pids(void)
{
    begin_running();
    for (uint32_t i = 1; i <= 5; i++)
        slow(7, i, i * MS);
    flush("p1/blkin_0");
    expect("p1", "7:1 7:2 7:3 7:4 7:5 ", 0);
    for (uint32_t i = 1; i <= 7; i++)
        slow(7, i, 1000 * MS + i * MS);
    flush("p2/blkin_0");
    expect("p2", "7:1 7:2 7:3 7:4 7:5 7:6 7:7 ", 0);
    empty_snapshot();

    begin_running();
    for (uint32_t i = 1; i <= 3; i++)
        slow(7, i, i * MS);
    flush("p3/blkin_0");
    expect("p3", "7:1 7:2 7:3 ", 0);
    for (uint32_t i = 1; i <= 3; i++) {
        slow(7, i, 1000 * MS + i * MS);
        slow(7, 3 + i, 1000 * MS + i * MS);
    }
    flush("p4/blkin_0");
    expect("p4", "7:1 7:4 7:2 7:5 7:3 7:6 ", 0);
    slow(7, 4, 2000 * MS); /* one goes on from 3, the other from 6 */
    slow(7, 8, 2000 * MS);
    flush("p5/blkin_0");
    expect("p5", "7:4 7:8 ", 0);
    slow(7, 6, 3000 * MS);
    flush("p6/blkin_0");
    expect("p6", "7:6 ", 1); /* 7 */
    flush("p7/blkin_0");
    expect("p7", "", 1); /* 5 */
}

/* Those that only tell of `dropped` have no time. */
static void test_dropped(void)
{
    begin_running();
    slow(7, 1, 1000 * MS);
    slow(7, 2, 0);
    flush("dr1/blkin_0");
    expect("dr1", "7:1 7:2 ", 0);
    slow(7, 3, 0);
    slow(7, 4, 2000 * MS);
    flush("dr2/blkin_0");
    expect("dr2", "7:4 7:3 ", 0);
    slow(7, 2, 0); /* of a new process */
    slow(7, 1, 3000 * MS);
    flush("dr3/blkin_0");
    expect("dr3", "7:1 7:2 ", 0);
    empty_snapshot();
    slow(8, 1, 0);
    flush("dr4/blkin_0");
    expect("dr4", "8:1 ", 0);
    slow(8, 2, 5000 * MS);
    flush("dr5/blkin_0");
    expect("dr5", "8:2 ", 0);
    empty_snapshot();
}

/* More processes than are known at a time: nothing is given twice, nothing said to be lost. */
static void test_many(void)
{
    unsigned all = 0;
    uint64_t all_lost = 0;
    struct error error;

    begin_running();
    for (uint32_t round = 0; round < 4; round++) {
        char name[32];

        for (uint32_t pid = 1; pid <= 3000; pid++)
            slow(pid, round + 1, (1 + round) * 100 * MS + pid);
        sprintf(name, "many-%u/blkin_0", round);
        flush(name);
        *strchr(name, '/') = '\0';
        for (int i = 0; i < 2; i++) {
            count = 0;
            last_monotonic = 0;
            CHECK(alarm_read(reader, ring_path(name), note, NULL, &lost, &error));
            CHECK(count == (i ? 0 : 3000));
            all += count;
            all_lost += lost;
        }
    }
    CHECK(all == 12000 && all_lost == 0);
}

/* An alarm at every place of the windows in which a large packet is read. */
static void test_windows(void)
{
    uint32_t sequence = 0;
    struct error error;

    begin_running();
    while (content.length + 4096 < sizeof(content.bytes)) {
        sequence++;
        slow(10, sequence, sequence);
        ring_other(&content, sequence % 61);
    }
    flush("w/blkin_0");
    count = 0;
    last_monotonic = 0;
    CHECK(alarm_read(reader, ring_path("w"), note, NULL, &lost, &error));
    CHECK(count == sequence && sequence > 10000);
}

/* Of a layout that is not known: counted once each, and not given. */
static void test_newer(void)
{
    struct blkin_slow_event event = {.pid = 10};
    char *const version = (char *)&event.mark + 7;

    begin_running();
    slow(10, 1, 1);
    event.mark = BLKIN_SLOW_MARK;
    for (uint32_t i = 1; i <= 2; i++) {
        *version = '2';
        event.sequence = i;
        ring_slow(&content, &event, "*>20ms", "write", "osd.3");
    }
    *version = '0'; /* there was none */
    ring_slow(&content, &event, "*>20ms", "write", "osd.3");
    slow(10, 2, 2);
    flush("n/blkin_0");
    expect("n", "10:1 10:2 ", 0);
    CHECK(alarm_reader_newer(reader) == 2);
    expect("n", "", 0);
    CHECK(alarm_reader_newer(reader) == 0);
}

static void test_damaged(void)
{
    const uint64_t mark = BLKIN_SLOW_MARK;
    const uint32_t other_magic = __builtin_bswap32(0xc1fc1fc1);
    struct ring_packet packet = {.begin = 1, .end = 2, .content = content.bytes};
    struct error error = {""};
    char reversed[4096] = {0};

    begin_running();
    slow(10, 1, 1);
    slow(10, 2, 2);
    packet.length = content.length - 3; /* the second one's last text has no end */
    packet.packet_bytes = RING_HEAD + content.length;
    ring_add("d1/blkin_0", &packet);
    expect("d1", "10:1 ", 0);

    packet.packet_bytes = 100; /* less than the content */
    ring_add("d2/blkin_0", &packet);
    ring_append("d2/blkin_1", "short", 5);
    ring_append("d2/blkin_2", "", 0);
    ring_append("d2/metadata", content.bytes, content.length);
    packet.packet_bytes = 0;
    ring_add("d2/index/blkin_0.idx", &packet);
    CHECK(symlink("../d1/blkin_0", ring_path("d2/link")) == 0);
    CHECK(mkfifo(ring_path("d2/fifo"), 0600) == 0);
    content.length = 0;
    ring_other(&content, 20);
    memcpy(content.bytes + content.length, &mark, sizeof(mark)); /* ends with a mark */
    content.length += sizeof(mark);
    flush("d2/blkin_3");
    empty_snapshot();
    expect("d2", "", 0);

    memcpy(reversed, &other_magic, sizeof(other_magic));
    ring_append("d3/blkin_0", reversed, sizeof(reversed));
    CHECK(!alarm_read(reader, ring_path("d3"), note, NULL, &lost, &error));
    CHECK(strstr(error.text, "d3/blkin_0 was written on a machine of the other byte order"));
    CHECK(!alarm_read(reader, ring_path("none"), note, NULL, &lost, &error));
    CHECK(strstr(error.text, "none: No such file or directory"));
}

int main(void)
{
    ring_begin("test-alarm");
    test_fields();
    test_overlap();
    test_lost();
    test_start();
    test_told();
    test_pids();
    test_dropped();
    test_many();
    test_windows();
    test_newer();
    test_damaged();
    alarm_reader_free(reader);
    ring_end();
    return check_status();
}
