/*
 * A new memory is sealed, has all its pages, and has the layout of ring.h. memory_open() refuses a
 * memory with a false head.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/rings/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const struct memory_size size = {3, 1 << 17, 1 << 16};
static struct error error;

TEST(test_created)
{
    struct memory created, opened;
    struct stat status;
    void *map;
    int fd;

    CHECK(memory_begin(&created, 1000, &size, &error) && memory_fill(&created, RING_PAGE, &error));
    CHECK(!memory_is_full(&created) && memory_fill(&created, created.bytes, &error) &&
          memory_is_full(&created));
    CHECK(created.bytes == memory_bytes(&size) && memory_state(&created) == RING_ON);
    CHECK(created.bytes == 2 * RING_PAGE + 3 * ((1 << 17) + (1 << 16)));
    CHECK(fstat(created.fd, &status) == 0 && (uint64_t)status.st_size == created.bytes);
    CHECK((uint64_t)status.st_blocks * 512 >= created.bytes); /* all pages are allocated */
    CHECK(ftruncate(created.fd, 4096) != 0 && errno == EPERM);
    CHECK(ftruncate(created.fd, 1 << 24) != 0 && errno == EPERM);
    CHECK(fcntl(created.fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EPERM);
    CHECK(memory_ring(&created, 0).size == 1 << 17 && memory_ring(&created, 3).size == 1 << 16);
    CHECK(memory_ring(&created, 5).bytes + (1 << 16) == created.at + created.bytes);
    CHECK(memory_ring(&created, 3).bytes == memory_ring(&created, 2).bytes + (1 << 17));
    CHECK((const char *)memory_ring(&created, 1).committed == created.at + RING_PAGE + 128);

    CHECK(memory_open(&opened, dup(created.fd), &error));
    CHECK((uintptr_t)created.at % RING_HUGE == 0 && (uintptr_t)opened.at % RING_HUGE == 0);
    CHECK(memory_is_of_size(&opened, &size) && opened.created_ns == created.created_ns);
    /* `opened` has a dup() of the descriptor, which does not count */
    CHECK(!memory_is_shared(&created));
    fd = memory_share(&created);
    CHECK(memory_is_shared(&created));
    map = mmap(NULL, RING_PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0 && memory_is_shared(&created));
    CHECK(munmap(map, RING_PAGE) == 0 && !memory_is_shared(&created));
    memory_set_state(&created, RING_LEFT);
    CHECK(memory_state(&opened) == RING_LEFT);
    memory_close(&opened);
    memory_close(&created);
}

/* Programs may overwrite the head at any time: a process that has opened the memory does not read
 * the head again. */
TEST(test_overwritten_head)
{
    const int other_fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct memory created, opened;
    uint64_t created_ns = UINT64_MAX;

    CHECK(memory_begin(&created, 1000, &size, &error) &&
          memory_fill(&created, created.bytes, &error));
    memcpy(created.at + offsetof(struct ring_memory, created_ns), &created_ns, sizeof(created_ns));
    CHECK(memory_open(&opened, dup(created.fd), &error));
    CHECK(opened.created_ns >= created.created_ns &&
          opened.created_ns < created.created_ns + UINT64_C(3600000000000));
    memory_close(&opened);

    memset(created.at, 0xff, RING_PAGE);
    CHECK(!memory_open(&opened, dup(created.fd), &error) && opened.fd == -1);
    CHECK(memory_open_known(&opened, dup(created.fd), &created, &error));
    CHECK(memory_is_of_size(&opened, &size) && opened.created_ns == created.created_ns);
    CHECK(memory_ring(&opened, 5).bytes - opened.at == memory_ring(&created, 5).bytes - created.at);
    memory_close(&opened);
    CHECK(!memory_open_known(&opened, other_fd, &created, &error) && opened.fd == -1);
    memory_close(&created);
}

TEST(test_sizes)
{
    static const struct memory_size wrong[] = {
        {0, 1 << 16, 1 << 16},       {RING_CPUS_MAX + 1, 1 << 16, 1 << 16}, {1, 1 << 15, 1 << 16},
        {1, 1 << 16, (1 << 16) + 8}, {1, RING_BYTES_MAX * 2, 1 << 16},      {1, 1 << 16, 0},
    };
    struct memory memory;

    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        CHECK(memory_bytes(&wrong[i]) == 0);
        CHECK(!memory_begin(&memory, 1000, &wrong[i], &error) && memory.fd == -1);
    }
}

/* A size beyond the machine's memory fails with an error: the process is not killed. */
TEST(test_too_large)
{
    const struct memory_size huge = {RING_CPUS_MAX, RING_BYTES_MAX, RING_BYTES_MIN};
    struct memory memory;

    CHECK(!memory_begin(&memory, 1000, &huge, &error) ||
          !memory_fill(&memory, memory.bytes, &error));
    CHECK(strstr(error.text, "rings of 562") != NULL);
}

/* Makes a memfd of `bytes` bytes with this head and these seals. */
static int forge(const struct ring_memory *head, off_t bytes, int seals)
{
    const int fd = memfd_create("forged", MFD_CLOEXEC | MFD_ALLOW_SEALING);

    if (fd < 0 || ftruncate(fd, bytes) != 0 || pwrite(fd, head, sizeof(*head), 0) < 0 ||
        fcntl(fd, F_ADD_SEALS, seals) != 0)
        perror("forge");
    return fd;
}

#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

static bool is_taken(const struct ring_memory *head, off_t bytes, int seals)
{
    struct memory memory;
    const bool taken = memory_open(&memory, forge(head, bytes, seals), &error);

    memory_close(&memory);
    return taken;
}

struct lie {
    size_t offset, width;
    uint64_t value;
};

#define LIE(member, value)                                                                     \
    {                                                                                          \
        offsetof(struct ring_memory, member), sizeof(((struct ring_memory *)0)->member), value \
    }

TEST(test_lies)
{
    static const struct lie lies[] = {
        LIE(mark, 0),
        LIE(mark, RING_MARK + (UINT64_C(1) << 56)),
        LIE(cpus, 0),
        LIE(cpus, 2),
        LIE(cpus, 4),
        LIE(cpus, RING_CPUS_MAX + 1),
        LIE(cpus, UINT32_MAX),
        LIE(event_bytes, 0),
        LIE(event_bytes, 1 << 16),
        LIE(event_bytes, 1 << 18),
        LIE(event_bytes, (1 << 17) + 8),
        LIE(event_bytes, UINT64_C(1) << 63),
        LIE(alarm_bytes, 1 << 12),
        LIE(alarm_bytes, RING_BYTES_MAX),
        LIE(alarm_bytes, UINT64_MAX),
        LIE(heads_at, 0),
        LIE(heads_at, 8),
        LIE(heads_at, RING_PAGE + 8),
        LIE(heads_at, 2 * RING_PAGE),
        LIE(heads_at, 2 * RING_PAGE - 128),
        LIE(heads_at, UINT64_MAX - 127),
        LIE(data_at, 0),
        LIE(data_at, RING_PAGE),
        LIE(data_at, 2 * RING_PAGE + 8),
        LIE(data_at, 3 * RING_PAGE),
        LIE(data_at, UINT64_MAX - 4095),
        LIE(bytes, 0),
        LIE(bytes, RING_PAGE),
        LIE(bytes, UINT64_MAX),
    };
    struct ring_memory good = {
        .mark = RING_MARK,
        .cpus = size.cpus,
        .event_bytes = size.event_bytes,
        .alarm_bytes = size.alarm_bytes,
        .heads_at = RING_PAGE,
        .data_at = 2 * RING_PAGE,
        .bytes = memory_bytes(&size),
    };
    const off_t bytes = (off_t)good.bytes;

    CHECK(is_taken(&good, bytes, SEALS));
    CHECK(!is_taken(&good, bytes - RING_PAGE, SEALS) && !is_taken(&good, bytes + 8, SEALS));
    CHECK(!is_taken(&good, 0, SEALS) && !is_taken(&good, 8, SEALS));
    CHECK(!is_taken(&good, bytes, F_SEAL_GROW | F_SEAL_SEAL));
    CHECK(!is_taken(&good, bytes, F_SEAL_SHRINK));
    CHECK(!is_taken(&good, bytes, 0));
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
        struct ring_memory head = good;
        bool is_accepted;

        memcpy((char *)&head + lies[i].offset, &lies[i].value, lies[i].width);
        is_accepted = is_taken(&head, bytes, SEALS);
        CHECK(!is_accepted);
        if (is_accepted)
            fprintf(stderr, "head %zu is accepted\n", i);
    }
}

TEST(test_other_files)
{
    struct memory memory;
    int ends[2];

    CHECK(!memory_open(&memory, -1, &error) && memory.fd == -1);
    CHECK(!memory_open(&memory, open("/dev/null", O_RDWR | O_CLOEXEC), &error));
    CHECK(!memory_open(&memory, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &error));
    CHECK(pipe(ends) == 0 && !memory_open(&memory, ends[0], &error));
    CHECK(fcntl(ends[0], F_GETFD) < 0); /* memory_open() closes the descriptor, also on failure */
    (void)close(ends[1]);
}

/* memory_busiest() returns the bytes of the busiest CPU: an average would hide a ring that programs
 * overwrite too fast. */
TEST(test_busiest)
{
    struct memory memory;
    uint64_t before[3] = {0};

    CHECK(memory_begin(&memory, 1000, &size, &error));
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 0).committed = 100;
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 1).committed = 9000;
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 5).committed = 50000; /* the ring of alarms */
    CHECK(memory_busiest(&memory, before) == 9000);
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 0).committed = 4100;
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 1).committed = 8; /* as damaged by a program */
    CHECK(memory_busiest(&memory, before) == 4000 && before[1] == 8);
    CHECK(memory_busiest(&memory, before) == 0);
    memory_close(&memory);
}

CHECK_MAIN
