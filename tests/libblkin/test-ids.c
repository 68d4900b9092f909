/*
 * Ids: 64 random bits, never 0, different in every thread and after fork; rand() is left alone.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include <zipkin_c.h>

#include "check.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define IDS     100000
#define THREADS 4
#define FORKS   8

static int64_t ids[IDS * THREADS];

static int64_t new_id(void)
{
    struct blkin_trace_info info;

    blkin_init_trace_info(&info);
    return info.trace_id;
}

static void *make_ids(void *at)
{
    int64_t *into = at;

    for (int i = 0; i < IDS; i++)
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

static void test_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t ones = 0, zeros = 0;

    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_create(&threads[i], NULL, make_ids, ids + (size_t)i * IDS) == 0);
    for (int i = 0; i < THREADS; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(duplicates(ids, (size_t)IDS * THREADS) == 0);
    for (size_t i = 0; i < (size_t)IDS * THREADS; i++) {
        CHECK(ids[i] != 0);
        ones |= (uint64_t)ids[i];
        zeros |= ~(uint64_t)ids[i];
    }
    CHECK(ones == UINT64_MAX);
    CHECK(zeros == UINT64_MAX);
}

/* A parent that has ids already, its children, and a grandchild of each. */
static void test_forks(void)
{
    int64_t seen[FORKS * 2 + 1];
    int fds[2];

    CHECK(pipe(fds) == 0);
    for (int i = 0; i < FORKS; i++) {
        const pid_t child = fork();

        if (child == 0) {
            int64_t id = new_id();

            if (write(fds[1], &id, sizeof(id)) != sizeof(id))
                _exit(1);
            if (fork() == 0) {
                id = new_id();
                _exit(write(fds[1], &id, sizeof(id)) != sizeof(id));
            }
            wait(NULL);
            _exit(0);
        }
        CHECK(waitpid(child, NULL, 0) == child);
    }
    for (int i = 0; i < FORKS * 2; i++)
        CHECK(read(fds[0], &seen[i], sizeof(seen[i])) == sizeof(seen[i]));
    seen[FORKS * 2] = new_id();
    CHECK(duplicates(seen, FORKS * 2 + 1) == 0);
}

static void test_rand_is_left_alone(void)
{
    int expected;

    srand(42);
    expected = rand();
    srand(42);
    blkin_init();
    (void)new_id();
    CHECK(rand() == expected);
}

int main(void)
{
    test_rand_is_left_alone();
    test_threads();
    test_forks();
    return check_status();
}
