/*
 * Prints the CPU time in us of a sample of all groups with this process, and the number of its
 * values. The shortest of many batches counts.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/sampler/sample.h"

#include <err.h>
#include <stdio.h>
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

static void count_values(void *context, const struct host_sample *sample)
{
    for (size_t i = 0; i < sample->count; i++)
        if (host_has(sample, i))
            ++*(uint64_t *)context;
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

int main(void)
{
    struct host_reader *const host = open_with_self();
    uint64_t least = UINT64_MAX, values = 0;

    for (int batch = 0; batch < BATCHES; batch++) {
        const uint64_t began = cpu_ns();
        uint64_t took;

        for (int i = 0; i < COST_BATCH; i++)
            host_sample_all(host, count_values, &values);
        took = cpu_ns() - began;
        least = took < least ? took : least;
    }
    printf("%.2f %.0f\n", (double)least / COST_BATCH / 1e3, (double)values / BATCHES / COST_BATCH);
    host_close(host);
    return 0;
}
