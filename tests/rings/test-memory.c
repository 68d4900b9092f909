/*
 * Memories: a new memory is sealed and charged, and has the layout. A memory with a false head is
 * refused.
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

static void test_made(void)
{
    struct memory made, opened;
    struct stat status;
    void *map;
    int fd;

    CHECK(memory_begin(&made, 1000, &size, &error) && memory_fill(&made, RING_PAGE, &error));
    CHECK(!memory_is_full(&made) && memory_fill(&made, made.bytes, &error) &&
          memory_is_full(&made));
    CHECK(made.bytes == memory_bytes(&size) && memory_state(&made) == RING_ON);
    CHECK(made.bytes == 2 * RING_PAGE + 3 * ((1 << 17) + (1 << 16)));
    CHECK(fstat(made.fd, &status) == 0 && (uint64_t)status.st_size == made.bytes);
    CHECK((uint64_t)status.st_blocks * 512 >= made.bytes); /* all pages are allocated */
    CHECK(ftruncate(made.fd, 4096) != 0 && errno == EPERM);
    CHECK(ftruncate(made.fd, 1 << 24) != 0 && errno == EPERM);
    CHECK(fcntl(made.fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EPERM);
    CHECK(memory_ring(&made, 0).size == 1 << 17 && memory_ring(&made, 3).size == 1 << 16);
    CHECK(memory_ring(&made, 5).bytes + (1 << 16) == made.at + made.bytes);
    CHECK(memory_ring(&made, 3).bytes == memory_ring(&made, 2).bytes + (1 << 17));
    CHECK((const char *)memory_ring(&made, 1).committed == made.at + RING_PAGE + 128);

    CHECK(memory_open(&opened, dup(made.fd), &error));
    CHECK((uintptr_t)made.at % RING_HUGE == 0 && (uintptr_t)opened.at % RING_HUGE == 0);
    CHECK(memory_is_of_size(&opened, &size) && opened.made == made.made);
    CHECK(!memory_is_shared(&made)); /* `opened` has the same descriptor */
    fd = memory_share(&made);
    CHECK(memory_is_shared(&made));
    map = mmap(NULL, RING_PAGE, PROT_READ, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED && close(fd) == 0 && memory_is_shared(&made));
    CHECK(munmap(map, RING_PAGE) == 0 && !memory_is_shared(&made));
    memory_set_state(&made, RING_LEFT);
    CHECK(memory_state(&opened) == RING_LEFT);
    memory_close(&opened);
    memory_close(&made);
}

/* Programs may overwrite the head at any time: a process that has opened the memory does not read
 * the head again. */
static void test_overwritten_head(void)
{
    const int other_fd = memfd_create("other", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct memory made, opened;
    uint64_t made_at = UINT64_MAX;

    CHECK(memory_begin(&made, 1000, &size, &error) && memory_fill(&made, made.bytes, &error));
    memcpy(made.at + offsetof(struct ring_memory, made), &made_at, sizeof(made_at));
    CHECK(memory_open(&opened, dup(made.fd), &error));
    CHECK(opened.made >= made.made && opened.made < made.made + UINT64_C(3600000000000));
    memory_close(&opened);

    memset(made.at, 0xff, RING_PAGE);
    CHECK(!memory_open(&opened, dup(made.fd), &error) && opened.fd == -1);
    CHECK(memory_open_known(&opened, dup(made.fd), &made, &error));
    CHECK(memory_is_of_size(&opened, &size) && opened.made == made.made);
    CHECK(memory_ring(&opened, 5).bytes - opened.at == memory_ring(&made, 5).bytes - made.at);
    memory_close(&opened);
    CHECK(!memory_open_known(&opened, other_fd, &made, &error) && opened.fd == -1);
    memory_close(&made);
}

static void test_sizes(void)
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
static void test_too_large(void)
{
    const struct memory_size huge = {RING_CPUS_MAX, RING_BYTES_MAX, RING_BYTES_MIN};
    struct memory memory;

    CHECK(!memory_begin(&memory, 1000, &huge, &error) ||
          !memory_fill(&memory, memory.bytes, &error));
    CHECK(strstr(error.text, "rings of 562") != NULL);
}

/* Makes a file by hand, with the size in its head. */
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

static void test_lies(void)
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

        memcpy((char *)&head + lies[i].offset, &lies[i].value, lies[i].width);
        CHECK(!is_taken(&head, bytes, SEALS));
        if (check_failures)
            fprintf(stderr, "lie %zu\n", i);
    }
}

static void test_other_files(void)
{
    struct memory memory;
    int ends[2];

    CHECK(!memory_open(&memory, -1, &error) && memory.fd == -1);
    CHECK(!memory_open(&memory, open("/dev/null", O_RDWR | O_CLOEXEC), &error));
    CHECK(!memory_open(&memory, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), &error));
    CHECK(pipe(ends) == 0 && !memory_open(&memory, ends[0], &error));
    CHECK(fcntl(ends[0], F_GETFD) < 0); /* the memory has closed the descriptor */
    (void)close(ends[1]);
}

/* Each CPU has its own ring: an average would hide a ring that holds the records of a moment only.
 */
static void test_busiest(void)
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

int main(void)
{
    test_made();
    test_overwritten_head();
    test_busiest();
    test_sizes();
    test_too_large();
    test_lies();
    test_other_files();
    return check_status();
}
