/*
 * A mapped memory of rings: the addresses of its parts, checked once.
 *
 * All programs of a user share the memory, so its content is not trusted. The library copies the
 * sizes, checks the copy before any write, and never reads them again. The memfd's seals ensure
 * that no access ends in SIGBUS.
 *
 * All functions are async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_MAP_H
#define BLKIN_RING_MAP_H

#include "tracepoints/format/ring.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

enum ring_which { RING_EVENTS, RING_ALARMS, RING_KINDS };

/* The rings of one kind. */
struct ring_part {
    struct ring_head *heads; /* one for each CPU */
    char *data;              /* the rings of all CPUs, one after the other */
    uint64_t mask;           /* bytes of a ring, minus 1 */
    uint64_t cpus;
};

struct ring_map {
    struct ring_part parts[RING_KINDS];
    struct ring_memory *memory;
    size_t bytes; /* of the memory */
    dev_t device; /* device and inode identify the memory */
    ino_t inode;
    struct ring_map *older; /* the memory that the process had before */
};

/* The data that each record reads: two cache lines that the processor fetches together. */
struct ring_process {
    const struct ring_map *map; /* the current memory; NULL: none. See ring_find.h */
    ptrdiff_t thread_at;        /* offset of struct ring_thread from the thread pointer */
    uint64_t head; /* first word of records, see struct ring_record; 0: take the slow path */
    struct ring_map first __attribute__((aligned(64))); /* the first memory of the process */
} __attribute__((aligned(128)));

extern __attribute__((visibility("hidden"))) struct ring_process ring_process;

/* Maps the descriptor's memory; the descriptor stays open. A memory that this process has had
 * before gets the same map again. NULL: the memory is not usable; *wrong says why. */
struct ring_map *ring_map_new(int descriptor, uint64_t bytes, const char **wrong);

/*
 * Leaves the memory: puts private memory in its place, for other threads that are writing now. The
 * map and its addresses stay for ever, because a thread may use them at any time. So each memory
 * that the process has had costs a page, and address space.
 */
void ring_map_leave(const struct ring_map *map);

/* Unmaps all memories. No thread may be using one. */
void ring_map_unmap_all(void);

/* Returns false if the agent has left or replaced the memory. */
bool ring_map_is_on(const struct ring_map *map);

/* Returns false if the agent has left the memory. */
bool ring_map_is_read(const struct ring_map *map);

/* Returns the counter that the agent increments once a second. */
uint64_t ring_map_beats(const struct ring_map *map);

/* Copies the agent's rules of slow spans. Returns false if there are none, if the agent is writing
 * them, or if a program has overwritten them. */
bool ring_map_rules(const struct ring_map *map, char text[RING_RULES_MAX]);

/* Returns true if the descriptor refers to this memory. */
bool ring_map_is_same(const struct ring_map *map, int descriptor);

#endif
