/*
 * Objects of one kind, shared by all threads without a lock, in memory that is never given back:
 * a pointer to one is readable for ever, and its generation tells whether it is still the same.
 * Async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_POOL_H
#define BLKIN_PRELOAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What an object begins with. */
struct pool_item {
    uint64_t word; /* generation << 32 | references; one without references is free */
    uint32_t next; /* in the free list: index + 1 */
    uint32_t index;
};

#define POOL_CHUNK  128 /* objects that are mapped at once */
#define POOL_CHUNKS 8192

struct pool {
    size_t size;   /* of an object, a multiple of 16 */
    uint64_t free; /* changes << 32 | index + 1 of the first */
    uint32_t used; /* objects that were ever taken */
    char *chunks[POOL_CHUNKS];
};

/* Names an object and its generation; 0 names none. */
typedef uint64_t pool_name;

static inline uint32_t pool_generation(const struct pool_item *item)
{
    return (uint32_t)(__atomic_load_n(&item->word, __ATOMIC_RELAXED) >> 32);
}

static inline pool_name pool_name_of(const struct pool_item *item)
{
    return (pool_name)pool_generation(item) << 32 | (item->index + 1);
}

/* Maps 8 MiB of room at once: a page of it is there once an object is. */
void pool_reserve(struct pool *pool);

/* No pool gets room any more, as that is a system call. */
void pool_fix(void);

/*
 * One that only the caller has, or NULL. All else in it is as it was left: no other thread finds
 * the object before the caller has filled it in and publishes it.
 */
void *pool_take(struct pool *pool);

/* From now on other threads find the object. It has one reference. */
static inline void pool_publish(struct pool_item *item)
{
    const uint64_t word = __atomic_load_n(&item->word, __ATOMIC_RELAXED);

    __atomic_store_n(&item->word, word + 1, __ATOMIC_RELEASE);
}

/* One more reference, by who has one. */
static inline void pool_hold(struct pool_item *item)
{
    (void)__atomic_fetch_add(&item->word, 1, __ATOMIC_RELAXED);
}

/* A reference to what may have been given back: false if it has. */
bool pool_try(struct pool_item *item, uint32_t generation);

/* The same by name: NULL if it has. */
void *pool_find(struct pool *pool, pool_name name);

/* True if that was the last reference: then nobody else can get at it, and pool_give() is due. */
static inline bool pool_let_go(struct pool_item *item)
{
    return (uint32_t)__atomic_sub_fetch(&item->word, 1, __ATOMIC_ACQ_REL) == 0;
}

/* One without references: nobody has published it, or pool_let_go() was true. */
void pool_give(struct pool *pool, void *object);

/* The object of this index, used or not; NULL: none was ever taken. */
void *pool_at(struct pool *pool, uint32_t index);

/* Calls a function for each object that somebody has: with a reference meanwhile. */
void pool_for_each(struct pool *pool, void (*look)(void *object));

/* In a child of fork(2): all objects are free. */
void pool_forget(struct pool *pool);

#endif
