/*
 * Objects of one kind, shared by all threads without a lock. A pool never unmaps memory: a pointer
 * to an object stays readable, and the generation shows whether the object is still the same.
 * Async-signal-safe.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef BLKIN_PRELOAD_POOL_H
#define BLKIN_PRELOAD_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The first member of an object. */
struct pool_item {
    uint64_t word; /* generation << 32 | references; 0 references: free */
    uint32_t next; /* the next free object's index + 1; 0: none */
    uint32_t index;
};

#define POOL_CHUNKS 20 /* chunk i has room for 2^i objects */
#define POOL_MOST   ((UINT32_C(1) << POOL_CHUNKS) - 1)

struct pool {
    size_t size;   /* of an object, a multiple of 16 */
    uint64_t free; /* number of changes << 32 | index + 1 of the first free object */
    uint32_t used; /* number of objects that were ever taken */
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

/* Maps 8 MiB or more at once. Pages become resident at their first use. */
void pool_reserve(struct pool *pool);

/* From now on, no pool maps memory, because that needs a system call. */
void pool_freeze(void);

/* Returns an object that only the caller has, or NULL. The object still has its old content. Other
 * threads find the object after pool_publish(). */
void *pool_take(struct pool *pool);

/* From now on, other threads find the object, which has one reference. */
static inline void pool_publish(struct pool_item *item)
{
    const uint64_t word = __atomic_load_n(&item->word, __ATOMIC_RELAXED);

    __atomic_store_n(&item->word, word + 1, __ATOMIC_RELEASE);
}

/* Adds a reference; the caller has one. */
static inline void pool_ref(struct pool_item *item)
{
    (void)__atomic_fetch_add(&item->word, 1, __ATOMIC_RELAXED);
}

/* Adds a reference. Returns false if the object was given back. */
bool pool_try_ref(struct pool_item *item, uint32_t generation);

/* Returns the object with a reference; NULL: it was given back. */
void *pool_find(struct pool *pool, pool_name name);

/* Drops a reference. Returns true for the last one: the caller then calls pool_give(). */
static inline bool pool_release(struct pool_item *item)
{
    return (uint32_t)__atomic_sub_fetch(&item->word, 1, __ATOMIC_ACQ_REL) == 0;
}

/* Gives back an object without references, or one that was never published. */
void pool_give(struct pool *pool, void *object);

/* Returns the object with this index, in use or not; NULL: never taken. */
void *pool_at(struct pool *pool, uint32_t index);

/* Calls a function for each object in use, with a reference. */
void pool_for_each(struct pool *pool, void (*look)(void *object));

/* Called in a child of fork(2). Makes all objects free. */
void pool_forget(struct pool *pool);

#endif
