/* SPDX-License-Identifier: BSD-2-Clause */
#include "pool.h"

#include <sys/mman.h>

#define ONE_GENERATION (UINT64_C(1) << 32)

/* Returns the number of the chunk that has this object. */
static unsigned pool_chunk(uint32_t index)
{
    return 31 - (unsigned)__builtin_clz(index + 1);
}

static char *pool_chunk_of(struct pool *pool, uint32_t index)
{
    return __atomic_load_n(&pool->chunks[pool_chunk(index)], __ATOMIC_ACQUIRE);
}

static struct pool_item *pool_in_chunk(const struct pool *pool, char *chunk, uint32_t index)
{
    const size_t at = index + 1 - (UINT32_C(1) << pool_chunk(index));

    return (struct pool_item *)(void *)(chunk + at * pool->size);
}

void *pool_at(struct pool *pool, uint32_t index)
{
    char *chunk;

    if (index >= __atomic_load_n(&pool->used, __ATOMIC_ACQUIRE) ||
        !(chunk = pool_chunk_of(pool, index)))
        return NULL;
    return pool_in_chunk(pool, chunk, index);
}

#define POOL_RESERVED_BYTES (8 << 20)

static bool pool_is_frozen; /* for all pools */

void pool_freeze(void)
{
    __atomic_store_n(&pool_is_frozen, true, __ATOMIC_RELEASE);
}

void pool_reserve(struct pool *pool)
{
    unsigned chunks = 0;
    size_t bytes = 0;
    char *room;

    while (bytes < POOL_RESERVED_BYTES && chunks < POOL_CHUNKS)
        bytes += pool->size << chunks++;
    room = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                -1, 0);
    for (unsigned i = 0; room != MAP_FAILED && i < chunks; room += pool->size << i++) {
        char *there = NULL;

        (void)__atomic_compare_exchange_n(&pool->chunks[i], &there, room, false, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED);
    }
}

#define POOL_LINE 64 /* two chunks share no cache line */

/*
 * The first chunks of all pools. A child of fork(2) that has one connection needs no others: it
 * maps nothing, and writes to few pages.
 */
static struct {
    char room[64 << 10]; /* used from its end on, which is beside other variables */
    size_t used;
} pool_first __attribute__((aligned(POOL_LINE)));

static char *pool_take_first(size_t bytes)
{
    const size_t size = (bytes + POOL_LINE - 1) / POOL_LINE * POOL_LINE;
    size_t used = __atomic_load_n(&pool_first.used, __ATOMIC_RELAXED);

    do {
        if (size > sizeof(pool_first.room) - used)
            return NULL;
    } while (!__atomic_compare_exchange_n(&pool_first.used, &used, used + size, true,
                                          __ATOMIC_RELAXED, __ATOMIC_RELAXED));
    return pool_first.room + sizeof(pool_first.room) - used - size;
}

/* If two threads make the same chunk at the same time, both use the chunk of one of them. */
static char *pool_make_chunk(struct pool *pool, uint32_t index)
{
    char **slot = &pool->chunks[pool_chunk(index)];
    const size_t bytes = pool->size << pool_chunk(index);
    char *there = NULL, *first, *chunk;

    if (__atomic_load_n(&pool_is_frozen, __ATOMIC_ACQUIRE))
        return NULL;
    first = chunk = pool_take_first(bytes);
    if (!chunk)
        chunk = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return NULL;
    if (__atomic_compare_exchange_n(slot, &there, chunk, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
        return chunk;
    if (!first)
        (void)munmap(chunk, bytes);
    return there;
}

/* Begins the next generation of an object without references. */
static struct pool_item *pool_begin_use(struct pool_item *item)
{
    const uint64_t before = __atomic_load_n(&item->word, __ATOMIC_RELAXED);

    __atomic_store_n(&item->word, ((before >> 32) + 1) * ONE_GENERATION, __ATOMIC_RELAXED);
    return item;
}

static struct pool_item *pool_take_new(struct pool *pool)
{
    uint32_t index = __atomic_load_n(&pool->used, __ATOMIC_RELAXED);
    struct pool_item *item;
    char *chunk;

    do {
        if (index >= POOL_MOST ||
            !((chunk = pool_chunk_of(pool, index)) || (chunk = pool_make_chunk(pool, index))))
            return NULL;
    } while (!__atomic_compare_exchange_n(&pool->used, &index, index + 1, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_RELAXED));
    item = pool_in_chunk(pool, chunk, index);
    item->index = index;
    return pool_begin_use(item);
}

void *pool_take(struct pool *pool)
{
    uint64_t first = __atomic_load_n(&pool->free, __ATOMIC_ACQUIRE);
    struct pool_item *item;
    uint64_t rest;

    do {
        const uint32_t index = (uint32_t)first;

        if (index == 0)
            return pool_take_new(pool);
        item = pool_in_chunk(pool, pool_chunk_of(pool, index - 1), index - 1);
        /* if another thread has taken the object meanwhile, item->next is wrong, and the exchange
         * below fails */
        rest = ((first >> 32) + 1) << 32 | __atomic_load_n(&item->next, __ATOMIC_RELAXED);
    } while (!__atomic_compare_exchange_n(&pool->free, &first, rest, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return pool_begin_use(item);
}

void pool_give(struct pool *pool, void *object)
{
    struct pool_item *item = object;
    uint64_t first = __atomic_load_n(&pool->free, __ATOMIC_RELAXED);

    do
        __atomic_store_n(&item->next, (uint32_t)first, __ATOMIC_RELAXED);
    while (!__atomic_compare_exchange_n(&pool->free, &first,
                                        ((first >> 32) + 1) << 32 | (item->index + 1), true,
                                        __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
}

bool pool_try_ref(struct pool_item *item, uint32_t generation)
{
    uint64_t word = __atomic_load_n(&item->word, __ATOMIC_ACQUIRE);

    do {
        if ((uint32_t)(word >> 32) != generation || (uint32_t)word == 0)
            return false;
    } while (!__atomic_compare_exchange_n(&item->word, &word, word + 1, true, __ATOMIC_ACQ_REL,
                                          __ATOMIC_ACQUIRE));
    return true;
}

void *pool_find(struct pool *pool, pool_name name)
{
    struct pool_item *item = (uint32_t)name ? pool_at(pool, (uint32_t)name - 1) : NULL;

    return item && pool_try_ref(item, (uint32_t)(name >> 32)) ? item : NULL;
}

void pool_for_each(struct pool *pool, void (*look)(void *object))
{
    struct pool_item *item;

    for (uint32_t index = 0; (item = pool_at(pool, index)); index++) {
        if (!pool_try_ref(item, pool_generation(item)))
            continue;
        look(item);
        if (pool_release(item))
            pool_give(pool, item);
    }
}

/* Does not reset the generations, so old names stay invalid. */
void pool_forget(struct pool *pool)
{
    pool->free = 0;
    pool->used = 0;
}
