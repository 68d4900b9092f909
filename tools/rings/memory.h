/*
 * The memory of one user's rings: tracepoints/format/ring.h has its layout.
 *
 * Programs of that user may write anything into it at any time. So each size is taken from it once,
 * checked against the file's size, and kept here; of a memory that was made before, it is the
 * caller who knows whose it is.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_MEMORY_H
#define BLKIN_TOOLS_RINGS_MEMORY_H

#include "babeltrace-plugin/base/error.h"
#include "tracepoints/format/ring.h"

#include <stdbool.h>
#include <stdint.h>

/* The file's name, with the user's number behind: no program can change it. */
#define MEMORY_NAME "blkin-rings."

struct memory_size {
    uint32_t cpus;
    uint64_t event_bytes; /* of each CPU's ring of events: a power of two */
    uint64_t alarm_bytes; /* of each CPU's ring of alarms: a power of two */
};

struct memory {
    int fd;
    char *at; /* the mapping */
    struct memory_size size;
    uint64_t heads_at;
    uint64_t data_at;
    uint64_t bytes;  /* of all of it */
    uint64_t made;   /* CLOCK_REALTIME in ns; of a memory of before it is the memory's word, and not
                        in the future */
    uint64_t filled; /* while it is made: its pages are there up to here */
};

/* CPUs that the host may ever have. */
uint32_t memory_host_cpus(void);

/* What a memory of this size takes; 0: there can be none of this size. */
uint64_t memory_bytes(const struct memory_size *size);

/*
 * Makes one; its size is sealed. Its pages come in steps, as those of a large one take a while:
 * nobody may have it until all are there, and charged to this process. Returns false with error
 * set.
 */
bool memory_begin(struct memory *memory, uint32_t user, const struct memory_size *size,
                  struct error *error);

/* Fills up to so many bytes more. Returns false with error set, and the memory closed. */
bool memory_fill(struct memory *memory, uint64_t bytes, struct error *error);
bool memory_is_full(const struct memory *memory);

/*
 * Maps one of before, or one that an agent gave, and checks all of it. The descriptor is the
 * memory's, also if this fails. Returns false with error set.
 */
bool memory_open(struct memory *memory, int fd, struct error *error);

/*
 * A descriptor of the memory to be given away; -1 with errno set. The kernel tells this process's
 * descriptors from those that were given away.
 */
int memory_share(const struct memory *memory);

/* Has any program a descriptor that was given away, or a mapping by it? True where the kernel does
 * not tell. */
bool memory_is_shared(const struct memory *memory);

/*
 * Maps a memory that another process of ours has checked: `known` is that process's struct, and fd
 * its descriptor here. Nothing is read from the memory, as programs may have overwritten its head
 * since. The descriptor is the memory's, also if this fails. Returns false with error set.
 */
bool memory_open_known(struct memory *memory, int fd, const struct memory *known,
                       struct error *error);

/* Unmaps and closes it: it lives on in programs that have it. */
void memory_close(struct memory *memory);

bool memory_is_of_size(const struct memory *memory, const struct memory_size *size);

/* Programs find it with their periodic work. */
void memory_set_state(struct memory *memory, enum ring_state state);
enum ring_state memory_state(const struct memory *memory);

/* Once a second: programs see by it that this process lives. */
void memory_beat(struct memory *memory);
uint64_t memory_beats(const struct memory *memory);

/* What this process's clock is ahead of the host's: for programs with another one. */
void memory_set_ahead(const struct memory *memory, int64_t ahead_ns);

/* Rules of slow spans for its programs, which see them within a second. */
void memory_set_rules(const struct memory *memory, const char *text);

/* Do both refer to the same one? */
bool memory_is_same(const struct memory *memory, const struct memory *other);

/* ---- a ring: that of events of CPU c is ring c, that of its alarms is cpus + c */

struct ring {
    const uint64_t *committed;
    const char *bytes;
    uint64_t size; /* a power of two */
};

struct ring memory_ring(const struct memory *memory, uint32_t number);

static inline uint32_t memory_rings(const struct memory *memory)
{
    return memory->size.cpus * 2;
}

/* Records that programs could not write, as they say. */
uint64_t memory_lost(const struct memory *memory);

/* What was ever written to all of its rings. Programs may have written another number there. */
uint64_t memory_written(const struct memory *memory);

/* What was written to the busiest ring of events since `before`, which has a number for each CPU,
 * and is set to what was written by now. */
uint64_t memory_busiest(const struct memory *memory, uint64_t *before);

#endif
