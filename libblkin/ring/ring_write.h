/*
 * Writing a record into the ring of the CPU that the thread runs on.
 *
 * Copy and commit are one restartable sequence (rseq(2)): if the thread loses its CPU, or a signal
 * comes, before the commit, then nothing was written and the thread tries again. So there is no
 * lock and no locked instruction, and a writer that is killed leaves the ring whole. It needs the
 * C library to have registered the thread with the kernel, as glibc does since 2.35.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_RING_WRITE_H
#define BLKIN_RING_WRITE_H

#include "ring_map.h"
#include "ring_sequence.h"

/* No event has a shorter payload. */
#define RING_PAYLOAD_MIN 32

#define RING_PAYLOAD_MAX (RING_RECORD_MAX - RING_TRAILER_SIZE - sizeof(struct ring_record))

/* Once, before ring_write(). False: this processor, C library or kernel has no such sequences. */
bool ring_write_init(void);

/* What this process's records have: its number, and the agent's clock, as that memory says it.
 * Again when it has another memory; with the next record after fork(2). */
void ring_write_know(const struct ring_map *map);
void ring_write_after_fork(void);

/* What a record's trailer has besides its position and the length of its payload. */
static inline uint64_t ring_kind(unsigned event)
{
    return ring_trailer(0, event, sizeof(struct ring_record));
}

/* What there is to store at `before`. */
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

/* Bytes up to the end of the ring. */
static inline uint64_t ring_left(const struct ring_part *part, uint64_t before)
{
    return part->mask + 1 - (before & part->mask);
}

/*
 * Prefetches some records ahead of the writer. A ring is larger than a CPU's caches, so without
 * that the stores of each record would wait for memory. A usual record has four cache lines. A
 * prefetch beyond the ring does nothing.
 */
static inline __attribute__((always_inline)) void ring_prefetch(const struct ring_store *store)
{
    const char *ahead = store->to + store->size + 1024;

    __builtin_prefetch(ahead, 1);
    __builtin_prefetch(ahead + 64, 1);
    __builtin_prefetch(ahead + 128, 1);
    __builtin_prefetch(ahead + 192, 1);
}

/* One try, of a record of the lengths above, in a process that has a head for it. */
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

/*
 * Any record. False: it went nowhere, and is counted in the memory. That is so after 16
 * interruptions in a row, as under a debugger that steps through the sequence; on a CPU that the
 * memory has no ring for; and with a payload of another length than those above.
 * Async-signal-safe.
 */
bool ring_write(const struct ring_map *map, enum ring_which which, uint64_t kind,
                const void *payload, size_t length);

#endif
