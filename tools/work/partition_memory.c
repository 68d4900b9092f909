/*
 * Memory of a worker's traces and spans, in slabs that are used again.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "partition_parts.h"

#include <stdlib.h>

#define SLAB_BYTES (UINT32_C(1) << 20)

struct slab {
    struct slab *next;
    union {
        struct held_trace traces[1];
        struct held_span spans[1];
    } items;
};

static struct slab *partition_new_slab(struct assembly *assembly)
{
    struct slab *slab = malloc(SLAB_BYTES);

    assembly->is_starved |= !slab;
    if (slab) {
        slab->next = assembly->slabs;
        assembly->slabs = slab;
    }
    return slab;
}

#define SLAB_ITEMS(type) ((SLAB_BYTES - offsetof(struct slab, items)) / sizeof(type))

void partition_add_traces(struct assembly *assembly)
{
    struct slab *slab = partition_new_slab(assembly);

    for (size_t i = slab ? SLAB_ITEMS(struct held_trace) : 0; i; i--) {
        slab->items.traces[i - 1].next = assembly->free_traces;
        assembly->free_traces = &slab->items.traces[i - 1];
    }
}

void partition_add_spans(struct assembly *assembly)
{
    struct slab *slab = partition_new_slab(assembly);

    for (size_t i = slab ? SLAB_ITEMS(struct held_span) : 0; i; i--) {
        slab->items.spans[i - 1].next = assembly->free_spans;
        assembly->free_spans = &slab->items.spans[i - 1];
    }
}

void assembly_open(struct assembly *assembly)
{
    assembly->seed = hash_seed(assembly);
}

void assembly_close(struct assembly *assembly)
{
    struct slab *next;

    for (struct slab *slab = assembly->slabs; slab; slab = next) {
        next = slab->next;
        free(slab);
    }
    assembly->slabs = NULL;
}
