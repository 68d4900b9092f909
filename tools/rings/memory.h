/*
 * The memory of one user's rings: tracepoints/format/ring.h has its layout.
 *
 * Programs of that user may write anything into the memory at any time. So sizes are read from the
 * memory once, compared with the file's size, and copied into struct memory. The user of a memory
 * of an earlier process is not read: the caller must know the user.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_TOOLS_RINGS_MEMORY_H
#define BLKIN_TOOLS_RINGS_MEMORY_H

#include "babeltrace-plugin/base/error.h"
#include "tracepoints/format/ring.h"

#include <stdbool.h>
#include <stdint.h>

/* The file's name is this text and the user's number. Programs cannot change the name. */
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
    uint64_t bytes;      /* of the whole memory */
    uint64_t created_ns; /* CLOCK_MONOTONIC, at most the time of memory_open() */
    uint64_t filled;     /* see memory_fill(): the bytes that have pages */
};

/* Returns the number of CPUs that the host may ever have, at most RING_CPUS_MAX. */
uint32_t memory_host_cpus(void);

/* Returns the bytes of a memory of this size; 0: no memory can have this size. */
uint64_t memory_bytes(const struct memory_size *size);

/*
 * Makes a memory and seals its size. memory_fill() adds the pages in steps, as a large memory takes
 * a while. Only a full memory may be shared: then all its pages are charged to this process.
 * Returns false with error set.
 */
bool memory_begin(struct memory *memory, uint32_t user, const struct memory_size *size,
                  struct error *error);

/* Adds the pages of the next `bytes` bytes, at most to the end. Returns false with error set, and
 * the memory closed. */
bool memory_fill(struct memory *memory, uint64_t bytes, struct error *error);
bool memory_is_full(const struct memory *memory);

/*
 * Checks and maps a memory of an earlier process or of an agent. Takes the descriptor, also on
 * failure. Returns false with error set.
 */
bool memory_open(struct memory *memory, int fd, struct error *error);

/*
 * Returns a descriptor of the memory for a program; -1 with errno set. memory_is_shared() can tell
 * such descriptors from the descriptor of this process.
 */
int memory_share(const struct memory *memory);

/* Sends such a descriptor to the program at a socket (struct ring_hello). Never blocks. Returns
 * false if the socket is full, or the descriptor cannot be made. */
bool memory_send(const struct memory *memory, int socket);

/* Returns true if a program has a descriptor of memory_share(), or has mapped such a descriptor, or
 * if the kernel does not tell. */
bool memory_is_shared(const struct memory *memory);

/*
 * Maps a memory once more. known: the struct of the memory that memory_begin() or memory_open() has
 * filled. Reads nothing from the memory, as programs may have overwritten its head since. Takes the
 * descriptor, also on failure. Returns false with error set.
 */
bool memory_open_known(struct memory *memory, int fd, const struct memory *known,
                       struct error *error);

/* Unmaps and closes the memory in this process. Programs that have the memory can still use it. */
void memory_close(struct memory *memory);

bool memory_is_of_size(const struct memory *memory, const struct memory_size *size);

/* Sets the state, which programs see in their periodic work. */
void memory_set_state(struct memory *memory, enum ring_state state);
enum ring_state memory_state(const struct memory *memory);

/* Shows programs that this process lives. The owner calls this function once a second. */
void memory_beat(struct memory *memory);

/* Tells programs in other time namespaces how far this process's CLOCK_MONOTONIC is ahead of the
 * host's. */
void memory_set_ahead(const struct memory *memory, int64_t ahead_ns);

/* Sets slow rules, which programs of the memory see within a second. A memory of an older layout
 * has no room for rules, and stays as it is. */
void memory_set_rules(const struct memory *memory, const char *text);

/* ---- rings: ring c has the events of CPU c, ring cpus + c the alarms of CPU c */

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

/* The next four results are not trusted, because programs count. Returns the number of records
 * that programs could not write. */
uint64_t memory_lost(const struct memory *memory);

/* Returns the time until which programs may have lost records, of CLOCK_MONOTONIC; 0: none. */
int64_t memory_missed_until(const struct memory *memory);

/* Returns the bytes that were ever written to all rings. */
uint64_t memory_written(const struct memory *memory);

/* Returns the bytes written to the busiest ring of events since the last call. before: the
 * positions at that call, one for each CPU; the function updates them. */
uint64_t memory_busiest(const struct memory *memory, uint64_t *before);

#endif
