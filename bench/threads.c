/*
 * Measures how two threads on two CPUs slow each other down.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "threads.h"

#include "batch.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#define THREAD_BATCHES 2000

struct bench_worker {
    pthread_t thread;
    int cpu;
    void (*run)(unsigned calls);
    pthread_barrier_t *start;
    uint64_t begin[THREAD_BATCHES + 1]; /* of a batch; the last one is the end of the run */
};

static void *work(void *argument)
{
    struct bench_worker *worker = argument;

    pin(worker->cpu);
    worker->run(20000);
    pthread_barrier_wait(worker->start);
    for (unsigned i = 0; i < THREAD_BATCHES; i++) {
        worker->begin[i] = now_ns();
        worker->run(500);
    }
    worker->begin[THREAD_BATCHES] = now_ns();
    return NULL;
}

static void run_workers(struct bench_worker *workers, unsigned count)
{
    pthread_barrier_t start;

    pthread_barrier_init(&start, NULL, count);
    for (unsigned i = 0; i < count; i++) {
        workers[i].start = &start;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            abort();
    }
    for (unsigned i = 0; i < count; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&start);
}

static uint64_t took(const struct bench_worker *worker, unsigned i)
{
    return worker->begin[i + 1] - worker->begin[i];
}

static uint64_t least_of(const struct bench_worker *worker)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < THREAD_BATCHES; i++)
        if (took(worker, i) < least)
            least = took(worker, i);
    return least;
}

/* Returns true if the other thread worked during all of batch i: it neither paused nor waited for
 * its CPU. */
static bool is_disturbed(const struct bench_worker *one, unsigned i,
                         const struct bench_worker *other)
{
    const uint64_t limit = least_of(other) * 3 / 2;
    uint64_t covered_to = one->begin[i];

    for (unsigned j = 0; j < THREAD_BATCHES; j++)
        if (other->begin[j] <= covered_to && other->begin[j + 1] > covered_to &&
            took(other, j) <= limit)
            covered_to = other->begin[j + 1];
    return covered_to >= one->begin[i + 1];
}

static uint64_t least_disturbed(const struct bench_worker *one, const struct bench_worker *other)
{
    uint64_t least = UINT64_MAX;

    for (unsigned i = 0; i < THREAD_BATCHES; i++)
        if (took(one, i) < least && is_disturbed(one, i, other))
            least = took(one, i);
    return least;
}

static double rate_alone(struct bench_worker *workers)
{
    double rate = 0;

    for (unsigned i = 0; i < 2; i++) {
        run_workers(&workers[i], 1);
        rate += 1e9 / (double)least_of(&workers[i]);
    }
    return rate;
}

/* Returns 0 if there was no batch during which both threads worked. */
static double rate_together(struct bench_worker *workers)
{
    uint64_t least[2];

    run_workers(workers, 2);
    for (unsigned i = 0; i < 2; i++)
        least[i] = least_disturbed(&workers[i], &workers[1 - i]);
    if (least[0] == UINT64_MAX || least[1] == UINT64_MAX)
        return 0;
    return 1e9 / (double)least[0] + 1e9 / (double)least[1];
}

void measure_threads(void (*run)(unsigned calls))
{
    static struct bench_worker workers[2] = {{.cpu = 0}, {.cpu = 1}};

    workers[0].run = workers[1].run = run;

    for (unsigned turn = 0; turn < usual_batches.turns; turn++) {
        for (unsigned pass = 0; pass < 2; pass++) {
            const bool together_first = random() % 2;
            double alone = together_first ? 0 : rate_alone(workers);
            const double together = rate_together(workers);

            if (together_first)
                alone = rate_alone(workers);
            printf("run %u %u alone %.0f\n", turn, pass, alone);
            if (together > 0)
                printf("run %u %u together %.0f\n", turn, pass, together);
        }
    }
}
