/*
 * What a span costs its reader: from the ring to struct event, and from the ring to an encoded
 * batch in a file. In turns; prints the CPU time of each round in ns per span.
 *
 *     bench-follow [ROUNDS [FOLDER]]
 *
 * FOLDER: is made, and gets a trace of one round's spans: what they cost another reader.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "babeltrace-plugin/base/monotonic.h"
#include "piped.h"
#include "tools/rings/dump.h"
#include "writer.h"

#define BLKIN_PORTABLE
#include "tracepoints/format/digits.h"
#include "tracepoints/format/provider_table.h"

#include <unistd.h>

#define SPANS  20000
#define ROUNDS 20

static uint64_t random_state = 88172645463325252U, given;
static struct memory memory;

static int64_t cpu_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* ---- a span with two annotations and two tags ------------------------------------------------ */

static char *put_annotation(char *at, const char *text, uint64_t time)
{
    *at++ = '6';
    at = blkin_put_word(blkin_put_length(at, strlen(text)), time);
    return stpcpy(at, text);
}

static char *put_tag(char *at, const char *key, const char *value)
{
    *at++ = 's';
    at = blkin_put_length(blkin_put_length(at, strlen(key)), strlen(value));
    return stpcpy(stpcpy(at, key), value);
}

static size_t lay_out(char *payload, uint64_t sequence)
{
    const struct blkin_span_event head = {next_random(), next_random(), 150000, 0, 2};
    const uint64_t id = next_random(), thread = 77;
    char *at = payload;

    memcpy(at, &head, sizeof(head));
    at = stpcpy(at + sizeof(head), "write_object") + 1;
    *at++ = '0' + BLKIN_FORMAT_VERSION;
    at = blkin_put_length(blkin_put_word(at, thread), 0);
    at = blkin_put_word(blkin_put_word(at, 0), sequence << 16);
    at = blkin_put_word(blkin_put_word(at, id), id >> 48);
    at = blkin_put_word(at, (uint64_t)clock_ns());
    at = put_annotation(put_annotation(at, "queued for the disk", 20), "the journal has it", 90000);
    at = put_tag(put_tag(at, "object", "rbd_data.1234.000000000000abcd"), "pool", "rbd");
    at = stpcpy(at, "10.0.0.1");
    at = blkin_put_length(blkin_put_short(at, 6789), 8);
    *at++ = '\0';
    at = stpcpy(at, "osd.12") + 1;
    return (size_t)(at - payload);
}

static void write_spans(const struct writer *writer)
{
    static uint64_t sequence;
    char payload[1000];

    for (int i = 0; i < SPANS; i++) {
        const size_t length = lay_out(payload, ++sequence & 0xffffffff);

        (void)writer_put(writer, BLKIN_EVENT_SPAN, 1, payload, length);
    }
}

/* ---- what takes them ------------------------------------------------------------------------- */

static void count(void *context, struct event *event)
{
    (void)context;
    given += event->span_id != 0;
}

static double look(struct follow *follow, clockid_t clock, const struct writer *writer)
{
    struct error error;
    int64_t begin_ns;

    given = 0;
    write_spans(writer);
    begin_ns = cpu_ns(clock);
    (void)follow_look_at_all(follow);
    if (clock == CLOCK_PROCESS_CPUTIME_ID) {
        given += piped_events;
        piped.intake.counts.events += piped_events;
        piped_events = 0;
        if (!pipeline_go_on(&piped, &error))
            exit(1);
        exporter_flush(piped.exporter);
    }
    return (double)(cpu_ns(clock) - begin_ns) / SPANS;
}

static void dump(const char *folder, int64_t offset_ns, const struct writer *writer)
{
    const struct dump_memory from = {&memory, 0, 1};
    const struct dump_options options = {folder, "host", offset_ns};
    struct dump_counts counts;
    struct error error;

    write_spans(writer);
    if (!dump_memories(&from, 1, &options, &counts, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    printf("events %llu\n", (unsigned long long)counts.events);
}

int main(int argc, char *argv[])
{
    const int rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;
    const struct memory_size size = {1, 1 << 24, RING_BYTES_MIN};
    const int64_t offset_ns = ring_clock_offset();
    const char *folder = getenv("TMPDIR");
    const struct follow_calls counting = {count, NULL, piped_loss, NULL};
    const struct follow_calls assembling = {piped_event, NULL, piped_loss, NULL};
    struct follow *counts = follow_new(&counting, 0, offset_ns);
    struct follow *spans = follow_new(&assembling, 0, offset_ns);
    struct writer writer;
    struct error error;
    char path[300];
    int lock = 0;

    (void)snprintf(path, sizeof(path), "file:%s/bench-follow.json", folder ? folder : "/tmp");
    if (!memory_make(&memory, 0, &size, &error) || !counts || !spans)
        return 1;
    piped_host = "host";
    piped_open(path);
    writer = (struct writer){memory_ring(&memory, 0), &lock};
    for (int i = 0; i < rounds; i++) {
        double event, batch;

        if (!follow_add(counts, &memory, true))
            return 1;
        event = look(counts, CLOCK_THREAD_CPUTIME_ID, &writer);
        follow_drop(counts, &memory);
        if (given != SPANS || !follow_add(spans, &memory, true))
            return 1;
        batch = look(spans, CLOCK_PROCESS_CPUTIME_ID, &writer);
        follow_drop(spans, &memory);
        printf("event %.1f batch %.1f\n", event, batch);
    }
    if (argc > 2)
        dump(argv[2], offset_ns, &writer);
    pipeline_end(&piped);
    pipeline_close(&piped);
    follow_free(counts);
    follow_free(spans);
    memory_close(&memory);
    (void)unlink(path + 5);
    return 0;
}
