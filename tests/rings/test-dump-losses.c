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
#include "writer.h"

#include <sys/stat.h>
#include <unistd.h>

static struct error error;
static struct memory memory;
static struct dump_counts counts;
static char folder[200];
static char output[1 << 20]; /* output of babeltrace2 */

static void put(const struct writer *writer, int64_t time_ns, uint64_t number)
{
    writer_put_original(writer, time_ns, 1, number);
}

static void begin(void)
{
    memory = writer_memory(7, 2, RING_BYTES_MIN);
}

static struct writer begin_ring(unsigned ring)
{
    static int lock;

    begin();
    lock = 0;
    return (struct writer){memory_ring(&memory, ring), &lock};
}

/* Returns the number of lines of babeltrace2's output with the text. */
static unsigned lines_with(const char *text)
{
    unsigned count = 0;

    for (const char *at = output; (at = strstr(at, text)); at += strlen(text))
        count++;
    return count;
}

static void run_babeltrace2(const char *options)
{
    char command[300];
    FILE *from;
    size_t length;

    (void)snprintf(command, sizeof(command), "timeout 60 babeltrace2 %s %s 2>&1", folder, options);
    from = popen(command, "r");
    if (!from)
        exit(1);
    length = fread(output, 1, sizeof(output) - 1, from);
    output[length] = '\0';
    CHECK(pclose(from) == 0);
}

static void remove_dump(void)
{
    char command[300];

    (void)snprintf(command, sizeof(command), "rm -r %s", folder);
    CHECK(system(command) == 0);
}

static void dump_all(const struct dump_memory *from, unsigned memories,
                     const char *options_of_reader)
{
    const struct dump_options options = {folder, "a \"host\"\n", ring_clock_offset()};

    if (!dump_memories(from, memories, &options, &counts, &error))
        fprintf(stderr, "%s\n", error.text), exit(1);
    CHECK(counts.records == counts.events + counts.left_out);
    run_babeltrace2(options_of_reader);
    remove_dump();
}

static void dump_for(const char *options_of_reader)
{
    dump_all(&(struct dump_memory){&memory, 7}, 1, options_of_reader);
    memory_close(&memory);
}

static void dump(void)
{
    dump_for("");
}

TEST(test_nothing)
{
    begin();
    dump();
    CHECK(counts.records == 0 && counts.streams == 0 && counts.overwritten_bytes == 0);
}

/* Times that go back, a time before the host's start, and an impossible time: the dump has all
 * events, and those with possible times in order. */
TEST(test_times)
{
    const int64_t now_ns = clock_ns();
    const struct writer writer = begin_ring(1);

    put(&writer, now_ns + (INT64_C(1) << 50), 1);
    put(&writer, now_ns - 1000, 2);
    put(&writer, now_ns - 3000, 3);
    put(&writer, now_ns - 2000, 4);
    put(&writer, -1000000, 5);
    dump();
    CHECK(counts.events == 5 && counts.streams == 1);
    CHECK(lines_with("zipkin:timestamp") == 5 && lines_with("iscarded") == 0);
    CHECK(lines_with("a \"host\"\n") == 5);
    CHECK(strstr(output, "span_id = 3") < strstr(output, "span_id = 4"));
    CHECK(strstr(output, "span_id = 4") < strstr(output, "span_id = 2"));
}

/* Two memories have the same head, as a program can copy a head: the dump has both. */
TEST(test_twins)
{
    const struct writer writer = begin_ring(0);
    struct memory twin;

    CHECK(memory_open(&twin, dup(memory.fd), &error));
    put(&writer, clock_ns(), 1);
    dump_all((struct dump_memory[]){{&memory, 7}, {&twin, 7}}, 2, "");
    CHECK(counts.events == 2 && counts.streams == 2 && lines_with("zipkin:timestamp") == 2);
    memory_close(&twin);
    memory_close(&memory);
}

/* A wrong payload is left out and counted. */
TEST(test_unreadable)
{
    const struct writer writer = begin_ring(0);

    put(&writer, clock_ns(), 1);
    (void)writer_put(&writer, 200, 1, "no event of ours", 17);
    (void)writer_put(&writer, 0, 1, "too short", 10);
    (void)writer_put(&writer, 6, 1, "12345678not terminated", 22);
    put(&writer, clock_ns(), 2);
    dump();
    CHECK(counts.events == 2 && counts.left_out == 3);
    CHECK(lines_with("zipkin:timestamp") == 2 && lines_with("iscarded 3 events") == 1);
}

/* A record that is too long: its bytes and those of older records count as damaged. */
TEST(test_too_long)
{
    static char payload[20000];
    const struct ring_original head = {.monotonic = (uint64_t)clock_ns(), .trace_id = 1};
    const struct writer writer = begin_ring(0);

    memset(payload, 'x', sizeof(payload) - 1);
    memcpy(payload, &head, sizeof(head));
    memcpy(payload + sizeof(head), "name\0service\0", 14);
    put(&writer, clock_ns(), 1);
    (void)writer_put(&writer, RING_ORIGINAL + 2, 1, payload, sizeof(payload));
    put(&writer, clock_ns(), 2);
    dump();
    CHECK(counts.events == 1 && counts.left_out == 0 && counts.damaged_bytes > sizeof(payload));
    CHECK(lines_with("zipkin:timestamp") == 1 && lines_with("iscarded 1 packet") == 1);
}

/* Overwritten records are reported as missing packets, as the number of events is not known. */
TEST(test_overwritten)
{
    const struct writer writer = begin_ring(0);

    for (unsigned i = 0; i < 2000; i++)
        put(&writer, clock_ns(), i);
    dump();
    CHECK(counts.events > 400 && counts.overwritten_bytes > 0);
    CHECK(lines_with("iscarded 1 packet") == 1);
}

/* Random bytes: each dumped event can be read, and all other records are counted. */
TEST(test_random)
{
    uint64_t seed = seed_begin();
    char payload[600], expected[60];
    const struct writer writer = begin_ring(0);

    for (unsigned i = 0; i < 150; i++) {
        const unsigned event = seed_next(&seed) % (seed_next(&seed) % 4 ? 15 : 255);
        const size_t length = seed_next(&seed) % sizeof(payload);

        for (size_t at = 0; at < length; at++)
            payload[at] = (char)(seed_next(&seed) % 16 ? seed_next(&seed) : 0);
        (void)writer_put(&writer, event, (uint32_t)seed_next(&seed), payload, length);
    }
    dump_for("-c sink.utils.counter");
    CHECK(counts.records == 150 && counts.events > 20 && counts.left_out > 20);
    (void)snprintf(expected, sizeof(expected), " %llu Event message",
                   (unsigned long long)counts.events);
    CHECK(lines_with(expected) == 1);
}

CHECK_MAIN_WITH((void)snprintf(folder, sizeof(folder), "%s/dump", getenv("TMPDIR")), (void)0)
