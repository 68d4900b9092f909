/*
 * Memory of open spans: what has ended is kept for the next.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "pairing_parts.h"

#include <stdlib.h>

#define POOL_MAX   4096
#define DATA_FIRST 128 /* bytes: most need no more */

/* With an empty buffer that has room. */
static struct pair_open *open_new(void)
{
    struct pair_open *open = malloc(sizeof(*open));

    if (!open)
        return NULL;
    *open = (struct pair_open){
        .data = {.data = malloc(DATA_FIRST), .capacity = DATA_FIRST, .limit = PAIR_KEPT_MAX}};
    if (open->data.data)
        return open;
    free(open);
    return NULL;
}

struct pair_open *open_take(struct pairing *pairing)
{
    struct pair_open *open;
    struct buffer data;

    if (cds_list_empty(&pairing->pool))
        return open_new();
    open = cds_list_first_entry(&pairing->pool, struct pair_open, in_queue);
    cds_list_del(&open->in_queue);
    pairing->pool_length--;
    data = open->data;
    data.length = 0;
    *open = (struct pair_open){.data = data};
    return open;
}

void open_give(struct pairing *pairing, struct pair_open *open)
{
    if (pairing->pool_length < POOL_MAX && open->data.capacity <= 4 * DATA_FIRST) {
        cds_list_add(&open->in_queue, &pairing->pool);
        pairing->pool_length++;
        return;
    }
    free(open->data.data);
    free(open);
}

void open_free_pool(struct pairing *pairing)
{
    struct pair_open *open, *next;

    cds_list_for_each_entry_safe(open, next, &pairing->pool, in_queue)
    {
        free(open->data.data);
        free(open);
    }
}
