/* SPDX-License-Identifier: BSD-2-Clause */
#include "memory.h"

#include "babeltrace-plugin/base/file.h"
#include "babeltrace-plugin/base/monotonic.h"
#include "babeltrace-plugin/base/unix_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define MEMORY_SEALS (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)

uint32_t memory_host_cpus(void)
{
    const long cpus = sysconf(_SC_NPROCESSORS_CONF);

    return cpus < 1 ? 1 : cpus > RING_CPUS_MAX ? RING_CPUS_MAX : (uint32_t)cpus;
}

/* ---- the layout ------------------------------------------------------------------------------ */

/* Returns the head of a new memory. `bytes` is 0 if no memory can have this size. */
static struct ring_memory memory_head_of(const struct memory_size *size)
{
    struct ring_memory head = {
        .mark = RING_MARK,
        .cpus = size->cpus,
        .event_bytes = size->event_bytes,
        .alarm_bytes = size->alarm_bytes,
        .state = RING_ON,
    };

    ring_lay_out(&head);
    if (ring_problem(&head, head.bytes))
        head.bytes = 0;
    return head;
}

uint64_t memory_bytes(const struct memory_size *size)
{
    return memory_head_of(size).bytes;
}

/* ---- new memories ---------------------------------------------------------------------------- */

/* Opens the file once more: a new descriptor with its own state in the kernel. */
static int memory_reopen(int fd)
{
    char path[sizeof("/proc/self/fd/") + 11];

    (void)snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return open(path, O_RDWR | O_CLOEXEC);
}

/*
 * Makes the file without its pages. Opens it twice: the kernel does not count the descriptor of
 * memfd_create(2) as a writer (see memory_is_shared()). Writes the head before the size is sealed.
 */
static bool memory_create(struct memory *memory, const struct ring_memory *head)
{
    char name[sizeof(MEMORY_NAME) + 10];
    int first;

    /* A memfd has no limit: if posix_fallocate(3) asks for more than there is, the kernel kills
     * other programs before the call fails. */
    if (head->bytes / (uint64_t)sysconf(_SC_PAGESIZE) > (uint64_t)sysconf(_SC_PHYS_PAGES) / 4) {
        errno = ENOMEM;
        return false;
    }
    (void)snprintf(name, sizeof(name), MEMORY_NAME "%" PRIu32, head->user);
    first = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);
    memory->fd = first < 0 ? -1 : memory_reopen(first);
    if (memory->fd < 0)
        memory->fd = first; /* no /proc */
    else
        (void)close(first);
    return memory->fd >= 0 && pwrite(memory->fd, head, sizeof(*head), 0) == sizeof(*head) &&
           ftruncate(memory->fd, (off_t)head->bytes) == 0 &&
           fcntl(memory->fd, F_ADD_SEALS, MEMORY_SEALS) == 0;
}

/* Reserves addresses at a multiple of RING_HUGE, so that the kernel can use huge pages. */
static void *memory_reserve(uint64_t bytes)
{
    const size_t size = bytes + RING_HUGE;
    char *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before;

    if (room == MAP_FAILED)
        return NULL;
    before = -(uintptr_t)room & (RING_HUGE - 1);
    if (before)
        (void)munmap(room, before);
    (void)munmap(room + before + bytes, size - before - bytes);
    return room + before;
}

static bool memory_map(struct memory *memory, const struct ring_memory *head)
{
    void *room = memory_reserve(head->bytes);
    void *at = room ? mmap(room, head->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                           memory->fd, 0)
                    : MAP_FAILED;

    if (at == MAP_FAILED) {
        if (room)
            (void)munmap(room, head->bytes);
        return false;
    }
    memory->at = at;
    memory->size = (struct memory_size){head->cpus, head->event_bytes, head->alarm_bytes};
    memory->heads_at = head->heads_at;
    memory->data_at = head->data_at;
    memory->bytes = head->bytes;
    memory->created_ns = head->created_ns;
    return true;
}

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25 /* Linux 6.1 */
#endif

static bool memory_fail_making(struct memory *memory, struct error *error)
{
    error_set(error, "rings of %llu bytes: %s", (unsigned long long)memory->bytes, strerror(errno));
    memory_close(memory);
    return false;
}

bool memory_begin(struct memory *memory, uint32_t user, const struct memory_size *size,
                  struct error *error)
{
    struct ring_memory head = memory_head_of(size);

    head.user = user;
    head.created_ns = (uint64_t)clock_ns();
    *memory = (struct memory){.fd = -1};
    if (!head.bytes)
        return error_set(error, "rings of these sizes are not possible");
    memory->bytes = head.bytes;
    if (!memory_create(memory, &head) || !memory_map(memory, &head))
        return memory_fail_making(memory, error);
    return true;
}

/* Makes the kernel zero the pages now, and not when a program first writes to them. Uses huge pages
 * where possible, as they are quicker. */
bool memory_fill(struct memory *memory, uint64_t bytes, struct error *error)
{
    const uint64_t from = memory->filled, left = memory->bytes - from;
    const uint64_t count = bytes < left ? bytes : left;

    errno = posix_fallocate(memory->fd, (off_t)from, (off_t)count);
    if (errno)
        return memory_fail_making(memory, error);
    (void)madvise(memory->at + from, count, MADV_COLLAPSE); /* on failure: small pages */
    for (uint64_t at = from; at < from + count; at += RING_PAGE)
        (void)*(const volatile char *)(memory->at + at);
    memory->filled += count;
    return true;
}

bool memory_is_full(const struct memory *memory)
{
    return memory->filled == memory->bytes;
}

/* ---- existing memories ----------------------------------------------------------------------- */

/* A sealed size cannot change, so no access of the mapping ever fails. */
static bool memory_is_sealed(int fd, struct stat *status)
{
    const int seals = fcntl(fd, F_GET_SEALS);

    return seals >= 0 && (seals & MEMORY_SEALS) == MEMORY_SEALS && fstat(fd, status) == 0 &&
           S_ISREG(status->st_mode) && status->st_size >= (off_t)sizeof(struct ring_memory);
}

static const char *memory_problem(int fd, struct ring_memory *head)
{
    struct stat status;

    if (!memory_is_sealed(fd, &status))
        return "its size is not sealed";
    if (pread(fd, head, sizeof(*head), 0) != (ssize_t)sizeof(*head))
        return "it cannot be read";
    return ring_problem(head, (uint64_t)status.st_size);
}

/* problem: why the head is not valid; NULL: it is. */
static bool memory_open_by(struct memory *memory, int fd, const struct ring_memory *head,
                           const char *problem, struct error *error)
{
    *memory = (struct memory){.fd = fd};
    if (!problem && !memory_map(memory, head))
        problem = strerror(errno);
    if (!problem)
        return true;
    error_set(error, "cannot use the memory of rings: %s", problem);
    memory_close(memory);
    return false;
}

int memory_share(const struct memory *memory)
{
    const int fd = memory_reopen(memory->fd);

    return fd >= 0 ? fd : fcntl(memory->fd, F_DUPFD_CLOEXEC, 0);
}

bool memory_send(const struct memory *memory, int socket)
{
    struct ring_hello hello = {.mark = RING_MARK, .bytes = memory->bytes};
    GUARD_FD const int shared = memory_share(memory);

    return shared >= 0 && unix_socket_send(socket, &hello, sizeof(hello), shared, MSG_DONTWAIT) ==
                              (ssize_t)sizeof(hello);
}

/* The kernel grants a write lease only while nobody else has the file open. */
bool memory_is_shared(const struct memory *memory)
{
    if (fcntl(memory->fd, F_SETLEASE, F_WRLCK) != 0)
        return true;
    (void)fcntl(memory->fd, F_SETLEASE, F_UNLCK);
    return false;
}

bool memory_open(struct memory *memory, int fd, struct error *error)
{
    const uint64_t now = (uint64_t)clock_ns();
    struct ring_memory head;
    const char *problem = memory_problem(fd, &head);

    if (!problem && head.created_ns > now)
        head.created_ns = now;
    return memory_open_by(memory, fd, &head, problem, error);
}

bool memory_open_known(struct memory *memory, int fd, const struct memory *known,
                       struct error *error)
{
    const struct ring_memory head = {.cpus = known->size.cpus,
                                     .event_bytes = known->size.event_bytes,
                                     .alarm_bytes = known->size.alarm_bytes,
                                     .heads_at = known->heads_at,
                                     .data_at = known->data_at,
                                     .bytes = known->bytes,
                                     .created_ns = known->created_ns};
    struct stat status;
    const bool is_same = memory_is_sealed(fd, &status) && (uint64_t)status.st_size == known->bytes;

    return memory_open_by(memory, fd, &head, is_same ? NULL : "its size differs", error);
}

void memory_close(struct memory *memory)
{
    if (memory->at)
        (void)munmap(memory->at, memory->bytes);
    if (memory->fd >= 0)
        (void)close(memory->fd);
    *memory = (struct memory){.fd = -1};
}

/* ---- the contents ---------------------------------------------------------------------------- */

bool memory_is_of_size(const struct memory *memory, const struct memory_size *size)
{
    return memory->size.cpus == size->cpus && memory->size.event_bytes == size->event_bytes &&
           memory->size.alarm_bytes == size->alarm_bytes;
}

static struct ring_memory *memory_head(const struct memory *memory)
{
    return (struct ring_memory *)(void *)memory->at;
}

void memory_set_state(struct memory *memory, enum ring_state state)
{
    __atomic_store_n(&memory_head(memory)->state, (int32_t)state, __ATOMIC_RELEASE);
}

enum ring_state memory_state(const struct memory *memory)
{
    const int32_t state = __atomic_load_n(&memory_head(memory)->state, __ATOMIC_ACQUIRE);

    return state == RING_ON || state == RING_REPLACED ? (enum ring_state)state : RING_LEFT;
}

void memory_beat(struct memory *memory)
{
    (void)__atomic_add_fetch(&memory_head(memory)->beats, 1, __ATOMIC_RELAXED);
}

void memory_set_ahead(const struct memory *memory, int64_t ahead_ns)
{
    __atomic_store_n(&memory_head(memory)->ahead, ahead_ns, __ATOMIC_RELAXED);
}

/* Reads only `generation` from the untrusted memory, and uses it only for the next generation. */
void memory_set_rules(const struct memory *memory, const char *text)
{
    struct ring_rules *rules = (struct ring_rules *)(void *)(memory->at + RING_RULES_AT);
    const uint32_t now = __atomic_load_n(&rules->generation, __ATOMIC_RELAXED) & ~UINT32_C(1);

    if (memory->heads_at < RING_RULES_AT + sizeof(*rules))
        return;
    __atomic_store_n(&rules->generation, now + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
    (void)snprintf(rules->text, sizeof(rules->text), "%s", text);
    __atomic_store_n(&rules->generation, now + 2 ? now + 2 : 2, __ATOMIC_RELEASE);
}

struct ring memory_ring(const struct memory *memory, uint32_t number)
{
    const struct memory_size *size = &memory->size;
    const bool has_alarms = number >= size->cpus;
    const uint64_t at =
        has_alarms ? size->cpus * size->event_bytes + (number - size->cpus) * size->alarm_bytes
                   : number * size->event_bytes;
    const struct ring_head *heads =
        (const struct ring_head *)(const void *)(memory->at + memory->heads_at);

    return (struct ring){.committed = &heads[number].committed,
                         .bytes = memory->at + memory->data_at + at,
                         .size = has_alarms ? size->alarm_bytes : size->event_bytes};
}

uint64_t memory_written(const struct memory *memory)
{
    uint64_t written = 0;

    for (uint32_t i = 0; i < memory_rings(memory); i++)
        written += __atomic_load_n(memory_ring(memory, i).committed, __ATOMIC_RELAXED);
    return written;
}

uint64_t memory_busiest(const struct memory *memory, uint64_t *before)
{
    uint64_t most = 0;

    for (uint32_t cpu = 0; cpu < memory->size.cpus; cpu++) {
        const uint64_t now = __atomic_load_n(memory_ring(memory, cpu).committed, __ATOMIC_RELAXED);

        if (now > before[cpu] && now - before[cpu] > most)
            most = now - before[cpu];
        before[cpu] = now;
    }
    return most;
}

uint64_t memory_lost(const struct memory *memory)
{
    return __atomic_load_n(&memory_head(memory)->lost, __ATOMIC_RELAXED);
}

int64_t memory_missed_until(const struct memory *memory)
{
    return (int64_t)__atomic_load_n(&memory_head(memory)->missed_until_ns, __ATOMIC_RELAXED);
}
