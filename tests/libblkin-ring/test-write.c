/*
 * One thread writes records: each byte of a record, the end of the ring, all lengths, and invalid
 * memories.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/ring/ring_write.h"
#include "libblkin-ring/parts/rings.h"

#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL RING_BYTES_MIN

static struct rings memory;
static struct ring_map *map;
static char payload[RING_RECORD_MAX];

static void pin_to_one_cpu(void)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET(sched_getcpu(), &set);
    CHECK(sched_setaffinity(0, sizeof(set), &set) == 0);
}

static struct ring_map *open_memory(const struct rings *of)
{
    const char *wrong = NULL;
    struct ring_map *opened = ring_map_new(of->descriptor, of->bytes, &wrong);

    if (!opened)
        fprintf(stderr, "%s\n", wrong);
    return opened;
}

/* ---- records ---- */

TEST(test_bytes)
{
    const uint32_t cpu = ring_this_cpu();
    const struct ring ring = memory_ring(&memory.memory, memory.cpus + cpu);
    const char *data = ring.bytes;
    struct ring_record head;
    struct stat there;
    uint64_t trailer;

    CHECK(ring.size == SMALL && stat("/proc/self/ns/pid", &there) == 0);
    CHECK(ring_write(map, RING_ALARMS, ring_kind(5), "thirty-three bytes of a payload..", 33));
    CHECK(memory.heads[memory.cpus + cpu].committed == 56);
    CHECK(memory.heads[cpu].committed == 0);
    memcpy(&head, data, sizeof(head));
    CHECK(head.pid == (uint32_t)getpid() && head.pid_namespace == there.st_ino);
    CHECK(memcmp(data + 8, "thirty-three bytes of a payload..\0\0\0\0\0\0\0", 40) == 0);
    memcpy(&trailer, data + 48, 8);
    CHECK(trailer == (UINT64_C(6) << 24 | 5 << 16 | 41));
    CHECK(ring_write(map, RING_ALARMS, ring_kind(RING_ORIGINAL), "thirty-two bytes of a payload...",
                     32));
    CHECK(memory.heads[memory.cpus + cpu].committed == 104);
    memcpy(&trailer, data + 96, 8);
    CHECK(trailer == (UINT64_C(12) << 24 | RING_ORIGINAL << 16 | 40));
}

struct expected {
    unsigned last; /* number of the last record so far; 0: none */
    unsigned right;
};

static void check_number(void *context, const struct rings_record *record)
{
    struct expected *expected = context;
    unsigned number;

    memcpy(&number, record->entry.payload, sizeof(number));
    expected->right += (!expected->last || number == expected->last + 1) &&
                       record->entry.event == number % 15 &&
                       record->entry.length == RING_PAYLOAD_MIN + number % 1000 &&
                       record->entry.pid == (uint32_t)getpid();
    expected->last = number;
}

/* Records of 1000 lengths, so that the ring wraps at many positions. It has the last records,
 * without a gap. */
TEST(test_laps)
{
    const unsigned records = 20000;
    struct rings_walker walk = {0};
    struct expected expected;
    uint64_t trailer, end;
    const uint32_t cpu = ring_this_cpu();
    const char *data = memory_ring(&memory.memory, cpu).bytes;

    memset(payload, 0xaa, sizeof(payload));
    for (unsigned i = 1; i <= records; i++) {
        memcpy(payload, &i, sizeof(i));
        CHECK(
            ring_write(map, RING_EVENTS, ring_kind(i % 15), payload, RING_PAYLOAD_MIN + i % 1000));
        if (i % 7 == 0) { /* the padding is zeros */
            end = memory.heads[cpu].committed;
            memcpy(&trailer, data + ((end - 8) & (SMALL - 1)), 8);
            CHECK(ring_length_of(trailer) ==
                  sizeof(struct ring_record) + RING_PAYLOAD_MIN + i % 1000);
            for (uint64_t at = ring_length_of(trailer); at % 8 != 0; at++)
                CHECK(data[(end - ring_record_size(ring_length_of(trailer)) + at) & (SMALL - 1)] ==
                      0);
        }
    }
    expected = (struct expected){.last = 0};
    rings_walk(&memory, cpu, &walk, check_number, &expected);
    CHECK(walk.bad == 0);
    CHECK(walk.records == expected.right && expected.last == records);
    CHECK(walk.records > 50);
    CHECK(memory.head->lost == 0);
}

TEST(test_lengths)
{
    const uint32_t cpu = ring_this_cpu();
    const uint64_t before = memory.heads[cpu].committed;

    CHECK(RING_PAYLOAD_MAX == 4080);
    CHECK(!ring_write(map, RING_EVENTS, ring_kind(1), payload, RING_PAYLOAD_MIN - 1));
    CHECK(!ring_write(map, RING_EVENTS, ring_kind(1), payload, 0));
    CHECK(!ring_write(map, RING_EVENTS, ring_kind(1), payload, RING_PAYLOAD_MAX + 1));
    CHECK(memory.heads[cpu].committed == before);
    CHECK(memory.head->lost == 3);
    CHECK(ring_write(map, RING_EVENTS, ring_kind(1), payload, RING_PAYLOAD_MAX));
    CHECK(memory.heads[cpu].committed - before >= RING_RECORD_MAX);
    memory.head->lost = 0;
}

/* On a CPU without a ring, a record is lost, and counted. The time of losses never goes back. */
TEST(test_unknown_cpu)
{
    struct ring_map none = *map;

    none.parts[RING_EVENTS].cpus = ring_this_cpu();
    memory.head->missed_until_ns = 5;
    ring_lose(map, 2, 4);
    CHECK(memory.head->lost == 2 && memory.head->missed_until_ns == 5);
    ring_lose(map, 1, 7);
    CHECK(memory.head->lost == 3 && memory.head->missed_until_ns == 7);
    CHECK(!ring_write(&none, RING_EVENTS, ring_kind(1), payload, 100));
    CHECK(memory.head->lost == 4 && memory.head->missed_until_ns > memory.head->created_ns);
    memory.head->lost = 0;
}

/* Another process overwrites the ring's head: no byte outside the ring is written, and the ring
 * recovers. */
TEST(test_scribbled)
{
    const uint32_t cpu = ring_this_cpu();
    struct ring_head heads[2] = {memory.heads[(cpu + 1) % memory.cpus], {0}};
    struct rings_walker walk = {0};

    for (uint64_t i = 0; i < 3000; i++) {
        memory.heads[cpu].committed = i * UINT64_C(0x9e3779b97f4a7c15);
        CHECK(ring_write(map, RING_EVENTS, ring_kind(1), payload, RING_PAYLOAD_MIN + i % 2000));
    }
    if (memory.cpus > 1)
        CHECK(memory.heads[(cpu + 1) % memory.cpus].committed == heads[0].committed);
    memory.heads[cpu].committed = 12345 * 8 + 3;
    for (unsigned i = 0; i < 200; i++)
        CHECK(ring_write(map, RING_EVENTS, ring_kind(1), payload, 1000));
    rings_walk(&memory, cpu, &walk, NULL, NULL);
    CHECK(walk.records > 20);
}

/* ---- memories ---- */

/* Returns a number in KiB of /proc/self/status; -1: it is not known. */
static long status_kib(const char *name)
{
    FILE *status = fopen("/proc/self/status", "r");
    char line[200];
    long kib = -1;

    while (status && kib < 0 && fgets(line, sizeof(line), status))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = atol(line + strlen(name) + 1);
    if (status)
        fclose(status);
    return kib;
}

static const char *refused(int descriptor, uint64_t bytes)
{
    const char *wrong = "";

    return ring_map_new(descriptor, bytes, &wrong) ? "taken" : wrong;
}

/* Checks the reason for which a memory is refused if a field of its head has another value. */
#define LIES(field, value, reason)                                    \
    do {                                                              \
        const struct ring_memory before = *lying.head;                \
        lying.head->field = (value);                                  \
        CHECK_TEXT(refused(lying.descriptor, lying.bytes), (reason)); \
        *lying.head = before;                                         \
    } while (0)

/* The head of a new and of a known memory is checked; tests/rings/test-memory.c has all cases. Only
 * the memory and a page before it stay mapped. */
TEST(test_lies)
{
    const long page = sysconf(_SC_PAGESIZE);
    struct rings lying;
    long kib;

    rings_make(&lying, SMALL, 2 * SMALL);
    kib = status_kib("VmSize") + (page + (long)lying.bytes) / 1024;
    for (int times = 0; times < 2; times++) {
        LIES(cpus, lying.cpus + 1, "its parts do not fit into it");
        LIES(state, RING_LEFT, "its reader has ended");
        CHECK(strcmp(refused(lying.descriptor, lying.bytes - 1), "taken") != 0);
        CHECK_TEXT(refused(lying.descriptor, lying.bytes), "taken");
        CHECK(labs(status_kib("VmSize") - kib) < 512); /* malloc() may take some */
    }
    rings_close(&lying);
}

/* A known memory with rings of other sizes is refused: the process has pointers to the former
 * rings. */
TEST(test_changed)
{
    struct rings swapped;
    const struct ring_map *before;

    rings_make(&swapped, SMALL, 2 * SMALL);
    before = open_memory(&swapped);
    CHECK(before && before != map && (uintptr_t)before->memory % RING_HUGE == 0);
    CHECK(open_memory(&memory) == map && open_memory(&swapped) == before);
    if (before)
        ring_map_leave(before);
    swapped.head->event_bytes = 2 * SMALL;
    swapped.head->alarm_bytes = SMALL;
    CHECK_TEXT(refused(swapped.descriptor, swapped.bytes), "its layout has changed");
    rings_close(&swapped);
}

/* A memory without the seal could be shortened, and a write there would end the program. */
TEST(test_seals)
{
    const int open = memfd_create("open", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    int pipes[2];

    CHECK(ftruncate(open, (off_t)memory.bytes) == 0);
    CHECK(pwrite(open, memory.head, sizeof(*memory.head), 0) == sizeof(*memory.head));
    CHECK_TEXT(refused(open, memory.bytes), "it is not sealed against shrinking");
    CHECK(fcntl(open, F_ADD_SEALS, F_SEAL_GROW) == 0);
    CHECK_TEXT(refused(open, memory.bytes), "it is not sealed against shrinking");
    CHECK(fcntl(open, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
    CHECK_TEXT(refused(open, memory.bytes), "taken");
    close(open);
    CHECK(pipe(pipes) == 0);
    CHECK_TEXT(refused(pipes[0], memory.bytes), "it is not sealed against shrinking");
    close(pipes[0]);
    close(pipes[1]);
    CHECK_TEXT(refused(-1, memory.bytes), "it is not sealed against shrinking");
}

/* A memory without room for its own head is refused. */
TEST(test_short)
{
    const int tiny = memfd_create("tiny", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const off_t least = sizeof(struct ring_memory);

    CHECK(fcntl(tiny, F_ADD_SEALS, F_SEAL_SHRINK) == 0 && ftruncate(tiny, least - 1) == 0);
    CHECK_TEXT(refused(tiny, (uint64_t)least - 1), "its size is wrong");
    CHECK(ftruncate(tiny, least) == 0);
    CHECK_TEXT(refused(tiny, (uint64_t)least - 1), "its size is wrong");
    CHECK_TEXT(refused(tiny, (uint64_t)least), "it is of another version of BlkKin");
    close(tiny);
}

/* A thread that uses a memory after ring_map_leave() writes without harm, and without a reader. */
TEST(test_left)
{
    const uint32_t cpu = ring_this_cpu();
    const uint64_t before = memory.heads[cpu].committed;

    for (memory.head->state = RING_LEFT; memory.head->state <= RING_REPLACED;
         memory.head->state++) {
        CHECK(ring_map_is_on(map) == (memory.head->state == RING_ON));
        CHECK(ring_map_is_read(map) == (memory.head->state != RING_LEFT));
    }
    ring_map_leave(map);
    for (unsigned i = 0; i < 1000; i++)
        CHECK(ring_write(map, RING_EVENTS, ring_kind(1), payload, 1000));
    CHECK(memory.heads[cpu].committed == before);
    CHECK(!ring_map_is_on(map));
}

/* A program that locks all its memory, as iscsid does, locks neither the rings nor the memory that
 * replaces left rings. If they were locked, all their pages would be in use at once. */
TEST(test_locked)
{
    struct rings large;
    const struct ring_map *mapped;
    long before;

    rings_make(&large, 1 << 24, SMALL);
    if (geteuid() != 0 || mlockall(MCL_FUTURE) != 0) {
        puts("not tested: locked memory: needs root");
        return;
    }
    before = status_kib("VmLck");
    mapped = open_memory(&large);
    CHECK(mapped && before >= 0 && status_kib("VmLck") < before + 8192);
    CHECK(ring_write(mapped, RING_EVENTS, ring_kind(1), payload, 100));
    ring_map_leave(mapped);
    CHECK(status_kib("VmLck") < before + 8192);
    CHECK(open_memory(&large) == mapped && status_kib("VmLck") < before + 8192);
    CHECK(ring_write(mapped, RING_EVENTS, ring_kind(1), payload, 100));
    CHECK(large.heads[ring_this_cpu()].committed == 2 * 120);
    (void)munlockall();
    rings_close(&large);
}

int main(void)
{
    if (!ring_write_init()) {
        puts("no restartable sequences here");
        return 77;
    }
    pin_to_one_cpu();
    rings_make(&memory, SMALL, SMALL);
    map = open_memory(&memory);
    if (!map)
        return 1;
    check_run();
    rings_close(&memory);
    return check_status();
}
