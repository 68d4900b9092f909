/*
 * Folders like a kernel's /proc and /sys, and their samples.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#ifndef TESTS_HOST_FOLDER_H
#define TESTS_HOST_FOLDER_H

#include "check.h"
#include "tools/sampler/sample.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define SAMPLES        600
#define MANY_PROCESSES 5000
#define MUTATIONS      400

static char root[PATH_MAX];
static struct host_config config; /* of the current test */
static struct host_reader *host;

/* ---- the folder */

__attribute__((format(printf, 2, 3))) static void put_file(const char *name, const char *format,
                                                           ...)
{
    char path[PATH_MAX + 256];
    va_list values;
    FILE *file;

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); *slash++ = '/') {
        *slash = '\0';
        CHECK(mkdir(path, 0700) == 0 || errno == EEXIST);
    }
    file = fopen(path, "w");
    CHECK(file != NULL);
    if (!file)
        return;
    va_start(values, format);
    vfprintf(file, format, values);
    va_end(values);
    CHECK(fclose(file) == 0);
}

static inline int remove_one(const char *path, const struct stat *about, int type,
                             struct FTW *position)
{
    (void)about;
    (void)type;
    (void)position;
    return remove(path);
}

static inline void remove_tree(const char *name)
{
    char path[PATH_MAX + 256];

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static inline void put_host(void)
{
    remove_tree("proc");
    remove_tree("sys");
    put_file("proc/stat", "cpu  100 20 30 4000 50 6 7 8 9 10\n"
                          "cpu0 60 10 20 2000 30 3 4 5 0 0\n"
                          "cpu1 40 10 10 2000 20 3 3 3 0 0\n"
                          "intr 5 0 0 5\nctxt 12345\nbtime 1700000000\nprocesses 777\n"
                          "procs_running 4\nprocs_blocked 2\nsoftirq 1 2 3\n");
    put_file("proc/loadavg", "1.50 0.07 12.00 4/321 9999\n");
    put_file("proc/meminfo", "MemTotal:        1000 kB\nMemFree:          400 kB\n"
                             "MemAvailable:     700 kB\nBuffers:           10 kB\n"
                             "Cached:            90 kB\nSwapCached:         1 kB\n"
                             "SwapTotal:        500 kB\nSwapFree:         450 kB\n"
                             "Dirty:              3 kB\nWriteback:          2 kB\n"
                             "HugePages_Total:    0\n");
    put_file("proc/vmstat", "nr_free_pages 1\npgpgin 5\npswpin 11\npswpout 12\nallocstall_dma 1\n"
                            "allocstall_normal 2\npgmajfault 13\noom_kill 1\nzswpin 4\n");
    put_file("proc/pressure/cpu", "some avg10=1.00 avg60=0.00 avg300=0.00 total=1000\n"
                                  "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n");
    put_file("proc/pressure/io", "some avg10=1.00 avg60=0.00 avg300=0.00 total=2000\n"
                                 "full avg10=0.00 avg60=0.00 avg300=0.00 total=1500\n");
    put_file("proc/pressure/memory", "some avg10=1.00 avg60=0.00 avg300=0.00 total=3\n"
                                     "full avg10=0.00 avg60=0.00 avg300=0.00 total=2\n");
    put_file("proc/diskstats", "   7       0 loop0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
                               " 254       0 vda 10 1 200 30 40 2 800 90 3 100 120 5 0 50 6 7 8\n"
                               " 254       1 vda1 4 0 80 10 20 1 400 40 0 50 60\n");
    put_file("proc/net/dev",
             "Inter-|   Receive                       |  Transmit\n"
             " face |bytes packets errs drop fifo frame compressed multicast|bytes packets errs "
             "drop fifo colls carrier compressed\n"
             "    lo: 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
             "  eth0: 1000 10 1 2 0 0 0 5 2000 20 3 4 0 0 0 0\n");
    put_file("proc/net/snmp",
             "Ip: Forwarding DefaultTTL\nIp: 1 64\n"
             "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens AttemptFails "
             "EstabResets CurrEstab InSegs OutSegs RetransSegs InErrs OutRsts InCsumErrors\n"
             "Tcp: 1 200 120000 -1 11 12 13 14 15 16 17 18 19 20 21\n"
             "Udp: InDatagrams\nUdp: 5\n");
}

static inline void put_process(unsigned pid, const char *name)
{
    char path[64];

    (void)snprintf(path, sizeof(path), "proc/%u/stat", pid);
    put_file(path,
             "%u (%s) S 1 1 1 0 -1 4194560 100 0 5 0 30 40 0 0 20 0 7 0 1234 8192000 25 "
             "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 1 0 0 0 0 0\n",
             pid, name);
    (void)snprintf(path, sizeof(path), "proc/%u/io", pid);
    put_file(path, "rchar: 1\nwchar: 2\nsyscr: 3\nsyscw: 4\nread_bytes: 4096\nwrite_bytes: 8192\n"
                   "cancelled_write_bytes: 0\n");
    for (int i = 0; i < 3; i++) {
        (void)snprintf(path, sizeof(path), "proc/%u/fd/%d", pid, i);
        put_file(path, "%s", "");
    }
}

/* ---- results */

struct folder_seen {
    char group[16];
    char instance[HOST_NAME_BYTES];
    uint32_t slot;
    uint64_t generation;
    uint64_t monotonic;
    uint64_t present;
    const struct host_metric *metrics;
    size_t count;
    uint64_t values[HOST_METRICS_MAX];
};
static struct folder_seen seen[SAMPLES];
static size_t seen_count;

static inline void see(void *context, const struct host_sample *sample)
{
    struct folder_seen *const one = &seen[seen_count];

    (void)context;
    CHECK(seen_count < SAMPLES - 1);
    seen_count += seen_count < SAMPLES - 1;
    CHECK(sample->slot < HOST_SLOTS && sample->count <= HOST_METRICS_MAX && sample->present != 0);
    CHECK(sample->count == 64 || sample->present >> sample->count == 0);
    (void)snprintf(one->group, sizeof(one->group), "%s", sample->group);
    (void)snprintf(one->instance, sizeof(one->instance), "%s", sample->instance);
    one->slot = sample->slot;
    one->generation = sample->generation;
    one->monotonic = sample->monotonic;
    one->present = sample->present;
    one->metrics = sample->metrics;
    one->count = sample->count;
    memcpy(one->values, sample->values, sample->count * sizeof(*sample->values));
}

static inline void sample(void)
{
    seen_count = 0;
    host_sample_all(host, see, NULL);
}

/* Returns a sampled instance; NULL: not sampled. */
static inline const struct folder_seen *find(const char *group, const char *instance)
{
    for (size_t i = 0; i < seen_count; i++)
        if (strcmp(seen[i].group, group) == 0 && strcmp(seen[i].instance, instance) == 0)
            return &seen[i];
    return NULL;
}

/* Returns a value of the last sample; UINT64_MAX: the sample does not have it. */
static inline uint64_t value(const char *group, const char *instance, const char *metric)
{
    const struct folder_seen *const one = find(group, instance);

    for (size_t i = 0; one && i < one->count; i++)
        if (strcmp(one->metrics[i].name, metric) == 0)
            return one->present >> i & 1 ? one->values[i] : UINT64_MAX;
    return UINT64_MAX;
}

static inline size_t count_of(const char *group)
{
    size_t count = 0;

    for (size_t i = 0; i < seen_count; i++)
        count += strcmp(seen[i].group, group) == 0;
    return count;
}

static inline void reset_config(void)
{
    host_config_default(&config);
    config.root = root;
}

static inline void begin_test(void)
{
    put_host();
    reset_config();
}

/* Opens a reader for `config`, in place of the last one. */
static inline void open_host(void)
{
    struct error error = {""};

    host_close(host);
    host = host_open(&config, &error);
    CHECK_TEXT(error.text, "");
    CHECK(host != NULL);
}

static inline void open_and_sample(void)
{
    open_host();
    sample();
}

static inline void put_group(const char *path, unsigned cpu)
{
    char file[256];

    (void)snprintf(file, sizeof(file), "sys/fs/cgroup/%s/cpu.stat", path);
    put_file(file, "usage_usec 30\nuser_usec %u\nsystem_usec 20\nnr_periods 1\nthrottled_usec 5\n",
             cpu);
}

static inline void make_folder(void)
{
    const char *const folder = getenv("TMPDIR");

    (void)snprintf(root, sizeof(root), "%.3000s/host-XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(root)) {
        perror(root);
        exit(1);
    }
    check_before = begin_test;
}

static inline void remove_folder(void)
{
    host_close(host);
    remove_tree("");
}

#define CHECK_MAIN_IN_FOLDER CHECK_MAIN_WITH(make_folder(), remove_folder())

#endif
