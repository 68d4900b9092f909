/*
 * Keeps the latest samples in memory.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "memory.h"

#include <stdlib.h>
#include <string.h>

static struct remembered *memory_at(struct sample_memory *memory, uint64_t number)
{
    return &memory->samples[number % SAMPLE_MEMORY_MAX];
}

static void memory_drop_oldest(struct sample_memory *memory)
{
    struct remembered *oldest = memory_at(memory, memory->oldest++);

    memory->bytes -= oldest->length;
    free(oldest->payload);
    oldest->payload = NULL;
}

bool memory_add(struct sample_memory *memory, int64_t monotonic_ns, const char *payload,
                size_t length)
{
    char *copy = malloc(length);

    if (!copy)
        return false;
    while (memory->next > memory->oldest && (memory->next - memory->oldest == SAMPLE_MEMORY_MAX ||
                                             memory->bytes + length > SAMPLE_MEMORY_BYTES))
        memory_drop_oldest(memory);
    memcpy(copy, payload, length);
    memory->bytes += length;
    *memory_at(memory, memory->next++) = (struct remembered){monotonic_ns, length, copy};
    return true;
}

uint64_t memory_read(struct sample_memory *memory, uint64_t number, int64_t from_ns,
                     memory_take_fn *take, void *context)
{
    if (number < memory->oldest)
        number = memory->oldest;
    for (; number < memory->next; number++) {
        const struct remembered *sample = memory_at(memory, number);

        if (sample->monotonic_ns >= from_ns)
            take(context, sample->payload, sample->length);
    }
    return number;
}

void memory_empty(struct sample_memory *memory)
{
    while (memory->oldest < memory->next)
        memory_drop_oldest(memory);
}
