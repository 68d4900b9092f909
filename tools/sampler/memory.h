/*
 * Keeps the latest samples in memory, as numbered payloads of blkin:metric events. A new sample
 * replaces the oldest.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_SAMPLER_MEMORY_H
#define BLKIN_SAMPLER_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SAMPLE_MEMORY_MAX   ((size_t)1 << 16)
#define SAMPLE_MEMORY_BYTES ((size_t)16 << 20) /* the limit for all payloads */

struct sample_memory {
    uint64_t oldest, next; /* the numbers of the oldest and of the next sample */
    size_t bytes;
    struct remembered {
        int64_t monotonic_ns;
        size_t length;
        char *payload;
    } samples[SAMPLE_MEMORY_MAX]; /* by number modulo SAMPLE_MEMORY_MAX; the kernel provides pages
                                     on use */
};

/* Returns false when out of memory. */
bool memory_add(struct sample_memory *memory, int64_t monotonic_ns, const char *payload,
                size_t length);

/* Calls take() for each sample from this number and time on. Returns the next number. */
typedef void memory_take_fn(void *context, const char *payload, size_t length);
uint64_t memory_read(struct sample_memory *memory, uint64_t number, int64_t from_ns,
                     memory_take_fn *take, void *context);

void memory_empty(struct sample_memory *memory);

#endif
