/*
 * A memory of rings, mapped: where its parts are, checked once.
 *
 * The memory is shared with all programs of a user: what is in it is never believed. The sizes are
 * copied and checked before anything is written, and cannot change afterwards. The seals see to it
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
    char *data;              /* of the ring of CPU 0; that of CPU 1 follows */
    uint64_t mask;           /* bytes of a ring, less 1 */
    uint64_t cpus;
};

struct ring_map {
    struct ring_part parts[RING_KINDS];
    struct ring_memory *memory;
    size_t bytes; /* of the memory */
    dev_t device; /* by these two it is known again */
    ino_t inode;
    struct ring_map *older;
};

/* What every record looks at: in two cache lines that a processor fetches together. */
struct ring_process {
    const struct ring_map *map; /* into which this process writes; NULL: none. See ring_find.h */
    ptrdiff_t thread_at;        /* struct ring_thread, from the thread pointer */
    uint64_t head; /* what records begin with: struct ring_record; 0: ring_write() knows */
    struct ring_map first __attribute__((aligned(64))); /* that it has had */
} __attribute__((aligned(128)));

extern __attribute__((visibility("hidden"))) struct ring_process ring_process;

/*
 * Maps what the descriptor refers to, which stays open: the map of before if this process has had
 * this memory. NULL: it is no memory of rings that one could write into; *wrong says why.
 */
struct ring_map *ring_map_new(int descriptor, uint64_t bytes, const char **wrong);

/*
 * Lets go of the memory: from now on, what other threads are just writing goes to memory of this
 * process alone. The map itself and its addresses stay for ever, as a thread may use them at any
 * time: a page, and room for addresses, for each memory that the process has had.
 */
void ring_map_leave(const struct ring_map *map);

/* Unmaps all memories that this process has had: no thread uses one any more. */
void ring_map_unmap_all(void);

/* Is the agent not done with it? */
bool ring_map_is_on(const struct ring_map *map);

/* What the agent raises as long as it lives. */
uint64_t ring_map_beats(const struct ring_map *map);

/*
 * Copies the rules of slow spans that the agent has put there. False: there are none, they are
 * being written, or a program has overwritten them.
 */
bool ring_map_rules(const struct ring_map *map, char text[RING_RULES_MAX]);

/* Does the descriptor refer to this memory? */
bool ring_map_is_of(const struct ring_map *map, int descriptor);

#endif
