/*
 * Writes records into the ring of the current CPU.
 *
 * Copy and commit are one restartable sequence (rseq(2)). If the thread loses its CPU or gets a
 * signal before the commit, nothing is committed and the thread tries again. So there is no lock
 * and no locked instruction, and a killed writer leaves the ring consistent. The C library must
 * register each thread with the kernel, as glibc does since 2.35.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_WRITE_H
#define BLKIN_RING_WRITE_H

#include "ring_map.h"
#include "ring_sequence.h"

#define RING_PAYLOAD_MIN 32 /* ring_commit() copies blocks of this size */
#define RING_PAYLOAD_MAX (RING_RECORD_MAX - RING_TRAILER_SIZE - sizeof(struct ring_record))

/* Called once, before ring_write(). Returns false if the processor, the C library or the kernel
 * does not support restartable sequences. */
bool ring_write_init(void);

/* Sets the pid and the clock offset of records into this memory. Called for each new memory, and at
 * the first record after fork(2). */
void ring_write_set_identity(const struct ring_map *map);

/* Forgets pid and clock offset, in the child of fork(2). */
void ring_write_after_fork(void);

/* Returns the constant part of a record's trailer, without position and payload length. */
static inline uint64_t ring_kind(unsigned event)
{
    return ring_trailer(0, event, sizeof(struct ring_record));
}

/* Returns the input of ring_commit() for a record at `before`. */
static inline __attribute__((always_inline)) struct ring_store
ring_store(const struct ring_part *part, uint64_t cpu, uint64_t before, uint64_t kind,
           const void *payload, size_t length)
{
    const uint64_t size = ring_record_size(sizeof(struct ring_record) + length);

    return (struct ring_store){
        .committed = &part->heads[cpu].committed,
        .head = &ring_process.head,
        .before = before,
        .to = part->data + cpu * (part->mask + 1) + (before & part->mask),
        .size = size,
        .payload = payload,
        .length = length,
        .trailer = ring_trailer(before + size - RING_TRAILER_SIZE, 0, 0) + kind + length,
    };
}

/* Returns the number of bytes up to the end of the ring. */
static inline uint64_t ring_left(const struct ring_part *part, uint64_t before)
{
    return part->mask + 1 - (before & part->mask);
}

/*
 * Prefetches the memory of later records. A ring is larger than a CPU's caches, so without a
 * prefetch the stores of each record would wait for memory. A usual record has four cache lines. A
 * prefetch beyond the ring does no harm.
 */
static inline __attribute__((always_inline)) void ring_prefetch(const struct ring_store *store)
{
    const char *ahead = store->to + store->size + 1024;

    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + 64, 1);
    __builtin_prefetch(ahead + 128, 1);
    __builtin_prefetch(ahead + 192, 1);
}

/* The fast path: one try. The length is valid, and ring_process.head is not 0. */
static inline __attribute__((always_inline)) bool
ring_try(const struct ring_part *part, uint64_t kind, const void *payload, size_t length)
{
    const uint32_t cpu = ring_this_cpu();
    struct ring_store store;

    if (__builtin_expect(cpu >= part->cpus, 0))
        return false;
    store = ring_store(part, cpu, __atomic_load_n(&part->heads[cpu].committed, __ATOMIC_RELAXED),
                       kind, payload, length);
    if (__builtin_expect(store.size > ring_left(part, store.before), 0) ||
        !ring_commit(cpu, &store))
        return false;
    ring_prefetch(&store);
    return true;
}

/* Counts lost records in the memory. The agent then marks traces that began before until_ns, of
 * this process's CLOCK_MONOTONIC. */
void ring_lose(const struct ring_map *map, uint64_t records, uint64_t until_ns);

/*
 * Writes a record. Returns false if the record is lost, and counts it in the memory. A record is
 * lost after 16 interruptions in a row, as when a debugger steps through the sequence; on a CPU
 * without a ring; and with a payload of invalid length. Async-signal-safe.
 */
bool ring_write(const struct ring_map *map, enum ring_which which, uint64_t kind,
                const void *payload, size_t length);

#endif
