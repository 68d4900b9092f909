/*
 * A hash table of structs that contain its link. The table allocates only its buckets.
 *
 * Adding cannot fail: without memory for more buckets, the chains get longer. A link has the hash;
 * the caller of the table compares keys:
 *
 *     table_find(thing, &table, hash_of(table.seed, key), in_table, thing->key == key);
 *
 * A hash starts with the table's seed, so that no attacker can fill a single bucket.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_BASE_TABLE_H
#define BLKIN_BASE_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <urcu/compiler.h>

struct table_link {
    struct table_link *next; /* in the same bucket */
    struct table_link **at;  /* the pointer to this link: in the bucket, or in the link before */
    uint64_t hash;
};

struct table {
    struct table_link **buckets;
    size_t mask; /* the number of buckets, a power of two, minus 1 */
    size_t count;
    uint64_t seed;
};

/* Returns false when out of memory. */
bool table_init(struct table *table);

/* Frees the table, and calls free_linked for each link that is left. free_linked may be NULL. */
void table_destroy(struct table *table, void (*free_linked)(struct table_link *link));

/* Doubles the buckets, if there is memory. */
void table_grow(struct table *table);

/* Adds a link before all links with the same hash. */
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

/* Removes a link in constant time. */
static inline void table_remove(struct table *table, struct table_link *link)
{
    *link->at = link->next;
    if (link->next)
        link->next->at = link->at;
    table->count--;
}

/* Returns the first link from this one on that has the hash; NULL if there is none. */
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

/* Visits all things with the hash. `member` is the link of a thing. The body must remove none. */
#define table_for_each_of(thing, table, of_hash, member)                             \
    for (struct table_link *of_ = table_first_of(table, of_hash);                    \
         of_ && (thing = caa_container_of(of_, __typeof__(*(thing)), member), true); \
         of_ = table_from(of_->next, of_->hash))

/* Sets thing to the first thing that has the hash and fits, or to NULL. */
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

/* Visit all links in any order. NULL: no further link. */
struct table_link *table_first(const struct table *table);
struct table_link *table_next(const struct table *table, const struct table_link *link);

/* Visits all things. The body may remove the current thing. */
#define table_for_each(thing, table, member)                                            \
    for (struct table_link *link_ = table_first(table), *next_;                         \
         link_ && (next_ = table_next(table, link_),                                    \
                  thing = caa_container_of(link_, __typeof__(*(thing)), member), true); \
         link_ = next_)

#endif
