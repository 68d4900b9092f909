/* SPDX-License-Identifier: BSD-2-Clause */
#include "ring_map.h"

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

struct ring_process ring_process;

static struct ring_map *ring_newest; /* the first of a list of all memories of this process */

static void ring_map_fill(struct ring_map *map, char *base, const struct ring_memory *memory)
{
    struct ring_head *heads = (struct ring_head *)(void *)(base + memory->heads_at);
    char *data = base + memory->data_at;

    *map = (struct ring_map){
        .parts = {[RING_EVENTS] = {heads, data, memory->event_bytes - 1, memory->cpus},
                  [RING_ALARMS] = {heads + memory->cpus, data + memory->cpus * memory->event_bytes,
                                   memory->alarm_bytes - 1, memory->cpus}},
        .memory = (struct ring_memory *)(void *)base,
        .bytes = memory->bytes,
    };
}

/* Maps the descriptor at this address. After mlockall(MCL_FUTURE), the kernel would populate and
 * lock a new mapping at once. So the function makes the mapping elsewhere with PROT_NONE, unlocks
 * it, and then moves it. */
static bool ring_map_fixed(char *address, size_t bytes, int flags, int descriptor)
{
    const int access = PROT_READ | PROT_WRITE;
    char *made = mmap(NULL, bytes, PROT_NONE, flags, descriptor, 0);

    if (made != MAP_FAILED && munlock(made, bytes) == 0 && mprotect(made, bytes, access) == 0 &&
        mremap(made, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, address) == address)
        return true;
    if (made != MAP_FAILED)
        (void)munmap(made, bytes);
    /* there may be no address space for two mappings */
    return mmap(address, bytes, access, flags | MAP_FIXED, descriptor, 0) == address;
}

/* Maps and checks the memory at this address. Returns NULL, or the problem. */
static const char *ring_map_at(struct ring_map *map, char *address, int descriptor, size_t bytes)
{
    struct ring_memory memory;
    const char *wrong;

    if (!ring_map_fixed(address, bytes, MAP_SHARED, descriptor))
        return "it cannot be mapped";
    (void)madvise(address, bytes, MADV_DONTDUMP); /* the agent has the memory after a crash */
    memory = *(const volatile struct ring_memory *)(const void *)address;
    wrong = ring_problem(&memory, bytes);
    if (!wrong && memory.state != RING_ON)
        wrong = "its reader has ended";
    if (!wrong)
        ring_map_fill(map, address, &memory);
    return wrong;
}

/* Copies the map of the first memory to ring_process.first, which is beside the other data that
 * each record reads. Most processes have only one memory. */
static struct ring_map *ring_map_store_first(struct ring_map *map)
{
    if (ring_process.first.memory)
        return map;
    ring_process.first = *map;
    return &ring_process.first;
}

static size_t ring_map_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Reserves address space for the memory, at a multiple of RING_HUGE, and for one page before it. */
static char *ring_map_room(size_t page, size_t bytes)
{
    const size_t kept = page + ((bytes + page - 1) & -page), size = kept + RING_HUGE;
    char *room = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    size_t before;

    if (room == MAP_FAILED)
        return NULL;
    (void)munlock(room, size);
    before = -((uintptr_t)room + page) & (RING_HUGE - 1);
    if (before)
        (void)munmap(room, before);
    (void)munmap(room + before + kept, RING_HUGE - before);
    return room + before;
}

static void ring_map_unmap(const struct ring_map *map)
{
    (void)munmap((char *)map->memory - ring_map_page(), ring_map_page() + map->bytes);
}

/* Maps a memory that this process has not had before. The page before the memory contains the
 * map. */
static struct ring_map *ring_map_at_new_address(int descriptor, size_t bytes, const char **wrong)
{
    const size_t page = ring_map_page();
    char *room = ring_map_room(page, bytes);
    struct ring_map *map = (struct ring_map *)(void *)room;

    *wrong = "there is no address space for it";
    if (!room)
        return NULL;
    if (mprotect(room, page, PROT_READ | PROT_WRITE) == 0)
        *wrong = ring_map_at(map, room + page, descriptor, bytes);
    if (!*wrong)
        return ring_map_store_first(map);
    (void)munmap(room, page + bytes);
    return NULL;
}

/* Maps a memory that this process has had before, at the same address. With new addresses, a
 * process that often changes its user, or outlives many agents, would have too many mappings. */
static struct ring_map *ring_map_at_old_address(struct ring_map *map, int descriptor,
                                                const char **wrong)
{
    struct ring_map now;

    *wrong = ring_map_at(&now, (char *)map->memory, descriptor, map->bytes);
    if (!*wrong && memcmp(now.parts, map->parts, sizeof(now.parts)) != 0)
        *wrong = "its layout has changed";
    if (!*wrong)
        return map;
    ring_map_leave(map);
    return NULL;
}

static struct ring_map *ring_map_find(const struct stat *status)
{
    struct ring_map *map = ring_newest;

    while (map && (map->device != status->st_dev || map->inode != status->st_ino ||
                   map->bytes != (size_t)status->st_size))
        map = map->older;
    return map;
}

#define RING_MAP_PARTS 4 /* a memory may take at most 1/4 of the program's address space */

static bool ring_map_is_too_large(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
           bytes > limit.rlim_cur / RING_MAP_PARTS;
}

struct ring_map *ring_map_new(int descriptor, uint64_t bytes, const char **wrong)
{
    const int seals = fcntl(descriptor, F_GET_SEALS);
    struct stat status;
    struct ring_map *map;

    *wrong = "it is not sealed against shrinking";
    if (seals < 0 || !(seals & F_SEAL_SHRINK))
        return NULL;
    *wrong = "its size is wrong";
    if (fstat(descriptor, &status) != 0 || (uint64_t)status.st_size != bytes ||
        bytes < sizeof(struct ring_memory) || bytes > SIZE_MAX / 4)
        return NULL;
    map = ring_map_find(&status);
    *wrong = "it is more than a quarter of the address space that the program may have (ulimit -v)";
    if (!map && ring_map_is_too_large(bytes))
        return NULL;
    if (map)
        return ring_map_at_old_address(map, descriptor, wrong);
    map = ring_map_at_new_address(descriptor, bytes, wrong);
    if (map) {
        map->device = status.st_dev;
        map->inode = status.st_ino;
        map->older = ring_newest;
        ring_newest = map;
    }
    return map;
}

void ring_map_leave(const struct ring_map *map)
{
    (void)ring_map_fixed((char *)map->memory, map->bytes,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1);
}

void ring_map_unmap_all(void)
{
    for (struct ring_map *map = ring_newest, *older; map; map = older) {
        older = map->older;
        ring_map_unmap(map);
    }
    ring_newest = NULL;
    ring_process.first.memory = NULL;
}

bool ring_map_is_on(const struct ring_map *map)
{
    return __atomic_load_n(&map->memory->state, __ATOMIC_RELAXED) == RING_ON;
}

bool ring_map_is_read(const struct ring_map *map)
{
    return __atomic_load_n(&map->memory->state, __ATOMIC_RELAXED) != RING_LEFT;
}

uint64_t ring_map_beats(const struct ring_map *map)
{
    return __atomic_load_n(&map->memory->beats, __ATOMIC_RELAXED);
}

bool ring_map_rules(const struct ring_map *map, char text[RING_RULES_MAX])
{
    const char *base = (const char *)map->memory;
    const struct ring_rules *rules =
        (const struct ring_rules *)(const void *)(base + RING_RULES_AT);
    const size_t end = RING_RULES_AT + sizeof(*rules);
    uint32_t generation;

    if ((size_t)((const char *)map->parts[RING_EVENTS].heads - base) < end)
        return false;
    generation = __atomic_load_n(&rules->generation, __ATOMIC_ACQUIRE);
    if (generation == 0 || generation % 2)
        return false;
    for (size_t i = 0; i < RING_RULES_MAX; i++) /* all loads precede the second one of generation */
        text[i] = __atomic_load_n(&rules->text[i], __ATOMIC_ACQUIRE);
    return __atomic_load_n(&rules->generation, __ATOMIC_RELAXED) == generation &&
           memchr(text, '\0', RING_RULES_MAX);
}

bool ring_map_is_same(const struct ring_map *map, int descriptor)
{
    struct stat status;

    return fstat(descriptor, &status) == 0 && status.st_dev == map->device &&
           status.st_ino == map->inode;
}
