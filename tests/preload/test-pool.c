/*
 * The preload's pool: references to an object, old names, a full pool, and several threads at once.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "libblkin/preload/pool.h"

#include <pthread.h>
#include <sched.h>

#define POOL_THREADS 4
#define POOL_ROUNDS  20000
#define HANDFUL      40
#define SHARED       8

struct object {
    struct pool_item item;
    uint64_t owner; /* the thread that has taken it; 0: none */
    uint64_t value;
    uint64_t check; /* ~value */
};

static struct pool pool = {.size = sizeof(struct object)};

/* Takes an object that all threads find. */
static struct object *take(void)
{
    struct object *object = pool_take(&pool);

    pool_publish(&object->item);
    return object;
}

static bool release(struct object *object)
{
    if (!pool_release(&object->item))
        return false;
    pool_give(&pool, object);
    return true;
}

TEST(test_references)
{
    struct object *object = take();
    const pool_name name = pool_name_of(&object->item);

    CHECK(name != 0 && pool_find(&pool, 0) == NULL);
    CHECK(pool_find(&pool, name) == object);
    pool_ref(&object->item);
    CHECK(!release(object) && !release(object) && release(object));
    CHECK(pool_find(&pool, name) == NULL);
    CHECK(!pool_try_ref(&object->item, pool_generation(&object->item)));
}

/* Memory is used again, and the same memory is not the same object. */
TEST(test_generations)
{
    struct object *first = take(), *second;
    const pool_name name = pool_name_of(&first->item);

    first->value = 77;
    release(first);
    second = take();
    CHECK(second == first && second->value == 77);
    CHECK(pool_name_of(&second->item) != name && pool_find(&pool, name) == NULL);
    release(second);
}

static unsigned looked_at;

static void count_object(void *object)
{
    (void)object;
    looked_at++;
}

/* Other threads find an object only after the thread that has taken it has published it. */
TEST(test_publishing)
{
    struct object *before = take(), *object;
    const pool_name name = pool_name_of(&before->item);

    release(before);
    object = pool_take(&pool);
    CHECK(object == before && pool_name_of(&object->item) != name);
    CHECK(!pool_find(&pool, name) && !pool_find(&pool, pool_name_of(&object->item)));
    pool_for_each(&pool, count_object);
    CHECK(looked_at == 0);
    pool_publish(&object->item);
    pool_for_each(&pool, count_object);
    CHECK(looked_at == 1 && pool_find(&pool, pool_name_of(&object->item)) == object);
    CHECK(!release(object) && release(object));
    object = pool_take(&pool);
    pool_give(&pool, object); /* without pool_publish() */
    CHECK(pool_take(&pool) == object);
    pool_give(&pool, object);
}

/* Names that no object has: with other indexes and other generations. */
TEST(test_names)
{
    struct object *object = take();
    const pool_name name = pool_name_of(&object->item);

    CHECK(pool_find(&pool, name + 1) == NULL);
    CHECK(pool_find(&pool, name | UINT32_MAX) == NULL);
    CHECK(pool_find(&pool, name + (UINT64_C(1) << 32)) == NULL);
    CHECK(pool_find(&pool, UINT64_MAX) == NULL);
    CHECK(pool_at(&pool, object->item.index) == object);
    CHECK(pool_at(&pool, object->item.index + 1) == NULL && pool_at(&pool, UINT32_MAX) == NULL);
    release(object);
}

/* In a child of fork(2) all objects are free, and no former name finds a new object. */
TEST(test_forget)
{
    struct object *before = take(), *given = take(), *after[3];
    const pool_name name = pool_name_of(&before->item);

    release(given);
    pool_ref(&before->item); /* as by a thread of the parent that the child does not have */
    pool_forget(&pool);
    CHECK(pool_find(&pool, name) == NULL && pool_at(&pool, 0) == NULL);
    for (int i = 0; i < 3; i++) {
        after[i] = take();
        CHECK(after[i]->item.index == (uint32_t)i && pool_find(&pool, name) == NULL);
    }
    CHECK(after[0] == before);
    for (int i = 0; i < 3; i++)
        CHECK(release(after[i])); /* the taker has the only reference */
}

/* Takes all objects of a pool. Then the pool gives out only returned objects. */
TEST(test_full)
{
    static struct pool full = {.size = sizeof(struct pool_item)};
    struct pool_item *item = NULL;
    uint32_t wrong = 0;

    for (uint32_t i = 0; i < POOL_MOST; i++) {
        item = pool_take(&full);
        if (!item || item->index != i || (uintptr_t)item % 16)
            wrong++;
    }
    pool_publish(item);
    CHECK(wrong == 0 && pool_take(&full) == NULL);
    CHECK(pool_release(item));
    pool_give(&full, item);
    CHECK(pool_take(&full) == item && pool_take(&full) == NULL);
}

/* ---- several threads ---- */

static pthread_barrier_t all_are_here;
static pool_name shared[SHARED]; /* names of objects of all threads; some objects are released */

/* Returns 1 if an object of another thread changes while this thread has a reference. */
static uint64_t look_at_shared(unsigned at)
{
    struct object *found =
        pool_find(&pool, __atomic_load_n(&shared[at % SHARED], __ATOMIC_ACQUIRE));
    uint64_t owner, value;
    bool is_same;

    if (!found)
        return 0;
    owner = __atomic_load_n(&found->owner, __ATOMIC_RELAXED);
    value = found->value;
    sched_yield();
    is_same = __atomic_load_n(&found->owner, __ATOMIC_RELAXED) == owner && found->value == value;
    release(found);
    return !is_same;
}

static uint64_t half_filled;

/* Counts objects that are published, but not filled in. */
static void check_filled(void *found)
{
    const struct object *object = found;

    if (object->check != ~object->value)
        (void)__atomic_add_fetch(&half_filled, 1, __ATOMIC_RELAXED);
}

/* Takes some objects, checks that no other thread has them, and returns them in another order. */
static void *take_and_give(void *argument)
{
    const uint64_t own = (uintptr_t)argument;
    struct object *taken[HANDFUL];
    uint64_t wrong = 0;

    pthread_barrier_wait(&all_are_here);
    for (unsigned round = 0; round < POOL_ROUNDS / HANDFUL; round++) {
        for (unsigned i = 0; i < HANDFUL; i++) {
            taken[i] = pool_take(&pool);
            __atomic_store_n(&taken[i]->owner, own, __ATOMIC_RELAXED);
            taken[i]->value = own << 32 | i;
            taken[i]->check = ~taken[i]->value;
            pool_publish(&taken[i]->item);
        }
        pool_for_each(&pool, check_filled);
        __atomic_store_n(&shared[round % SHARED], pool_name_of(&taken[round % HANDFUL]->item),
                         __ATOMIC_RELEASE);
        wrong += look_at_shared(round * 7 + 3);
        for (unsigned i = 0; i < HANDFUL; i++) {
            struct object *object = taken[i * 7 % HANDFUL];

            wrong += __atomic_load_n(&object->owner, __ATOMIC_RELAXED) != own ||
                     object->value != (own << 32 | i * 7 % HANDFUL);
            release(object);
        }
    }
    return (void *)(uintptr_t)wrong;
}

TEST(test_threads)
{
    pthread_t threads[POOL_THREADS];
    uint32_t used = 0;

    pthread_barrier_init(&all_are_here, NULL, POOL_THREADS);
    for (uintptr_t i = 0; i < POOL_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, take_and_give, (void *)(i + 1)) == 0);
    for (int i = 0; i < POOL_THREADS; i++) {
        void *wrong = NULL;

        CHECK(pthread_join(threads[i], &wrong) == 0 && wrong == NULL);
    }
    pthread_barrier_destroy(&all_are_here);
    CHECK(half_filled == 0);
    /* no object is lost: all are free again, each once */
    while (pool_at(&pool, used))
        used++;
    CHECK(used >= HANDFUL && used <= POOL_THREADS * (HANDFUL + 1));
    for (uint32_t i = 0; i < used; i++) {
        struct object *object = pool_take(&pool);

        CHECK(object && object->item.index < used && object->value != UINT64_MAX);
        object->value = UINT64_MAX;
    }
    CHECK(((struct object *)pool_take(&pool))->item.index == used);
}

CHECK_MAIN
