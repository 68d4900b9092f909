/*
 * Batches, and the order of their turns.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "batch.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

#define SUBJECTS_MAX 24

const struct batches usual_batches = {
    .turns = 5, .group = 20, .calls = 2000, .clock = CLOCK_MONOTONIC};

static uint64_t clock_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

uint64_t now_ns(void)
{
    return clock_ns(CLOCK_MONOTONIC);
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

static double group_ns(const struct batches *batches, const struct subject *subject)
{
    double least = 0;

    subject->run(0);
    for (unsigned i = 0; i < batches->group; i++) {
        const uint64_t start = clock_ns(batches->clock);
        double ns;

        subject->run(batches->calls);
        ns = (double)(clock_ns(batches->clock) - start) / batches->calls;
        least = i == 0 || ns < least ? ns : least;
    }
    return least;
}

static void shuffle(size_t *order, size_t count)
{
    for (size_t i = count; i > 1; i--) {
        const size_t other = (size_t)random() % i, moved = order[i - 1];

        order[i - 1] = order[other];
        order[other] = moved;
    }
}

void measure(const struct batches *batches, const struct subject *subjects, size_t count)
{
    const char *seed = getenv("BENCH_SEED");
    size_t order[SUBJECTS_MAX];

    if (count > SUBJECTS_MAX)
        abort();
    srandom(seed ? (unsigned)strtoul(seed, NULL, 10) : 1);
    for (size_t i = 0; i < count; i++) {
        order[i] = i;
        (void)group_ns(batches, &subjects[i]);
    }
    for (unsigned turn = 0; turn < batches->turns; turn++) {
        for (unsigned pass = 0; pass < 2; pass++) {
            shuffle(order, count);
            for (size_t i = 0; i < count; i++)
                printf("run %u %u %s %.2f\n", turn, pass, subjects[order[i]].name,
                       group_ns(batches, &subjects[order[i]]));
        }
    }
    fflush(stdout);
}
