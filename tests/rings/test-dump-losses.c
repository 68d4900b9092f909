/*
 * Dumps of rings with lost, wrong or disordered records: babeltrace2 reads them.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "check.h"
#include "seed.h"
#include "tools/rings/dump.h"
#include "tools/rings/ring_event.h"
#include "tracepoints/format/provider_table.h"
#include "writer.h"

#include <unistd.h>

#define DUMP_HOST "a \"host\"\n\\~\x7f\xff"
#define BASE_NS   (1700000000 * SECOND)
#define AS_TEXT   "--clock-seconds --no-delta"
#define PUT       80 /* bytes of a record of put() */

static struct error error;
static struct memory memory;
static struct dump_counts counts;
static int64_t base_ns; /* CLOCK_MONOTONIC: a dump shows this time as BASE_NS */
static char folder[200];
static char output[1 << 21]; /* babeltrace2's, then names of files and parts of the metadata */

/* ago_ns: before base_ns */
static void put(const struct writer *writer, int64_t ago_ns, uint64_t number)
{
    writer_put_original(writer, base_ns - ago_ns, 1, number);
}

static struct writer begin_ring(unsigned ring, uint64_t bytes)
{
    memory = writer_memory(7, 2, bytes);
    base_ns = clock_ns();
    return writer_alone(&memory, ring);
}

/* Returns the number of times that the output has the text. */
static unsigned lines_with(const char *text)
{
    unsigned count = 0;

    for (const char *at = output; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

/* Dumps the memories, reads the dump with these options of babeltrace2, and removes it. */
static void dump_all(const struct dump_memory *from, unsigned memories, const char *options)
{
    char command[300];
    FILE *reader;
    size_t length;

    if (!dump_memories(from, memories, &(struct dump_options){folder, DUMP_HOST, BASE_NS - base_ns},
                       &counts, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
    CHECK(counts.records == counts.events + counts.left_out);
    (void)snprintf(command, sizeof(command),
                   "set -e; timeout 60 babeltrace2 $DUMP %s 2>&1; "
                   "ls $DUMP; grep -E 'offset|hostname' $DUMP/metadata; rm -r $DUMP",
                   options);
    reader = popen(command, "r");
    length = fread(output, 1, sizeof(output) - 1, reader);
    output[length] = '\0';
    CHECK(pclose(reader) == 0);
}

static void dump(const char *options)
{
    dump_all(&(struct dump_memory){&memory, 7}, 1, options);
    memory_close(&memory);
}

TEST(test_nothing)
{
    (void)begin_ring(0, RING_BYTES_MIN);
    base_ns = BASE_NS + 1500000001;
    dump(AS_TEXT);
    CHECK(memcmp(&counts, &(struct dump_counts){0}, sizeof(counts)) == 0);
    CHECK_TEXT(output, "metadata\n\thostname = \"a\\040\\042host\\042\\012\\134~\\177\\377\";\n"
                       "\toffset_s = -2;\n\toffset = 499999999;\n");
}

/* Times that go back, a time before the host's start, and an impossible time: the dump has all
 * events, and those with possible times in order. The others have the time of an earlier event. */
TEST(test_times)
{
    const struct writer writer = begin_ring(1, RING_BYTES_MIN);
    const int64_t agos_ns[] = {-(INT64_C(1) << 50), 1000, 3000, 2000, base_ns + 1000000};
    static const char numbers[] = "34125", last_digits[] = "78999";
    static char expected[3000];
    size_t length = 0;

    for (unsigned i = 0; i < 5; i++)
        put(&writer, agos_ns[i], i + 1);
    dump(AS_TEXT);
    for (unsigned i = 0; i < 5; i++)
        length += (size_t)sprintf(
            expected + length,
            "[1699999999.99999%c000] " DUMP_HOST " zipkin:timestamp: { cpu_id = 1 }, "
            "{ vpid = 1, pid_ns = 0 }, { monotonic = %llu, trace_id = 1, span_id = %c, "
            "parent_span_id = 0, unused = 0, port_no = 0, trace_name = \"name\", "
            "service_name = \"service\", ip = \"\", event = \"event\" }\n",
            last_digits[i], (unsigned long long)(base_ns - agos_ns[numbers[i] - '1']), numbers[i]);
    length += (size_t)sprintf(expected + length, "events-7-0_1\nmetadata\n");
    CHECK(counts.events == 5 && counts.streams == 1 && strncmp(output, expected, length) == 0);
}

/* An alarm has the time of its span's end, but not an earlier time than the alarm before it. */
TEST(test_alarms)
{
    const int64_t ago_ns[] = {2000, 5000, -(INT64_C(1) << 50), 1000, 0};
    const struct writer writer = begin_ring(3, RING_BYTES_MIN);
    struct {
        struct blkin_slow_event head;
        char texts[10];
    } alarm = {{.mark = BLKIN_SLOW_MARK}, "why\0a\0osd"};

    for (unsigned i = 0; i < 5; i++) {
        alarm.head.monotonic = (uint64_t)(base_ns - ago_ns[i]);
        alarm.head.mark += i == 4; /* not readable, but the trace has it */
        (void)writer_put(&writer, BLKIN_EVENT_SLOW, 1, &alarm, sizeof(alarm));
    }
    dump(AS_TEXT);
    CHECK(counts.events == 5 && lines_with("\nalarms-7-0_1\n") == 1);
    CHECK(lines_with("[1699999999.999998000] " DUMP_HOST " blkin:slow: { cpu_id = 1 }") == 3);
    CHECK(lines_with("[1699999999.999999000] " DUMP_HOST " blkin:slow: { cpu_id = 1 }") == 2);
}

/* Two memories have the same head, as a program can copy a head: the dump has both. */
TEST(test_twins)
{
    const struct writer writer = begin_ring(0, RING_BYTES_MIN);
    struct memory twin;

    CHECK(memory_open(&twin, dup(memory.fd), &error));
    ((struct ring_memory *)(void *)memory.at)->lost = 3;
    put(&writer, -(INT64_C(1) << 50), 1); /* the only event gets the time of the dump */
    dump_all((struct dump_memory[]){{&memory, 7}, {&twin, 7}}, 2, AS_TEXT);
    CHECK(counts.events == 2 && counts.streams == 2 && lines_with("zipkin:timestamp") == 2);
    CHECK(counts.not_written == 6 && lines_with("\nevents-7-0_0\nevents-7-1_0\nmetadata\n") == 1);
    CHECK(lines_with("[17000") == 2);
    memory_close(&twin);
    memory_close(&memory);
}

/* A wrong payload is left out and counted. */
TEST(test_unreadable)
{
    const struct writer writer = begin_ring(0, RING_BYTES_MIN);

    put(&writer, 1000, 1);
    (void)writer_put(&writer, 200, 1, "no event of ours", 17);
    (void)writer_put(&writer, 0, 1, "too short", 10);
    (void)writer_put(&writer, 6, 1, "12345678not terminated", 22);
    put(&writer, 0, 2);
    dump(AS_TEXT);
    CHECK(counts.events == 2 && counts.left_out == 3 && lines_with("zipkin:timestamp") == 2);
    CHECK(lines_with("iscarded 3 events between [1699999999.999999000] and "
                     "[1700000000.000000000]") == 1);
}

/* A record that is too long: its bytes and those of older records count as damaged. */
TEST(test_too_long)
{
    static char payload[20000];
    const struct writer writer = begin_ring(0, RING_BYTES_MIN);

    put(&writer, 2000, 1);
    (void)writer_put(&writer, RING_ORIGINAL + 2, 1, payload, sizeof(payload));
    put(&writer, 1000, 2);
    dump(AS_TEXT);
    CHECK(counts.events == 1 && counts.left_out == 0 && counts.overwritten_bytes == 0);
    CHECK(counts.damaged_bytes == PUT + ring_record_size(8 + sizeof(payload)));
    CHECK(lines_with("zipkin:timestamp") == 1 && lines_with("iscarded 1 packet") == 1);
    CHECK(lines_with("] and [1699999999.999999000] in trace ") == 1);
}

/* Overwritten records are reported as missing packets, as the number of events is not known. The
 * ring has 819 records and 16 bytes of padding. The dump has the 767 records in the last bytes but
 * RING_RECORD_MAX. */
TEST(test_overwritten)
{
    const struct writer writer = begin_ring(0, RING_BYTES_MIN);

    for (unsigned i = 0; i < 2000; i++)
        put(&writer, 0, i);
    dump(AS_TEXT);
    CHECK(counts.events == 767 && counts.damaged_bytes == 0);
    CHECK(counts.overwritten_bytes == RING_BYTES_MIN + 414 * PUT);
    CHECK(lines_with("iscarded 1 packet") == 1);
}

/* A stream has an empty packet, then packets of 256 KiB at most. An event has 79 bytes there. */
TEST(test_packets)
{
    const struct writer writer = begin_ring(0, 1 << 20);

    for (unsigned i = 0; i < 5000; i++)
        put(&writer, 0, i);
    dump("-c sink.utils.counter");
    CHECK(counts.events == 5000 && lines_with(" 5000 Event message") == 1);
    CHECK(lines_with(" 3 Packet beginning messages") == 1 && lines_with("iscarded") == 2);
}

/* Random bytes: each dumped event can be read, and all other records are counted. */
TEST(test_random)
{
    uint64_t seed = seed_begin();
    char payload[600], expected[60];
    const struct writer writer = begin_ring(0, RING_BYTES_MIN);

    for (unsigned i = 0; i < 150; i++) {
        const unsigned event = seed_next(&seed) % (seed_next(&seed) % 4 ? 15 : 255);
        const size_t length = seed_next(&seed) % sizeof(payload);

        for (size_t at = 0; at < length; at++)
            payload[at] = (char)(seed_next(&seed) % 16 ? seed_next(&seed) : 0);
        (void)writer_put(&writer, event, (uint32_t)seed_next(&seed), payload, length);
    }
    dump("-c sink.utils.counter");
    CHECK(counts.records == 150 && counts.events > 20 && counts.left_out > 20);
    (void)snprintf(expected, sizeof(expected), " %llu Event message",
                   (unsigned long long)counts.events);
    CHECK(lines_with(expected) == 1);
}

CHECK_MAIN_WITH((snprintf(folder, sizeof(folder), "%s/dump", getenv("TMPDIR")),
                 setenv("DUMP", folder, 1)),
                (void)0)
