/*
 * Walks back over rings find the same records as walks forward. While four programs write, walks
 * back find whole records without gaps. Damaged rings: fuzz/fuzz-ring.c.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin-ring/parts/numbered.h"
#include "seed.h"
#include "tools/rings/ring_back.h"
#include "writer.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t seed;

/* ---- the same records as forward ------------------------------------------------------------- */

#define LIST_MAX 20000

struct list {
    struct listed {
        uint64_t at, number, event, pid, length;
    } records[LIST_MAX]; /* the newest first: `forward` fills the list from its end */
    size_t count, torn;
};

static struct list forward, back;
static struct ring_back_copy copy;

static void list_add(struct list *list, size_t place, const struct ring_entry *entry, uint64_t at)
{
    struct numbered numbered = {.number = 0};

    list->torn += !numbered_is_whole(&numbered, entry->payload, entry->length);
    if (list->count++ == LIST_MAX)
        exit(2);
    list->records[place] =
        (struct listed){at, numbered.number, entry->event, entry->pid, entry->length};
}

static bool take_back(void *context, const struct ring_entry *entry, uint64_t at)
{
    (void)context;
    list_add(&back, back.count, entry, at);
    return true;
}

/* Returns true if records were overwritten. */
static bool read_forward(struct ring ring)
{
    struct ring_reader reader;
    struct ring_entry entry;
    bool is_cut;

    forward.count = forward.torn = 0;
    ring_reader_open(&reader, ring, 0);
    CHECK(ring_read(&reader));
    for (; ring_peek(&reader, &entry); ring_pass(&reader))
        list_add(&forward, LIST_MAX - 1 - forward.count, &entry, reader.at);
    CHECK(reader.at == ring_committed(ring) && forward.torn == 0);
    CHECK(reader.counts.records == forward.count && reader.counts.damaged == 0);
    CHECK(reader.counts.read + reader.counts.overwritten == reader.at);
    is_cut = reader.counts.overwritten > 0;
    ring_reader_close(&reader);
    return is_cut;
}

/* Gives all records after the position. */
static void walk_back(struct ring_back *walk, uint64_t until, ring_back_fn *give, void *context)
{
    copy.last.payload = NULL;
    while (walk->at > until && !walk->is_ended)
        ring_walk_piece(walk, &copy, until, give, context);
}

static bool read_back(struct ring ring, uint64_t end)
{
    struct ring_back result = ring_back_begin(ring, end);

    back.count = back.torn = 0;
    walk_back(&result, 0, take_back, NULL);
    CHECK(!result.is_damaged && back.torn == 0);
    CHECK(result.records == back.count && result.bytes == end - result.at);
    return result.at > 0;
}

static bool is_same(size_t skipped)
{
    return back.count + skipped == forward.count &&
           memcmp(back.records, &forward.records[LIST_MAX - back.count],
                  back.count * sizeof(back.records[0])) == 0;
}

static uint64_t oldest_number(struct ring ring)
{
    static char bytes[RING_OLDEST_BYTES];
    struct ring_entry entry;
    struct numbered numbered = {.number = 0};

    if (!ring_oldest(ring, bytes, &entry))
        return 0;
    CHECK(numbered_is_whole(&numbered, entry.payload, entry.length));
    return numbered.number;
}

static void check_same(uint64_t bytes)
{
    struct memory memory = writer_memory(0, 1, bytes);
    struct numbered numbered;
    uint64_t state = seed, number = 0;
    const struct writer writer = writer_alone(&memory, 0);
    unsigned cut = 0, whole = 0;

    CHECK(!read_back(writer.ring, 0) && back.count == 0);
    while (ring_committed(writer.ring) < 4 * bytes) {
        const uint64_t random = seed_next(&state);
        const struct listed *const oldest = &forward.records[LIST_MAX - 1];
        bool is_cut;

        (void)writer_put(&writer, (unsigned)random & 15, (uint32_t)random, &numbered,
                         numbered_make(&numbered, 7, ++number, &state));
        if (random >> 40 & 7)
            continue;
        is_cut = read_forward(writer.ring);
        CHECK(read_back(writer.ring, ring_committed(writer.ring)) == is_cut && is_same(0));
        is_cut ? cut++ : whole++;
        /* the oldest found record is near the oldest record of the ring */
        if (!is_cut)
            CHECK(oldest_number(writer.ring) == 0);
        else
            CHECK(oldest_number(writer.ring) >= oldest->number &&
                  oldest_number(writer.ring) <= oldest->number + 1);
        /* a walk to an earlier position, which is the position of a record */
        if (forward.count > 10) {
            const size_t some = forward.count - seed_next(&state) % 10 - 1;

            (void)read_back(writer.ring, oldest[-(ptrdiff_t)some].at);
            CHECK(is_same(forward.count - some));
        }
    }
    CHECK(cut > 10 && whole > 0);
    memory_close(&memory);
}

TEST(test_same)
{
    check_same(RING_BYTES_MIN);
    check_same(8 * RING_BYTES_MIN); /* larger than one piece */
}

/* The walk ends when the callback returns false. */
static bool take_three(void *context, const struct ring_entry *entry, uint64_t at)
{
    (void)take_back(context, entry, at);
    return back.count < 3;
}

TEST(test_end)
{
    struct memory memory = writer_memory(0, 1, RING_BYTES_MIN);
    struct numbered numbered;
    uint64_t state = seed;
    const struct writer writer = writer_alone(&memory, 0);
    struct ring_back result;
    uint64_t until;

    for (uint64_t number = 1; number <= 10; number++)
        (void)writer_put(&writer, 1, 7, &numbered, numbered_make(&numbered, 7, number, &state));
    back.count = back.torn = 0;
    result = ring_back_begin(writer.ring, ring_committed(writer.ring));
    walk_back(&result, 0, take_three, NULL);
    CHECK(back.count == 3 && result.records == 3 && back.records[2].number == 8);
    CHECK(result.is_ended && result.at > 0);
    /* the walk ends at a position, and continues there */
    back.count = 0;
    result = ring_back_begin(writer.ring, ring_committed(writer.ring));
    walk_back(&result, result.end, take_back, NULL);
    CHECK(back.count == 0 && !copy.last.payload && !result.is_ended);
    until = back.records[2].at;
    walk_back(&result, until, take_back, NULL);
    CHECK(back.count == 3 && result.at == until && !result.is_ended);
    CHECK(copy.last.payload == copy.last_payload && copy.last.length == back.records[2].length);
    CHECK(numbered_is_whole(&numbered, copy.last.payload, copy.last.length));
    CHECK(numbered.number == 8 && copy.last.event == 1 && copy.last.pid == 7);
    walk_back(&result, 0, take_back, NULL);
    CHECK(back.count == 10 && back.records[9].number == 1 && result.at == 0);
    memory_close(&memory);
}

static bool loses(struct ring ring, uint64_t from, uint64_t overwritten, uint64_t damaged)
{
    struct ring_reader reader;
    bool does;

    ring_reader_open(&reader, ring, from);
    does = ring_read(&reader) && reader.counts.overwritten == overwritten &&
           reader.counts.damaged == damaged;
    ring_reader_close(&reader);
    return does;
}

/* The reader begins within a record, or a trailer is overwritten, or both. */
TEST(test_lost)
{
    struct memory memory = writer_memory(0, 1, RING_BYTES_MIN);
    const struct writer writer = writer_alone(&memory, 0);
    const uint64_t no_trailer = 0;

    CHECK(ring_entry_of("12345678", ring_trailer(8, 4, 8)).pid != 0);
    CHECK(ring_entry_of("12345678", ring_trailer(8, 4, 7)).pid == 0);
    (void)writer_put(&writer, 3, 77, "payload", 7);
    (void)writer_put(&writer, 4, 78, "", 0);
    CHECK(loses(writer.ring, 8, 0, 16));
    writer_store(&writer, 16, &no_trailer, sizeof(no_trailer));
    CHECK(loses(writer.ring, 0, 0, 24));
    *writer_committed(&writer) = RING_BYTES_MIN - 8;
    (void)writer_put(&writer, 4, 78, "", 0); /* after 8 bytes of padding */
    CHECK(loses(writer.ring, RING_BYTES_MIN - 8, 0, 0));
    CHECK(loses(writer.ring, 0, RING_RECORD_MAX + 16, RING_BYTES_MIN - RING_RECORD_MAX - 24));
    memory_close(&memory);
}

/* ---- while others write ---------------------------------------------------------------------- */

#define BACK_WRITERS 4
#define BACK_RECORDS 1500000

struct back_shared {
    int lock;
    bool must_end;
};

static void write_until_end(const struct memory *memory, struct back_shared *shared, uint64_t which)
{
    const struct writer writer = {memory_ring(memory, 0), &shared->lock};
    struct numbered numbered;
    uint64_t state = seed + which * 977;

    for (uint64_t number = 1; !__atomic_load_n(&shared->must_end, __ATOMIC_RELAXED); number++)
        (void)writer_put(&writer, 1, (uint32_t)which, &numbered,
                         numbered_make(&numbered, which, number, &state));
}

struct back_seen {
    uint64_t records, torn, missing;
    uint64_t last[BACK_WRITERS]; /* numbers of this walk: the record before must have the next lower
                                    number */
};

static bool check_entry(void *context, const struct ring_entry *entry, uint64_t at)
{
    struct back_seen *seen = context;
    struct numbered numbered;

    (void)at;
    seen->records++;
    if (!numbered_is_whole(&numbered, entry->payload, entry->length) ||
        numbered.writer >= BACK_WRITERS) {
        seen->torn++;
        return true;
    }
    seen->missing +=
        seen->last[numbered.writer] && numbered.number + 1 != seen->last[numbered.writer];
    seen->last[numbered.writer] = numbered.number;
    return true;
}

/* No record is torn, and no record is missing between two records of a program. */
static void check_writers(uint64_t bytes)
{
    struct memory memory = writer_memory(0, 1, bytes);
    const struct ring ring = memory_ring(&memory, 0);
    struct back_shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct back_seen seen = {.records = 0};
    pid_t pids[BACK_WRITERS];
    int status;

    for (unsigned i = 0; i < BACK_WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            write_until_end(&memory, shared, i);
            _exit(0);
        }
    }
    while (seen.records < BACK_RECORDS) {
        struct ring_back result = ring_back_begin(ring, ring_committed(ring));

        memset(seen.last, 0, sizeof(seen.last));
        walk_back(&result, 0, check_entry, &seen);
        CHECK(!result.is_damaged);
        (void)oldest_number(ring);
    }
    __atomic_store_n(&shared->must_end, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < BACK_WRITERS; i++)
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && status == 0);
    CHECK(seen.torn == 0 && seen.missing == 0);
    (void)munmap(shared, sizeof(*shared));
    memory_close(&memory);
}

TEST(test_writers)
{
    check_writers(RING_BYTES_MIN);
    check_writers(64 * RING_BYTES_MIN);
}

CHECK_MAIN_WITH(seed = seed_begin(), (void)0)
