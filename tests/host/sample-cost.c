/*
 * Prints the cost of a full sample with this process: the CPU time in us, by the shortest of many
 * batches; the share by which the shortest tenth of the batches exceeds that; the number of values.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/sampler/sample.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define BATCHES    500
#define COST_BATCH 10

static uint64_t cpu_ns(void)
{
    struct timespec time;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * 1000000000 + (uint64_t)time.tv_nsec;
}

static void sum_up(void *context, const struct host_sample *sample)
{
    for (size_t i = 0; i < sample->count; i++)
        if (host_has(sample, i))
            ++*(uint64_t *)context;
}

static int by_size(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a;
    const uint64_t y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

static struct host_reader *open_with_self(void)
{
    struct host_config config;
    struct error error;
    struct host_reader *host;
    char self[32];

    host_config_default(&config);
    (void)snprintf(self, sizeof(self), "pid:%d", getpid());
    config.wanted[HOST_PROCESS].instances = self;
    host = host_open(&config, &error);
    if (!host)
        errx(1, "%s", error.text);
    return host;
}

static void say_cost(struct host_reader *host)
{
    static uint64_t took[BATCHES];
    uint64_t values = 0;

    for (int batch = 0; batch < BATCHES; batch++) {
        const uint64_t began = cpu_ns();

        for (int i = 0; i < COST_BATCH; i++)
            host_sample_all(host, sum_up, &values);
        took[batch] = cpu_ns() - began;
    }
    qsort(took, BATCHES, sizeof(took[0]), by_size);
    printf("%.2f %.4f %.0f\n", (double)took[0] / COST_BATCH / 1e3,
           (double)(took[BATCHES / 10] - took[0]) / (double)took[0],
           (double)values / BATCHES / COST_BATCH);
}

int main(void)
{
    struct host_reader *const host = open_with_self();

    say_cost(host);
    host_close(host);
    return 0;
}
