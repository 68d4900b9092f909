/*
 * Memory of open spans: what has ended is kept for the next.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include <stdlib.h>

#define POOL_MAX   4096
#define DATA_FIRST 128 /* bytes: most need no more */

static struct pair_open *open_allocate(void)
{
    struct pair_open *open = malloc(sizeof(*open));

    if (!open)
        return NULL;
    open->data =
        (struct buffer){.data = malloc(DATA_FIRST), .capacity = DATA_FIRST, .limit = PAIR_KEPT_MAX};
    if (open->data.data)
        return open;
    free(open);
    return NULL;
}

struct pair_open *open_take(struct pairing *pairing)
{
    struct pair_open *open = pairing->pool;

    if (open) {
        pairing->pool = open->older;
        pairing->pool_length--;
        open->data.length = 0;
    } else {
        open = open_allocate();
        if (!open)
            return NULL;
    }
    pairing->open_bytes += sizeof(*open) + open->data.capacity;
    return open;
}

void open_give(struct pairing *pairing, struct pair_open *open)
{
    pairing->open_bytes -= sizeof(*open) + open->data.capacity;
    if (pairing->pool_length < POOL_MAX && open->data.capacity <= 4 * DATA_FIRST) {
        open->older = pairing->pool;
        pairing->pool = open;
        pairing->pool_length++;
        return;
    }
    free(open->data.data);
    free(open);
}

bool open_reserve(struct pairing *pairing, struct pair_open *open, size_t bytes)
{
    const size_t before = open->data.capacity;
    const bool has_room = buffer_reserve(&open->data, bytes);

    pairing->open_bytes += open->data.capacity - before;
    return has_room;
}

void open_keep(struct pairing *pairing, struct pair_open *open, const struct kept_value *kept)
{
    const size_t before = open->data.capacity;

    if (kept->value.type == VALUE_NONE)
        return;
    if (!kept_put(&open->data, kept))
        pairing->counts[open->rule].no_room++;
    pairing->open_bytes += open->data.capacity - before;
}

void open_free_pool(struct pairing *pairing)
{
    while (pairing->pool) {
        struct pair_open *open = pairing->pool;

        pairing->pool = open->older;
        free(open->data.data);
        free(open);
    }
}
