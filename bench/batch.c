/*
 * Batches, rounds and their statistics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS   10
#define GROUP    20 /* batches of one subject on end */
#define BATCHES  (ROUNDS * 2 * GROUP)
#define SUBJECTS 24

uint64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

void pin(int cpu)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof(set), &set) < 0) {
        perror("bench: cannot stay on one CPU");
        exit(1);
    }
}

static double times[SUBJECTS][BATCHES];

static void run_group(const struct subject *subject, double *into)
{
    subject->run(0);
    for (unsigned i = 0; i < GROUP; i++) {
        const uint64_t start = now_ns();

        subject->run(BATCH);
        into[i] = (double)(now_ns() - start) / BATCH;
    }
}

static double least(const double *of, size_t count)
{
    double result = of[0];

    for (size_t i = 1; i < count; i++)
        if (of[i] < result)
            result = of[i];
    return result;
}

static int compare(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static void report(const char *name, double *of, double empty)
{
    const double first = least(of, BATCHES / 2);
    const double second = least(of + BATCHES / 2, BATCHES / 2);
    const double best = first < second ? first : second;

    qsort(of, BATCHES, sizeof(*of), compare);
    printf("%s %.4f %.4f %.4f\n", name, best - empty, of[BATCHES / 10] - empty,
           (first > second ? first - second : second - first) / best);
}

void measure(const struct subject *subjects, size_t count)
{
    double empty = 0;

    if (count > SUBJECTS)
        abort();
    for (size_t i = 0; i < count; i++)
        subjects[i].run(BATCH * 10);
    for (unsigned round = 0; round < ROUNDS; round++) {
        double *at = &times[0][(size_t)round * 2 * GROUP];

        for (size_t i = 0; i < count; i++)
            run_group(&subjects[i], at + i * BATCHES);
        for (size_t i = count; i-- > 0;)
            run_group(&subjects[i], at + i * BATCHES + GROUP);
    }
    for (size_t i = 0; i < count; i++)
        if (strcmp(subjects[i].name, "empty") == 0)
            empty = least(times[i], BATCHES);
    for (size_t i = 0; i < count; i++)
        report(subjects[i].name, times[i], strcmp(subjects[i].name, "empty") == 0 ? 0 : empty);
    fflush(stdout);
}
