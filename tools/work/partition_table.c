/*
 * The table by which a partition finds its traces: it grows, and traces leave it.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "partition_parts.h"

#include <stdlib.h>

/* A free one, for one that is not there. */
static struct table_place *partition_find_free(const struct partition *partition, uint64_t hash)
{
    uint32_t i = (uint32_t)hash & partition->table_mask;

    while (partition->table[i].trace)
        i = (i + 1) & partition->table_mask;
    return &partition->table[i];
}

bool partition_set_table(struct partition *partition, uint32_t places)
{
    struct table_place *old = partition->table;
    const uint32_t old_places = old ? partition->table_mask + 1 : 0;

    partition->table = calloc(places, sizeof(*partition->table));
    if (!partition->table) {
        partition->table = old;
        return false;
    }
    partition->table_mask = places - 1;
    for (uint32_t i = 0; i < old_places; i++) {
        if (old[i].trace)
            *partition_find_free(partition, old[i].hash) = old[i];
    }
    free(old);
    return true;
}

/* Closes the gap that one leaves. */
void partition_remove_place(struct partition *partition, struct table_place *place)
{
    uint32_t gap = (uint32_t)(place - partition->table);

    partition->table_used--;
    for (uint32_t i = gap;;) {
        uint32_t home;

        i = (i + 1) & partition->table_mask;
        if (!partition->table[i].trace)
            break;
        home = (uint32_t)partition->table[i].hash & partition->table_mask;
        /* does it lie between the gap and here, where it is found from? */
        if (((i - home) & partition->table_mask) < ((i - gap) & partition->table_mask))
            continue;
        partition->table[gap] = partition->table[i];
        gap = i;
    }
    partition->table[gap].trace = NULL;
}
