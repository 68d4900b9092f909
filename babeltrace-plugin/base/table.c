/* SPDX-License-Identifier: BSD-2-Clause */
#include "table.h"

#include "hash.h"

#include <stdlib.h>

#define FIRST_BUCKETS 64

bool table_init(struct table *table)
{
    *table = (struct table){.mask = FIRST_BUCKETS - 1, .seed = hash_seed(table)};
    table->buckets = calloc(FIRST_BUCKETS, sizeof(struct table_link *));
    return table->buckets != NULL;
}

static struct table_link *first_from(const struct table *table, size_t bucket)
{
    while (bucket <= table->mask && !table->buckets[bucket])
        bucket++;
    return bucket <= table->mask ? table->buckets[bucket] : NULL;
}

struct table_link *table_first(const struct table *table)
{
    return table->buckets ? first_from(table, 0) : NULL;
}

struct table_link *table_next(const struct table *table, const struct table_link *link)
{
    return link->next ? link->next : first_from(table, (link->hash & table->mask) + 1);
}

void table_destroy(struct table *table, void (*free_linked)(struct table_link *link))
{
    struct table_link *link = free_linked ? table_first(table) : NULL, *next;

    for (; link; link = next) {
        next = table_next(table, link);
        free_linked(link);
    }
    free(table->buckets);
}

/* Splits a bucket into two, each in the former order. */
static void table_split(struct table_link *link, struct table_link **buckets, size_t size)
{
    struct table_link **ends[2] = {&buckets[0], &buckets[size]};

    for (; link; link = link->next) {
        struct table_link ***end = &ends[(link->hash & size) != 0];

        link->at = *end;
        **end = link;
        *end = &link->next;
    }
    *ends[0] = *ends[1] = NULL;
}

void table_grow(struct table *table)
{
    struct table_link **const old = table->buckets;
    const size_t old_size = table->mask + 1;
    struct table_link **bigger = calloc(old_size * 2, sizeof(struct table_link *));

    if (!bigger)
        return;
    for (size_t i = 0; i < old_size; i++)
        table_split(old[i], &bigger[i], old_size);
    table->buckets = bigger;
    table->mask = old_size * 2 - 1;
    free(old);
}
