/*
 * Measuring on a machine that others use too: many short batches, of which the fastest and the
 * tenth percentile count, with an anchor measured in between (A B B A), so that what is compared
 * has had the same conditions.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_BENCH_BENCH_H
#define TESTS_BENCH_BENCH_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BENCH_BATCHES 800

struct bench {
    const char *name;
    void (*run)(void *context); /* one batch */
    void *context;
    unsigned per_batch; /* operations in it */
    clockid_t clock;    /* CLOCK_REALTIME, which is of no use here: CLOCK_MONOTONIC */
    double ns[BENCH_BATCHES];
    unsigned batches;
};

static inline double bench_clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static inline void bench_batch(struct bench *bench)
{
    const clockid_t clock = bench->clock == CLOCK_REALTIME ? CLOCK_MONOTONIC : bench->clock;
    const double start = bench_clock_ns(clock);

    bench->run(bench->context);
    bench->ns[bench->batches++] = (bench_clock_ns(clock) - start) / (double)bench->per_batch;
}

static inline int bench_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

/* By how much the two halves of the batches differ in their least. */
static inline double bench_spread(const struct bench *bench)
{
    double least[2] = {1e18, 1e18};

    for (unsigned i = 0; i < bench->batches; i++) {
        double *half = &least[i >= bench->batches / 2];

        *half = bench->ns[i] < *half ? bench->ns[i] : *half;
    }
    return least[0] > least[1] ? least[0] / least[1] - 1 : least[1] / least[0] - 1;
}

/* "NAME LEAST P10 SPREAD", in ns an operation; sorts the batches. */
static inline void bench_print(struct bench *bench)
{
    const double spread = bench_spread(bench);

    qsort(bench->ns, bench->batches, sizeof(bench->ns[0]), bench_compare);
    printf("%s %.2f %.2f %.4f\n", bench->name, bench->ns[0], bench->ns[bench->batches / 10],
           spread);
}

static inline void bench_pair(struct bench *bench, struct bench *anchor)
{
    for (unsigned i = 0; i < BENCH_BATCHES / 2; i++) {
        bench_batch(anchor);
        bench_batch(bench);
        bench_batch(bench);
        bench_batch(anchor);
    }
    bench_print(bench);
    bench_print(anchor);
}

#endif
