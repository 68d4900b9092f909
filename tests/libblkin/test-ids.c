/*
 * Ids: 64 random bits, never 0, different in every thread; rand() is left alone. Ids of
 * steps are ids that the same generator would give later.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include "check.h"
#include "tracepoints/format/step_id.h"

#include <pthread.h>
#include <stdlib.h>

#define IDS_MADE    100000
#define IDS_THREADS 4
#define IDS_STEPS   1000

static int64_t ids[IDS_MADE * IDS_THREADS];

static int64_t new_id(void)
{
    struct blkin_trace_info info;

    blkin_init_trace_info(&info);
    return info.trace_id;
}

static void *make_ids(void *at)
{
    int64_t *into = at;

    for (int i = 0; i < IDS_MADE; i++)
        into[i] = new_id();
    return NULL;
}

static int compare(const void *a, const void *b)
{
    const int64_t x = *(const int64_t *)a;
    const int64_t y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

static int duplicates(int64_t *of, size_t count)
{
    int found = 0;

    qsort(of, count, sizeof(*of), compare);
    for (size_t i = 1; i < count; i++)
        found += of[i] == of[i - 1];
    return found;
}

TEST(test_rand_is_left_alone)
{
    int expected;

    srand(42);
    expected = rand();
    srand(42);
    blkin_init();
    (void)new_id();
    CHECK(rand() == expected);
}

TEST(test_threads)
{
    pthread_t threads[IDS_THREADS];
    uint64_t ones = 0, zeros = 0;

    for (int i = 0; i < IDS_THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, make_ids, ids + (size_t)i * IDS_MADE) == 0);
    for (int i = 0; i < IDS_THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(duplicates(ids, (size_t)IDS_MADE * IDS_THREADS) == 0);
    for (size_t i = 0; i < (size_t)IDS_MADE * IDS_THREADS; i++) {
        CHECK(ids[i] != 0);
        ones |= (uint64_t)ids[i];
        zeros |= ~(uint64_t)ids[i];
    }
    CHECK(ones == UINT64_MAX);
    CHECK(zeros == UINT64_MAX);
}

/* ---- steps ---- */

TEST(test_counter_of_id)
{
    static const uint64_t edges[] = {0,
                                     1,
                                     UINT64_MAX,
                                     UINT64_C(1) << 63,
                                     UINT64_C(1) << 29,
                                     UINT64_C(0xffffffff),
                                     UINT64_C(0xffffffff00000000)};
    uint64_t value = (uint64_t)new_id();
    int wrong = 0;

    for (size_t i = 0; i < sizeof(edges) / sizeof(edges[0]); i++) {
        CHECK(blkin_counter_of_id(blkin_id_of_counter(edges[i])) == edges[i]);
        CHECK(blkin_id_of_counter(blkin_counter_of_id(edges[i])) == edges[i]);
    }
    for (int i = 0; i < IDS_MADE; i++) {
        value = blkin_id_of_counter(value + 1);
        wrong += blkin_counter_of_id(blkin_id_of_counter(value)) != value;
        wrong += blkin_id_of_counter(blkin_counter_of_id(value)) != value;
    }
    CHECK(wrong == 0);
}

/* Returns the id that the generator would make 2^doublings ids after this one. */
static uint64_t id_later(uint64_t id, unsigned doublings)
{
    uint64_t way = (uint64_t)new_id();

    way = blkin_counter_of_id((uint64_t)new_id()) - blkin_counter_of_id(way);
    while (doublings-- > 0)
        way += way;
    return blkin_id_of_counter(blkin_counter_of_id(id) + way);
}

TEST(test_step_ids)
{
    const uint64_t id = (uint64_t)new_id();
    uint64_t later = id;

    CHECK(blkin_step_id(id, 0) == id);
    for (uint64_t number = 1; number < 1000; number++) {
        later = id_later(later, 44);
        CHECK(blkin_step_id(id, number) == later);
    }
    for (unsigned doubling = 0; doubling < 20; doubling++)
        CHECK(blkin_step_id(id, UINT64_C(1) << doubling) == id_later(id, 44 + doubling));
    /* counted from another step, forward and back */
    CHECK(blkin_step_id(blkin_step_id(id, 7), 5) == blkin_step_id(id, 12));
    CHECK(blkin_step_id(blkin_step_id(id, 12), (uint64_t)-5) == blkin_step_id(id, 7));
    CHECK(blkin_step_id(blkin_step_id(id, BLKIN_STEPS_MAX), (uint64_t)-BLKIN_STEPS_MAX) == id);
    /* the id that would be 0 */
    CHECK(blkin_step_id(blkin_id_of_counter(-(BLKIN_ID_INCREMENT << 44)), 1) == 1);
}

/* A million ids of successive spans and their steps, and a million of one span's steps. */
TEST(test_steps_are_different)
{
    const size_t count = (size_t)IDS_STEPS * IDS_STEPS;
    int64_t *of = malloc(count * sizeof(*of));

    if (!of)
        abort();
    for (size_t i = 0; i < count; i += IDS_STEPS) {
        of[i] = new_id();
        for (size_t number = 1; number < IDS_STEPS; number++)
            of[i + number] = (int64_t)blkin_step_id((uint64_t)of[i], number);
    }
    CHECK(duplicates(of, count) == 0);
    of[0] = new_id();
    for (size_t number = 1; number < count; number++)
        of[number] = (int64_t)blkin_step_id((uint64_t)of[0], number + BLKIN_STEPS_MAX - count);
    CHECK(duplicates(of, count) == 0);
    free(of);
}

CHECK_MAIN
