/*
 * A hash table of structs that carry its link: it allocates nothing but its buckets.
 *
 * Adding cannot fail: where there is no memory for more buckets, the chains get longer. A link
 * keeps its hash; what else to compare, the table's user knows:
 *
 *     table_find(thing, &table, hash_of(table.seed, key), in_table, thing->key == key);
 *
 * The table's seed must go into a hash before anything that comes from a trace does: nobody who
 * writes one is to fill a single bucket.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_CORE_TABLE_H
#define BLKIN_CORE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/compiler.h>

struct table_link {
    struct table_link *next; /* of the same bucket */
    struct table_link **at;  /* where the bucket, or the link before, points to this one */
    uint64_t hash;
};

struct table {
    struct table_link **buckets;
    size_t mask; /* the number of buckets, a power of two, less 1 */
    size_t count;
    uint64_t seed;
};

/* Returns false when out of memory. */
bool table_init(struct table *table);

/* Frees the table, and with free_linked, which may be NULL, what is still in it. */
void table_destroy(struct table *table, void (*free_linked)(struct table_link *link));

/* Twice as many buckets, if there is memory. */
void table_grow(struct table *table);

/* Before all that have the same hash. */
static inline void table_add(struct table *table, struct table_link *link, uint64_t hash)
{
    struct table_link **bucket;

    if (table->count > table->mask)
        table_grow(table);
    table->count++;
    bucket = &table->buckets[hash & table->mask];
    link->hash = hash;
    link->next = *bucket;
    link->at = bucket;
    if (link->next)
        link->next->at = &link->next;
    *bucket = link;
}

/* In constant time, however many have its hash. */
static inline void table_remove(struct table *table, struct table_link *link)
{
    *link->at = link->next;
    if (link->next)
        link->next->at = link->at;
    table->count--;
}

/* Puts a link in the place of one with the same hash. */
static inline void table_replace(struct table_link *link, const struct table_link *old)
{
    *link = *old;
    *link->at = link;
    if (link->next)
        link->next->at = &link->next;
}

/* The link itself, or the next one behind it, that has the hash. NULL: there is none. */
static inline struct table_link *table_from(struct table_link *link, uint64_t hash)
{
    while (link && link->hash != hash)
        link = link->next;
    return link;
}

static inline struct table_link *table_first_of(const struct table *table, uint64_t hash)
{
    return table_from(table->buckets[hash & table->mask], hash);
}

/* For all things that have the hash, of which `member` is the link. None may be removed. */
#define table_for_each_of(thing, table, of_hash, member)                             \
    for (struct table_link *of_ = table_first_of(table, of_hash);                    \
         of_ && (thing = caa_container_of(of_, __typeof__(*(thing)), member), true); \
         of_ = table_from(of_->next, of_->hash))

/* Sets thing to the first one that has the hash and fits; NULL: there is none. */
#define table_find(thing, table, of_hash, member, fits)                      \
    do {                                                                     \
        struct table_link *find_ = table_first_of(table, of_hash);           \
                                                                             \
        for (; find_; find_ = table_from(find_->next, find_->hash)) {        \
            (thing) = caa_container_of(find_, __typeof__(*(thing)), member); \
            if (fits)                                                        \
                break;                                                       \
        }                                                                    \
        if (!find_)                                                          \
            (thing) = NULL;                                                  \
    } while (0)

/* All that is in it, in no order: the first one, and the one after another. NULL: there is none. */
struct table_link *table_first(const struct table *table);
struct table_link *table_next(const struct table *table, const struct table_link *link);

/* For all things in it, each of which may be removed. */
#define table_for_each(thing, table, member)                                            \
    for (struct table_link *link_ = table_first(table), *next_;                         \
         link_ && (next_ = table_next(table, link_),                                    \
                  thing = caa_container_of(link_, __typeof__(*(thing)), member), true); \
         link_ = next_)

#endif
