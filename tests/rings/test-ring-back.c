/*
 * Walking rings back: what a walk forward gives, from the other end; while four programs write; and
 * after somebody has scribbled.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "load.h"
#include "seed.h"
#include "tools/rings/ring_back.h"
#include "writer.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static uint64_t seed;

static struct memory make_memory(uint64_t bytes)
{
    const struct memory_size size = {1, bytes, RING_BYTES_MIN};
    struct memory memory;
    struct error error;

    if (!memory_make(&memory, 0, &size, &error)) {
        fprintf(stderr, "%s\n", error.text);
        exit(1);
    }
    return memory;
}

/* ---- the same records as forward ------------------------------------------------------------- */

#define LIST_MAX 20000

struct list {
    struct listed {
        uint64_t at, number;
        unsigned event;
        size_t length;
    } records[LIST_MAX];
    size_t count, torn;
};

static struct list forward, back;

static void list_add(struct list *list, const struct ring_entry *entry, uint64_t at)
{
    struct load load = {.number = 0};

    list->torn += !load_take(&load, entry);
    if (list->count == LIST_MAX)
        exit(2);
    list->records[list->count].at = at;
    list->records[list->count].number = load.number;
    list->records[list->count].event = entry->event;
    list->records[list->count++].length = entry->length;
}

static bool take_back(void *context, const struct ring_entry *entry, uint64_t at)
{
    list_add(context, entry, at);
    return true;
}

/* Returns whether anything was overwritten. */
static bool read_forward(struct ring ring)
{
    struct ring_reader reader;
    struct ring_entry entry;
    bool is_cut;

    forward.count = forward.torn = 0;
    ring_reader_open(&reader, ring, 0);
    CHECK(ring_read(&reader));
    for (; ring_peek(&reader, &entry); ring_pass(&reader))
        list_add(&forward, &entry, reader.at);
    CHECK(reader.at == ring_end(ring) && forward.torn == 0);
    is_cut = reader.counts.overwritten > 0;
    ring_reader_close(&reader);
    return is_cut;
}

static bool read_back(struct ring ring, uint64_t end)
{
    struct ring_back result;

    back.count = back.torn = 0;
    CHECK(ring_walk_back(ring, end, take_back, &back, &result));
    CHECK(!result.is_damaged && back.torn == 0);
    CHECK(result.records == back.count && result.bytes <= ring.size);
    return result.is_cut;
}

static bool is_same(size_t skipped)
{
    bool is_same = back.count + skipped == forward.count;

    for (size_t i = 0; is_same && i < back.count; i++) {
        const struct listed *one = &back.records[i], *other = &forward.records[back.count - 1 - i];

        is_same = one->at == other->at && one->number == other->number &&
                  one->event == other->event && one->length == other->length;
    }
    return is_same;
}

static uint64_t oldest_number(struct ring ring)
{
    static char copy[RING_OLDEST_BYTES];
    struct ring_entry entry;
    struct load load = {.number = 0};

    if (!ring_oldest(ring, copy, &entry))
        return 0;
    CHECK(load_take(&load, &entry));
    return load.number;
}

static void test_same(uint64_t bytes)
{
    struct memory memory = make_memory(bytes);
    struct load load = {.writer = 7};
    uint64_t state = seed;
    int lock = 0;
    const struct writer writer = {memory_ring(&memory, 0), &lock};
    unsigned cut = 0, whole = 0;

    CHECK(!read_back(writer.ring, 0) && back.count == 0);
    while (ring_end(writer.ring) < 4 * bytes) {
        const uint64_t random = seed_next(&state);
        bool is_cut;

        load.number++;
        (void)writer_put(&writer, (unsigned)random & 15, 7, &load, load_fill(&load, random >> 8));
        if (random >> 40 & 7)
            continue;
        is_cut = read_forward(writer.ring);
        CHECK(read_back(writer.ring, ring_end(writer.ring)) == is_cut && is_same(0));
        is_cut ? cut++ : whole++;
        /* the oldest that is found is near the oldest that there is */
        if (!is_cut)
            CHECK(oldest_number(writer.ring) == 0);
        else
            CHECK(oldest_number(writer.ring) >= forward.records[0].number &&
                  oldest_number(writer.ring) <= forward.records[0].number + 1);
        /* and up to a place of before, which is that of a record */
        if (forward.count > 10) {
            const size_t some = forward.count - seed_next(&state) % 10 - 1;

            (void)read_back(writer.ring, forward.records[some].at);
            CHECK(is_same(forward.count - some));
        }
    }
    CHECK(cut > 10 && whole > 0);
    memory_close(&memory);
}

/* The walk ends when who takes the records says so. */
static bool take_three(void *context, const struct ring_entry *entry, uint64_t at)
{
    list_add(context, entry, at);
    return back.count < 3;
}

static void test_end(void)
{
    struct memory memory = make_memory(RING_BYTES_MIN);
    struct load load = {.writer = 7};
    int lock = 0;
    const struct writer writer = {memory_ring(&memory, 0), &lock};
    struct ring_back result;

    for (load.number = 1; load.number <= 10; load.number++)
        (void)writer_put(&writer, 1, 7, &load, load_fill(&load, 3));
    back.count = back.torn = 0;
    CHECK(ring_walk_back(writer.ring, ring_end(writer.ring), take_three, &back, &result));
    CHECK(back.count == 3 && result.records == 3 && back.records[2].number == 8);
    memory_close(&memory);
}

/* ---- while others write ---------------------------------------------------------------------- */

#define WRITERS 4
#define RECORDS 1500000

struct shared {
    int lock;
    bool must_end;
};

static void write_on(const struct memory *memory, struct shared *shared, uint64_t number)
{
    const struct writer writer = {memory_ring(memory, 0), &shared->lock};
    struct load load = {.writer = number};
    uint64_t state = seed + number * 977;

    while (!__atomic_load_n(&shared->must_end, __ATOMIC_RELAXED)) {
        load.number++;
        (void)writer_put(&writer, 1, (uint32_t)number, &load, load_fill(&load, seed_next(&state)));
    }
}

struct seen {
    uint64_t records, torn, missing;
    uint64_t last[WRITERS]; /* of this walk: the one before must have the number below */
};

static bool check_entry(void *context, const struct ring_entry *entry, uint64_t at)
{
    struct seen *seen = context;
    struct load load;

    (void)at;
    seen->records++;
    if (!load_take(&load, entry) || load.writer >= WRITERS) {
        seen->torn++;
        return true;
    }
    seen->missing += seen->last[load.writer] && load.number + 1 != seen->last[load.writer];
    seen->last[load.writer] = load.number;
    return true;
}

/* None is torn, and between two of a program none is missing. */
static void test_writers(uint64_t bytes)
{
    struct memory memory = make_memory(bytes);
    const struct ring ring = memory_ring(&memory, 0);
    struct shared *shared =
        mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    struct seen seen = {.records = 0};
    uint64_t walks = 0, oldest = 0;
    pid_t pids[WRITERS];
    int status;

    for (unsigned i = 0; i < WRITERS; i++) {
        pids[i] = fork();
        if (pids[i] == 0) {
            write_on(&memory, shared, i);
            _exit(0);
        }
    }
    for (; seen.records < RECORDS; walks++) {
        struct ring_back result;

        memset(seen.last, 0, sizeof(seen.last));
        CHECK(ring_walk_back(ring, ring_end(ring), check_entry, &seen, &result));
        CHECK(!result.is_damaged);
        oldest += oldest_number(ring) != 0;
    }
    __atomic_store_n(&shared->must_end, true, __ATOMIC_RELAXED);
    for (unsigned i = 0; i < WRITERS; i++)
        CHECK(waitpid(pids[i], &status, 0) == pids[i] && WIFEXITED(status));
    CHECK(seen.torn == 0 && seen.missing == 0);
    printf("%llu records in %llu walks of a ring of %llu KiB: %llu torn, %llu missing; %llu times "
           "the oldest was found\n",
           (unsigned long long)seen.records, (unsigned long long)walks,
           (unsigned long long)(bytes / 1024), (unsigned long long)seen.torn,
           (unsigned long long)seen.missing, (unsigned long long)oldest);
    (void)munmap(shared, sizeof(*shared));
    memory_close(&memory);
}

/* ---- scribbled over -------------------------------------------------------------------------- */

static unsigned sum;

static bool look_at_all(void *context, const struct ring_entry *entry, uint64_t at)
{
    (void)context, (void)at;
    for (size_t i = 0; i < entry->length; i++)
        sum += (unsigned char)entry->payload[i];
    return entry->length < RING_RECORD_MAX;
}

/* Whatever is in the ring, nothing outside of it is read, and every walk ends. */
static void test_scribbles(void)
{
    const size_t guard = (size_t)sysconf(_SC_PAGESIZE);
    char *room =
        mmap(NULL, RING_BYTES_MIN + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    static char copy[RING_OLDEST_BYTES], payload[300];
    uint64_t committed = 0, state = seed, damaged = 0, records = 0;
    int lock = 0;
    const struct writer writer = {{&committed, room + guard, RING_BYTES_MIN}, &lock};
    struct ring_entry entry;
    struct ring_back result;

    CHECK(mprotect(room + guard, RING_BYTES_MIN, PROT_READ | PROT_WRITE) == 0);
    for (int round = 0; round < 20000; round++) {
        const uint64_t random = seed_next(&state) | seed_next(&state) << 40;
        uint64_t end;

        committed &= ~UINT64_C(7);
        for (uint64_t n = seed_next(&state) % 40; n; n--)
            (void)writer_put(&writer, 2, 1, payload, seed_next(&state) % sizeof(payload));
        end = ring_end(writer.ring);
        switch (seed_next(&state) % 8) {
        case 0: /* also back, below the end that was taken before */
            committed = random >> (seed_next(&state) % 64);
            break;
        case 1:
            writer_end(&writer, committed, random & 255, random >> 8);
            break;
        case 2:
        case 3:
            memcpy(room + guard + random % (RING_BYTES_MIN - 8), &random, 1 + random % 8);
            break;
        default:
            break;
        }
        if (random & 1)
            end = ring_end(writer.ring);
        CHECK(ring_walk_back(writer.ring, end, look_at_all, NULL, &result));
        CHECK(result.bytes <= RING_BYTES_MIN);
        damaged += result.is_damaged;
        records += result.records;
        if (ring_oldest(writer.ring, copy, &entry))
            (void)look_at_all(NULL, &entry, 0);
    }
    CHECK(damaged > 0 && records > 0);
    printf("%llu of 20000 walks found damage (%u)\n", (unsigned long long)damaged, sum);
    (void)munmap(room, RING_BYTES_MIN + 2 * guard);
}

int main(void)
{
    seed = seed_begin();
    test_same(RING_BYTES_MIN);
    test_same(8 * RING_BYTES_MIN); /* more than is copied at once */
    test_end();
    test_writers(RING_BYTES_MIN);
    test_writers(64 * RING_BYTES_MIN);
    test_scribbles();
    return check_status();
}
