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

#define GOOD_BYTES (2 * RING_PAGE + 3 * ((1 << 17) + (1 << 16)))

static const struct memory_size size = {3, 1 << 17, 1 << 16};
/* the head of a memory of this size */
static const struct ring_memory good = {
    RING_MARK,  3, 1000,    1 << 17, 1 << 16, RING_PAGE, 2 * RING_PAGE,
    GOOD_BYTES, 0, RING_ON, 0,       0,       0,         0};
static struct error error;

TEST(test_created)
{
    struct memory created, opened;
    struct stat status;
    void *map;
    int fd;

    CHECK(memory_host_cpus() == sysconf(_SC_NPROCESSORS_CONF));
    CHECK(memory_begin(&created, 1000, &size, &error) && memory_fill(&created, RING_PAGE, &error));
    CHECK(created.filled == RING_PAGE && !memory_is_full(&created));
    CHECK(memory_fill(&created, created.bytes, &error) && memory_is_full(&created));
    CHECK(created.bytes == GOOD_BYTES && memory_bytes(&size) == GOOD_BYTES &&
          created.filled == GOOD_BYTES);
    CHECK(memcmp(created.at, &good, offsetof(struct ring_memory, created_ns)) == 0);
    CHECK(memory_state(&created) == RING_ON && memory_lost(&created) == 0);
    CHECK(fstat(created.fd, &status) == 0 && (uint64_t)status.st_size == created.bytes);
    CHECK((uint64_t)status.st_blocks * 512 >= created.bytes); /* all pages are allocated */
    CHECK(ftruncate(created.fd, 4096) != 0 && errno == EPERM);
    CHECK(ftruncate(created.fd, 1 << 24) != 0 && errno == EPERM);
    CHECK(fcntl(created.fd, F_ADD_SEALS, F_SEAL_WRITE) != 0 && errno == EPERM);
    for (unsigned i = 0; i < 6; i++) {
        const struct ring ring = memory_ring(&created, i);
        const unsigned at = i < 3 ? i << 17 : (3 << 17) + ((i - 3) << 16);

        CHECK(ring.size == (i < 3 ? 1 << 17 : 1 << 16));
        CHECK(ring.bytes == created.at + 2 * RING_PAGE + at);
        CHECK((const char *)ring.committed == created.at + RING_PAGE + i * 128);
    }

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
        CHECK_TEXT(error.text, "rings of these sizes are not possible");
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
    CHECK(memory.fd == -1 && !memory.at && memory.bytes == 0);
    CHECK(memory_begin(&memory, 1000, &size, &error) && close(memory.fd) == 0);
    CHECK(!memory_fill(&memory, 1, &error) && memory.fd == -1 && !memory.at);
    CHECK_TEXT(error.text, "rings of 598016 bytes: Bad file descriptor");
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

#define LIES_MAX 6

/* Values of a member that do not fit to the other members. Another such value is 0. */
struct lies {
    size_t offset, width;
    uint64_t values[LIES_MAX];
};

#define HEAD_LIES(member, ...)                                                           \
    {                                                                                    \
        offsetof(struct ring_memory, member), sizeof(((struct ring_memory *)0)->member), \
        {                                                                                \
            __VA_ARGS__                                                                  \
        }                                                                                \
    }

TEST(test_lies)
{
    static const struct lies lies[] = {
        HEAD_LIES(mark, RING_MARK + (UINT64_C(1) << 56)),
        HEAD_LIES(cpus, 2, 4, RING_CPUS_MAX + 1, UINT32_MAX),
        HEAD_LIES(event_bytes, 1 << 16, 1 << 18, (1 << 17) + 8, UINT64_C(1) << 63),
        HEAD_LIES(alarm_bytes, 1 << 12, RING_BYTES_MAX, UINT64_MAX),
        HEAD_LIES(heads_at, 8, RING_PAGE + 8, 2 * RING_PAGE, 2 * RING_PAGE - 128, UINT64_MAX - 127),
        HEAD_LIES(data_at, RING_PAGE, 2 * RING_PAGE + 8, 3 * RING_PAGE, UINT64_MAX - 4095),
        HEAD_LIES(bytes, RING_PAGE, UINT64_MAX),
    };
    const off_t bytes = GOOD_BYTES;

    CHECK(is_taken(&good, bytes, SEALS));
    CHECK(!is_taken(&good, bytes - RING_PAGE, SEALS) && !is_taken(&good, bytes + 8, SEALS));
    CHECK(!is_taken(&good, 0, SEALS) && !is_taken(&good, 8, SEALS));
    CHECK(!is_taken(&good, bytes, F_SEAL_GROW | F_SEAL_SEAL));
    CHECK(!is_taken(&good, bytes, F_SEAL_SHRINK));
    CHECK(!is_taken(&good, bytes, 0));
    for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]) * LIES_MAX; i++) {
        const struct lies *of = &lies[i / LIES_MAX];
        struct ring_memory head = good;

        memcpy((char *)&head + of->offset, &of->values[i % LIES_MAX], of->width);
        CHECK(!is_taken(&head, bytes, SEALS));
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

/* The parts of the memory that change. Programs may write anything there. */
TEST(test_contents)
{
    uint64_t before[3] = {0};
    struct memory memory;
    struct ring_memory *head;
    struct ring_rules *rules;

    CHECK(memory_begin(&memory, 1000, &size, &error));
    head = (struct ring_memory *)(void *)memory.at;
    for (unsigned i = 0; i < 6; i++)
        *(uint64_t *)(uintptr_t)memory_ring(&memory, i).committed = 10 << i;
    CHECK(memory_written(&memory) == 630);
    /* not the average, which would hide a ring that programs overwrite too fast; no alarms */
    CHECK(memory_busiest(&memory, before) == 40);
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 0).committed = 4010;
    *(uint64_t *)(uintptr_t)memory_ring(&memory, 1).committed = 8; /* as damaged by a program */
    CHECK(memory_busiest(&memory, before) == 4000 && before[1] == 8);
    CHECK(memory_busiest(&memory, before) == 0);
    head->lost = 5, head->missed_until_ns = 6;
    CHECK(memory_lost(&memory) == 5 && memory_missed_until(&memory) == 6);
    memory_beat(&memory), memory_beat(&memory), memory_set_ahead(&memory, -7);
    CHECK(head->beats == 2 && head->ahead == -7);
    memory_set_state(&memory, RING_REPLACED);
    CHECK(head->state == 2 && memory_state(&memory) == RING_REPLACED);
    head->state = 3;
    CHECK(memory_state(&memory) == RING_LEFT);
    CHECK(memory_is_of_size(&memory, &size));
    CHECK(!memory_is_of_size(&memory, &(struct memory_size){2, 1 << 17, 1 << 16}));
    CHECK(!memory_is_of_size(&memory, &(struct memory_size){3, 1 << 16, 1 << 16}));
    CHECK(!memory_is_of_size(&memory, &(struct memory_size){3, 1 << 17, 1 << 17}));
    rules = (struct ring_rules *)(void *)(memory.at + RING_RULES_AT);
    rules->generation = UINT32_MAX; /* odd numbers, and 0, are of rules that programs ignore */
    memory_set_rules(&memory, "*>1s");
    CHECK(rules->generation == 2 && strcmp(rules->text, "*>1s") == 0);
    memory.heads_at = RING_RULES_AT + sizeof(*rules);
    memory_set_rules(&memory, "*>2s");
    memory.heads_at--;
    memory_set_rules(&memory, "not in an older layout");
    CHECK(rules->generation == 4 && strcmp(rules->text, "*>2s") == 0);
    memory_close(&memory);
}

CHECK_MAIN
