/*
 * A hash table of structs that carry its link: it allocates nothing but its buckets.
 *
 * Adding cannot fail: where there is no memory for more buckets, the chains get longer. What is in
 * it is searched by its user, who knows what to compare:
 *
 *     cds_hlist_for_each_entry_2(thing, table_bucket(&table, hash_of(table.seed, key)), in_table)
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_TABLE_H
#define BLKIN_CORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/hlist.h>

/*
 * The hash of what a link is in; asked for when the table grows. The table's seed must go into it
 * before anything that comes from a trace does: nobody who writes one is to fill a single bucket.
 */
typedef uint64_t table_hash_fn(uint64_t seed, const struct cds_hlist_node *link);

struct table {
    struct cds_hlist_head *buckets;
    size_t mask; /* the number of buckets, a power of two, less 1 */
    size_t count;
    uint64_t seed;
    table_hash_fn *hash_of;
};

/* Returns false when out of memory. */
bool table_init(struct table *table, table_hash_fn *hash_of);

/* Frees the table, and with free_linked, which may be NULL, what is still in it. */
void table_destroy(struct table *table, void (*free_linked)(struct cds_hlist_node *link));

static inline struct cds_hlist_head *table_bucket(const struct table *table, uint64_t hash)
{
    return &table->buckets[hash & table->mask];
}

/* hash is what hash_of() tells of the link. */
void table_add(struct table *table, struct cds_hlist_node *link, uint64_t hash);

/* All that is in it, in no order: the first one, and the one after another. NULL: there is none. */
struct cds_hlist_node *table_first(const struct table *table);
struct cds_hlist_node *table_next(const struct table *table, const struct cds_hlist_node *link);

/* For all things in it, each of which may be removed. `member` is the link of a thing. */
#define table_for_each(thing, table, member)                                           \
    for (struct cds_hlist_node *link_ = table_first(table), *next_;                    \
         link_ && (next_ = table_next(table, link_),                                   \
                  thing = cds_hlist_entry(link_, __typeof__(*(thing)), member), true); \
         link_ = next_)

static inline void table_remove(struct table *table, struct cds_hlist_node *link)
{
    cds_hlist_del(link);
    table->count--;
}

#endif
