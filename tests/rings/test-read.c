/*
 * Reading rings, in order and after they went round. While programs write:
 * libblkin-ring/test-writers.c; after somebody has scribbled: fuzz/fuzz-ring.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/rings/ring_read.h"
#include "writer.h"

#include <stdlib.h>

static bool adds_up(const struct ring_reader *reader, uint64_t from)
{
    const struct ring_counts *counts = &reader->counts;

    return counts->read + counts->overwritten + counts->damaged == reader->at - from;
}

/* Records of all lengths that there can be come as they were written, also over the ring's end. */
static void test_order(void)
{
    static char payload[RING_RECORD_MAX];
    int lock = 0;
    struct memory memory = writer_memory(0, 1, RING_BYTES_MIN);
    const struct writer writer = {memory_ring(&memory, 0), &lock};
    struct ring_reader reader;
    struct ring_entry entry;
    uint64_t written = 0;

    ring_reader_open(&reader, memory_ring(&memory, 0), 0);
    CHECK(ring_read(&reader) && !ring_peek(&reader, &entry));
    for (size_t length = 0; length + 16 < RING_RECORD_MAX; length += 1 + length / 100) {
        memset(payload, (int)length, length);
        written += writer_put(&writer, (unsigned)length % 15, (uint32_t)length, payload, length);
        CHECK(ring_read(&reader) && ring_peek(&reader, &entry));
        CHECK(entry.length == length && entry.pid == length && entry.event == length % 15);
        CHECK(memcmp(entry.payload, payload, length) == 0);
        if (length % 3 == 0) /* what is not passed comes again */
            CHECK(ring_read(&reader) && ring_peek(&reader, &entry) && entry.length == length);
        ring_pass(&reader);
        CHECK(!ring_peek(&reader, &entry));
    }
    CHECK(written > 3 * RING_BYTES_MIN);
    CHECK(reader.counts.read == written && reader.at == written && adds_up(&reader, 0));
    CHECK(reader.counts.overwritten == 0 && reader.counts.damaged == 0);
    ring_reader_close(&reader);
    memory_close(&memory);
}

/* Of a ring that went round, what it holds is read, and the rest is counted. */
static void test_overwritten(void)
{
    const char payload[100] = "";
    int lock = 0;
    struct memory memory = writer_memory(0, 1, RING_BYTES_MIN);
    const struct writer writer = {memory_ring(&memory, 0), &lock};
    struct ring_reader reader;
    struct ring_entry entry;
    uint64_t number = 0, first = 0, found = 0;

    for (number = 1; number <= 5000; number++)
        (void)writer_put(&writer, 1, (uint32_t)number, payload, sizeof(payload));
    ring_reader_open(&reader, writer.ring, 0);
    CHECK(ring_read(&reader));
    for (; ring_peek(&reader, &entry); ring_pass(&reader), found++) {
        if (!first)
            first = entry.pid;
        CHECK(entry.pid == first + found);
    }
    CHECK(first + found == 5001 && found == reader.counts.records);
    CHECK(reader.counts.read + 128 + RING_RECORD_MAX > RING_BYTES_MIN);
    CHECK(reader.at == ring_end(writer.ring) && adds_up(&reader, 0));
    CHECK(reader.counts.damaged == 0 && reader.counts.jumps == 0);
    ring_reader_close(&reader);
    memory_close(&memory);
}

int main(void)
{
    test_order();
    test_overwritten();
    return check_status();
}
