/*
 * The cost of a full sample with this process: CPU time in us, the shortest of many batches; the
 * maximal distance of a tenth of them; and the number of values.
 *
 * With `cold`: the cost of a sample at 10 Hz, with caches that other programs used meanwhile. Part
 * of it is the cost of only reading the same files. The means of both.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "tools/sampler/sample.h"
#include "waits.h"

#include <err.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define BATCHES    500
#define COST_BATCH 10

#define COLD_ROUNDS 50
#define PERIOD_MS   100

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

static void say_warm(struct host_reader *host)
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

/* Only reads the same files. */
static void read_only(void)
{
    static const char *const names[] = {
        "/proc/stat",         "/proc/loadavg",     "/proc/meminfo",         "/proc/vmstat",
        "/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/diskstats",
        "/proc/net/dev",      "/proc/net/snmp",    "/proc/self/stat",       "/proc/self/io",
    };
    static int files[sizeof(names) / sizeof(names[0])];
    static char buffer[1 << 16];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (!files[i])
            files[i] = open(names[i], O_RDONLY | O_CLOEXEC);
        (void)!pread(files[i], buffer, sizeof(buffer), 0);
    }
}

/* Measures both in turns, each after a rest of PERIOD_MS, which does not count. */
static void say_cold(struct host_reader *host)
{
    uint64_t sampled = 0;
    uint64_t only_read = 0;
    uint64_t values = 0;
    uint64_t began;

    for (int i = 0; i < COLD_ROUNDS; i++) {
        pause_us(PERIOD_MS * 1000);
        began = cpu_ns();
        host_sample_all(host, sum_up, &values);
        sampled += cpu_ns() - began;
        pause_us(PERIOD_MS * 1000);
        began = cpu_ns();
        read_only();
        only_read += cpu_ns() - began;
    }
    printf("%.1f %.1f\n", (double)sampled / COLD_ROUNDS / 1e3,
           (double)only_read / COLD_ROUNDS / 1e3);
}

int main(int argc, char **argv)
{
    struct host_reader *const host = open_with_self();

    if (argc > 1 && strcmp(argv[1], "cold") == 0)
        say_cold(host);
    else
        say_warm(host);
    host_close(host);
    return 0;
}
