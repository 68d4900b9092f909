/*
 * The table's buckets.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "table.h"

#include "hash.h"

#include <stdlib.h>

#define FIRST_BUCKETS 256

bool table_init(struct table *table, table_hash_fn *hash_of)
{
    *table = (struct table){
        .mask = FIRST_BUCKETS - 1,
        .seed = hash_seed(table),
        .hash_of = hash_of,
    };
    table->buckets = calloc(FIRST_BUCKETS, sizeof(*table->buckets));
    return table->buckets != NULL;
}

static struct cds_hlist_node *first_from(const struct table *table, size_t bucket)
{
    while (bucket <= table->mask && !table->buckets[bucket].next)
        bucket++;
    return bucket <= table->mask ? table->buckets[bucket].next : NULL;
}

struct cds_hlist_node *table_first(const struct table *table)
{
    return table->buckets ? first_from(table, 0) : NULL;
}

struct cds_hlist_node *table_next(const struct table *table, const struct cds_hlist_node *link)
{
    return link->next ? link->next
                      : first_from(table, (table->hash_of(table->seed, link) & table->mask) + 1);
}

void table_destroy(struct table *table, void (*free_linked)(struct cds_hlist_node *link))
{
    struct cds_hlist_node *link = free_linked ? table_first(table) : NULL, *next;

    for (; link; link = next) {
        next = table_next(table, link);
        free_linked(link);
    }
    free(table->buckets);
}

static void grow(struct table *table)
{
    struct cds_hlist_head *const old = table->buckets;
    const size_t old_size = table->mask + 1;
    struct cds_hlist_head *bigger = calloc(old_size * 2, sizeof(*bigger));

    if (!bigger)
        return;
    table->buckets = bigger;
    table->mask = old_size * 2 - 1;
    for (size_t i = 0; i < old_size; i++) {
        struct cds_hlist_node *link = old[i].next, *next;

        for (; link; link = next) {
            next = link->next;
            cds_hlist_add_head(link, table_bucket(table, table->hash_of(table->seed, link)));
        }
    }
    free(old);
}

void table_add(struct table *table, struct cds_hlist_node *link, uint64_t hash)
{
    if (table->count > table->mask)
        grow(table);
    cds_hlist_add_head(link, table_bucket(table, hash));
    table->count++;
}
