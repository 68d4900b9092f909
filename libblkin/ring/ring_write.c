/*
 * The end of a ring, and what else is rare.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "ring_write.h"

#include "libblkin/base/quiet.h"

#include <dlfcn.h>

#define RING_TRIES 16

/* By their names: an older C library has no such symbols. */
bool ring_write_init(void)
{
    const unsigned *size = dlsym(RTLD_DEFAULT, "__rseq_size");
    const ptrdiff_t *offset = dlsym(RTLD_DEFAULT, "__rseq_offset");

    if (!RING_HAS_SEQUENCES || !size || !offset || *size == 0)
        return false;
    ring_process.thread_at = *offset;
    return true;
}

/* Fills the rest of the ring, which is too small for the record. */
static void ring_pad(uint32_t cpu, const struct ring_store *record, uint64_t left)
{
    (void)ring_commit(cpu, &(struct ring_store){
                               .committed = record->committed,
                               .before = record->before,
                               .to = record->to,
                               .size = left,
                               .trailer = ring_trailer(record->before + left - RING_TRAILER_SIZE,
                                                       RING_PAD, left - RING_TRAILER_SIZE),
                           });
}

static bool ring_try_slow(const struct ring_part *part, uint64_t kind, const void *payload,
                          size_t length)
{
    const uint32_t cpu = ring_this_cpu();
    struct ring_store store;
    uint64_t left;

    if (cpu >= part->cpus)
        return false;
    store = ring_store(part, cpu, __atomic_load_n(&part->heads[cpu].committed, __ATOMIC_RELAXED),
                       kind, payload, length);
    left = ring_left(part, store.before);
    if (store.size > left) {
        ring_pad(cpu, &store, left);
        return false;
    }
    return ring_commit(cpu, &store);
}

bool ring_write(const struct ring_map *map, enum ring_which which, uint64_t kind,
                const void *payload, size_t length)
{
    const bool is_possible = length >= RING_PAYLOAD_MIN && length <= RING_PAYLOAD_MAX;

    if (ring_process.pid == 0)
        __atomic_store_n(&ring_process.pid, blkin_pid(), __ATOMIC_RELAXED);
    for (unsigned tries = 0; is_possible && tries < RING_TRIES; tries++) {
        if (ring_try_slow(&map->parts[which], kind, payload, length))
            return true;
    }
    (void)__atomic_add_fetch(&map->memory->lost, 1, __ATOMIC_RELAXED);
    return false;
}
