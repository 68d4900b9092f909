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
    const double start = bench_clock_ns(CLOCK_MONOTONIC);

    bench->run(bench->context);
    bench->ns[bench->batches++] =
        (bench_clock_ns(CLOCK_MONOTONIC) - start) / (double)bench->per_batch;
}

static inline int bench_compare(const void *a, const void *b)
{
    const double *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static inline double bench_percentile(struct bench *bench, unsigned percent)
{
    qsort(bench->ns, bench->batches, sizeof(bench->ns[0]), bench_compare);
    return bench->ns[bench->batches * percent / 100];
}

static inline void bench_pair(struct bench *bench, struct bench *anchor)
{
    for (unsigned i = 0; i < BENCH_BATCHES / 2; i++) {
        bench_batch(anchor);
        bench_batch(bench);
        bench_batch(bench);
        bench_batch(anchor);
    }
    for (struct bench *each = bench; each; each = each == bench ? anchor : NULL)
        printf("%-28s min %7.1f ns, p10 %7.1f ns, median %7.1f ns\n", each->name,
               bench_percentile(each, 0), bench_percentile(each, 10), bench_percentile(each, 50));
    printf("%-28s %.2f (of the minima)\n", "ratio",
           bench_percentile(bench, 0) / bench_percentile(anchor, 0));
}

#endif
