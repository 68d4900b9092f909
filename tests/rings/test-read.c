/*
 * Reading rings: in order, while four programs write, and after somebody has scribbled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "load.h"
#include "seed.h"
#include "tools/rings/ring_read.h"
#include "writer.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct memory memory;
static uint64_t seed;

static void open_memory(uint32_t cpus, uint64_t bytes)
{
    const struct memory_size size = {cpus, bytes, RING_BYTES_MIN};
    struct error error;

    if (!memory_make(&memory, 0, &size, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
}

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
    struct writer writer;
    struct ring_reader reader;
    struct ring_entry entry;
    uint64_t written = 0;

    open_memory(1, RING_BYTES_MIN);
    writer = (struct writer){memory_ring(&memory, 0), &lock};
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
    struct writer writer;
    struct ring_reader reader;
    struct ring_entry entry;
    uint64_t number = 0, first = 0, found = 0;

    open_memory(1, RING_BYTES_MIN);
    writer = (struct writer){memory_ring(&memory, 0), &lock};
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

/* ---- while others write ---------------------------------------------------------------------- */

#define WRITERS 4
#define RINGS   2
#define RECORDS 4000000

struct shared {
    int locks[RINGS][16];
    uint64_t bytes[WRITERS];
};

static void write_on(struct shared *shared, uint64_t number)
{
    struct load load = {.writer = number};
    uint64_t state = seed + number * 977;

    for (uint64_t n = 1; n <= RECORDS; n++) {
        const uint64_t random = seed_next(&state);
        const unsigned ring = random >> 8 & 1;
        const struct writer writer = {memory_ring(&memory, ring), shared->locks[ring]};

        load.number = n;
        shared->bytes[number] +=
            writer_put(&writer, 1, (uint32_t)number, &load, load_fill(&load, random));
    }
}

struct seen {
    uint64_t records, torn;
    uint64_t last[RINGS][WRITERS];
};

static void check_entry(struct seen *seen, unsigned ring, const struct ring_entry *entry)
{
    struct load load;

    seen->records++;
    if (!load_take(&load, entry) || load.writer >= WRITERS ||
        load.number <= seen->last[ring][load.writer])
        seen->torn++;
    else
        seen->last[ring][load.writer] = load.number;
}

static void read_all(struct ring_reader *readers, struct seen *seen)
{
    struct ring_entry entry;

    for (unsigned ring = 0; ring < RINGS; ring++) {
        CHECK(ring_read(&readers[ring]));
        for (; ring_peek(&readers[ring], &entry); ring_pass(&readers[ring]))
            check_entry(seen, ring, &entry);
    }
}

/* Each byte that was written was read or counted as overwritten, and none was torn. */
static void test_writers(void)
{
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct ring_reader readers[RINGS];
    static struct seen seen;
    uint64_t written = 0, accounted = 0, overwritten = 0;
    int running = WRITERS, status;

    open_memory(RINGS, RING_BYTES_MIN * 64);
    for (unsigned ring = 0; ring < RINGS; ring++)
        ring_reader_open(&readers[ring], memory_ring(&memory, ring), 0);
    for (unsigned i = 0; i < WRITERS; i++) {
        if (fork() == 0) {
            write_on(shared, i);
            _exit(0);
        }
    }
    while (running) {
        read_all(readers, &seen);
        while (waitpid(-1, &status, WNOHANG) > 0) {
            CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
            running--;
        }
    }
    read_all(readers, &seen);
    for (unsigned i = 0; i < WRITERS; i++)
        written += shared->bytes[i];
    for (unsigned ring = 0; ring < RINGS; ring++) {
        const struct ring_counts *counts = &readers[ring].counts;

        CHECK(counts->damaged == 0 && counts->jumps == 0 && adds_up(&readers[ring], 0));
        CHECK(readers[ring].at == ring_end(readers[ring].ring));
        accounted += counts->read + counts->overwritten;
        overwritten += counts->overwritten;
        ring_reader_close(&readers[ring]);
    }
    CHECK(written == accounted && seen.torn == 0);
    printf("%llu of %u records read, %llu of %llu bytes overwritten, %llu torn\n",
           (unsigned long long)seen.records, WRITERS * RECORDS, (unsigned long long)overwritten,
           (unsigned long long)written, (unsigned long long)seen.torn);
    (void)munmap(shared, sizeof(*shared));
    memory_close(&memory);
}

/* ---- scribbled over -------------------------------------------------------------------------- */

static void scribble(const struct writer *writer, uint64_t *state)
{
    const uint64_t random = seed_next(state) | seed_next(state) << 40;
    char *bytes = (char *)(uintptr_t)writer->ring.bytes;

    switch (seed_next(state) % 8) {
    case 0: /* a place where no ring can be, or any other one */
        *writer_committed(writer) = random >> (seed_next(state) % 64);
        break;
    case 1: /* a trailer for a record of any length and kind */
        writer_end(writer, *writer_committed(writer) & ~UINT64_C(7), random & 255, random >> 8);
        break;
    default:
        memcpy(bytes + random % (writer->ring.size - 8), &random, 1 + random % 8);
        break;
    }
}

/* Whatever is in the ring, the account adds up from one jump to the next. */
static void test_scribbles(void)
{
    static char payload[300];
    uint64_t state = seed, from = 0, damaged = 0, jumps = 0;
    int lock = 0;
    struct writer writer;
    struct ring_reader reader;
    struct ring_entry entry;

    open_memory(1, RING_BYTES_MIN);
    writer = (struct writer){memory_ring(&memory, 0), &lock};
    ring_reader_open(&reader, writer.ring, 0);
    for (int round = 0; round < 20000; round++) {
        const uint64_t jumps_before = reader.counts.jumps;
        unsigned sum = 0;

        *writer_committed(&writer) &= ~UINT64_C(7);
        for (uint64_t n = seed_next(&state) % 8; n; n--)
            (void)writer_put(&writer, 2, 1, payload, seed_next(&state) % sizeof(payload));
        if (seed_next(&state) % 4 == 0)
            scribble(&writer, &state);
        CHECK(ring_read(&reader));
        for (; ring_peek(&reader, &entry); ring_pass(&reader))
            for (size_t i = 0; i < entry.length; i++)
                sum += (unsigned char)entry.payload[i];
        payload[0] = (char)sum;
        if (reader.counts.jumps != jumps_before) {
            damaged += reader.counts.damaged;
            reader.counts = (struct ring_counts){.jumps = reader.counts.jumps};
            from = reader.at;
        }
        CHECK(adds_up(&reader, from) && reader.at == ring_end(writer.ring));
    }
    damaged += reader.counts.damaged;
    jumps = reader.counts.jumps;
    CHECK(damaged > 0 && jumps > 0);
    printf("%llu bytes damaged, %llu jumps\n", (unsigned long long)damaged,
           (unsigned long long)jumps);
    ring_reader_close(&reader);
    memory_close(&memory);
}

int main(void)
{
    seed = seed_begin();
    test_order();
    test_overwritten();
    test_writers();
    test_scribbles();
    return check_status();
}
