/*
 * What is read of /proc and /sys, from folders that are as a kernel has them, or as none has.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "check.h"
#include "tools/host/lines.h"
#include "tools/host/sample.h"

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

#define NS_PER_MS UINT64_C(1000000)
#define SAMPLES   600
#define MANY      5000
#define MUTATIONS 400

static char root[PATH_MAX];

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

static int remove_one(const char *path, const struct stat *about, int type, struct FTW *position)
{
    (void)about;
    (void)type;
    (void)position;
    return remove(path);
}

static void remove_tree(const char *name)
{
    char path[PATH_MAX + 256];

    (void)snprintf(path, sizeof(path), "%s/%s", root, name);
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put_host(void)
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

static void put_process(unsigned pid, const char *name)
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

/* ---- what came of it */

struct seen {
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
static struct seen seen[SAMPLES];
static size_t seen_count;

static void see(void *context, const struct host_sample *sample)
{
    struct seen *const one = &seen[seen_count];

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

static void sample(struct host *host)
{
    seen_count = 0;
    host_sample_all(host, see, NULL);
}

/* NULL: it was not sampled. */
static const struct seen *find(const char *group, const char *instance)
{
    for (size_t i = 0; i < seen_count; i++)
        if (strcmp(seen[i].group, group) == 0 && strcmp(seen[i].instance, instance) == 0)
            return &seen[i];
    return NULL;
}

/* UINT64_MAX: it is not there. */
static uint64_t value(const char *group, const char *instance, const char *metric)
{
    const struct seen *const one = find(group, instance);

    for (size_t i = 0; one && i < one->count; i++)
        if (strcmp(one->metrics[i].name, metric) == 0)
            return one->present >> i & 1 ? one->values[i] : UINT64_MAX;
    return UINT64_MAX;
}

static size_t count_of(const char *group)
{
    size_t count = 0;

    for (size_t i = 0; i < seen_count; i++)
        count += strcmp(seen[i].group, group) == 0;
    return count;
}

static struct host_config config_of(void)
{
    struct host_config config;

    host_config_default(&config);
    config.root = root;
    return config;
}

static struct host *open_host(const struct host_config *config)
{
    struct error error = {""};
    struct host *const host = host_open(config, &error);

    CHECK_TEXT(error.text, "");
    CHECK(host != NULL);
    return host;
}

/* ---- */

static void test_values(void)
{
    const struct host_config config = config_of();
    struct host *host;

    put_host();
    host = open_host(&config);
    sample(host);
    CHECK(value("cpu", "", "system.cpu.time.user") == 1000 * NS_PER_MS);
    CHECK(value("cpu", "", "system.cpu.time.iowait") == 500 * NS_PER_MS);
    CHECK(value("cpu", "", "system.cpu.time.steal") == 80 * NS_PER_MS);
    CHECK(count_of("cpu") == 1);
    CHECK(value("memory", "", "system.memory.limit") == 1000 * 1024);
    CHECK(value("memory", "", "system.linux.memory.available") == 700 * 1024);
    CHECK(value("memory", "", "system.linux.memory.dirty") == 3 * 1024);
    CHECK(value("memory", "", "system.paging.usage.used") == 50 * 1024);
    CHECK(value("memory", "", "system.paging.operations.in") == 11);
    CHECK(value("memory", "", "system.paging.faults.major") == 13);
    CHECK(value("memory", "", "system.linux.memory.stalls") == 3);
    CHECK(value("memory", "", "system.linux.memory.oom_kills") == 1);
    CHECK(value("pressure", "", "system.linux.pressure.cpu.some") == 1000000);
    CHECK(value("pressure", "", "system.linux.pressure.io.full") == 1500000);
    CHECK(value("pressure", "", "system.linux.pressure.memory.some") == 3000);
    CHECK(value("run_queue", "", "system.process.count.running") == 3);
    CHECK(value("run_queue", "", "system.process.count.blocked") == 2);
    CHECK(value("run_queue", "", "system.process.created") == 777);
    CHECK(value("run_queue", "", "system.cpu.load_average.1m") == 150);
    CHECK(value("run_queue", "", "system.cpu.load_average.5m") == 7);
    CHECK(count_of("disk") == 2);
    CHECK(value("disk", "vda", "system.disk.operations.read") == 10);
    CHECK(value("disk", "vda", "system.disk.io.write") == 800 * 512);
    CHECK(value("disk", "vda", "system.disk.operation_time.write") == 90 * NS_PER_MS);
    CHECK(value("disk", "vda", "system.disk.io_time") == 100 * NS_PER_MS);
    CHECK(value("disk", "vda", "system.disk.weighted_io_time") == 120 * NS_PER_MS);
    CHECK(value("disk", "vda", "system.disk.pending_operations") == 3);
    CHECK(value("disk", "vda", "system.disk.operation_time.flush") == 8 * NS_PER_MS);
    CHECK(value("disk", "vda1", "system.disk.io.read") == 80 * 512);
    CHECK(value("disk", "vda1", "system.disk.operations.flush") == UINT64_MAX); /* an old kernel */
    CHECK(count_of("network") == 1);
    CHECK(value("network", "eth0", "system.network.io.receive") == 1000);
    CHECK(value("network", "eth0", "system.network.packet.count.transmit") == 20);
    CHECK(value("network", "eth0", "system.network.errors.transmit") == 3);
    CHECK(value("network", "eth0", "system.network.packet.dropped.receive") == 2);
    CHECK(value("tcp", "", "system.network.tcp.segments.retransmit") == 18);
    CHECK(value("tcp", "", "system.network.tcp.connections.established") == 15);
    CHECK(count_of("process") == 0 && count_of("cgroup") == 0);
    CHECK(host_counts(host).not_understood == 0 && host_counts(host).unreadable == 0);

    /* what was kept of the last time is not what is read now */
    put_file("proc/net/snmp", "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens "
                              "AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs\n"
                              "Tcp: 1 200 120000 -1 11 12 13 14 15 16 17 28\n");
    put_file("proc/vmstat",
             "%080d\npswpin 111111111111\npswpout 12\nallocstall_dma 1\n"
             "pgmajfault 13\noom_kill 2\n",
             0);
    sample(host);
    CHECK(value("tcp", "", "system.network.tcp.segments.retransmit") == 28);
    CHECK(value("memory", "", "system.paging.operations.in") == 111111111111);
    CHECK(value("memory", "", "system.linux.memory.oom_kills") == 2);
    host_close(host);
}

static void test_each_cpu(void)
{
    struct host_config config = config_of();
    struct host *host;

    put_host();
    config.wanted[HOST_CPU].instances = "each";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("cpu") == 3);
    CHECK(value("cpu", "cpu1", "system.cpu.time.user") == 400 * NS_PER_MS);
    /* as the kernel's do: a little back is no new beginning, one CPU goes */
    put_file("proc/stat", "cpu  100 20 30 4001 49 6 7 8\ncpu0 60 10 20 2000 29 3 4 5\n");
    sample(host);
    CHECK(count_of("cpu") == 2);
    CHECK(value("cpu", "", "system.cpu.time.iowait") == 500 * NS_PER_MS);
    CHECK(value("cpu", "", "system.cpu.time.idle") == 40010 * NS_PER_MS);
    CHECK(host_counts(host).ended == 1);
    host_close(host);
}

static void test_disks_come_and_go(void)
{
    struct host_config config = config_of();
    struct host *host;
    uint64_t generation;
    uint32_t slot;

    put_host();
    config.wanted[HOST_DISK].instances = "!loop*,!*1";
    host = open_host(&config);
    put_file("proc/diskstats", "8 0 sda 1 0 0 0 0 0 0 0 0 0 0\n8 1 sda1 1 0 0 0 0 0 0 0 0 0 0\n"
                               "8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n7 0 loop0 1 0 0 0 0 0 0 0 0 0 0\n");
    sample(host);
    CHECK(count_of("disk") == 2 && find("disk", "sda") && find("disk", "sdb"));
    slot = find("disk", "sda")->slot;
    generation = find("disk", "sda")->generation;

    put_file("proc/diskstats", "8 16 sdb 5 0 0 0 0 0 0 0 0 0 0\n8 32 sdc 6 0 0 0 0 0 0 0 0 0 0\n");
    sample(host);
    CHECK(count_of("disk") == 2);
    CHECK(value("disk", "sdb", "system.disk.operations.read") == 5);
    CHECK(host_counts(host).ended == 1);

    /* in another order, and the first one again: that is another one */
    put_file("proc/diskstats", "8 32 sdc 7 0 0 0 0 0 0 0 0 0 0\n8 0 sda 8 0 0 0 0 0 0 0 0 0 0\n"
                               "8 16 sdb 9 0 0 0 0 0 0 0 0 0 0\n8 16 sdb 9 0 0 0 0 0 0 0 0 0 0\n");
    sample(host);
    CHECK(count_of("disk") == 3);
    CHECK(value("disk", "sda", "system.disk.operations.read") == 8);
    CHECK(value("disk", "sdc", "system.disk.operations.read") == 7);
    CHECK(find("disk", "sda") &&
          (find("disk", "sda")->slot != slot || find("disk", "sda")->generation != generation));
    CHECK(host_counts(host).not_understood == 1); /* the same name twice */
    host_close(host);
}

/* A name of each disk that there may be. */
static void test_many_disks(void)
{
    struct host_config config = config_of();
    static char lines[400 * 64];
    struct host *host;
    size_t length = 0;

    put_host();
    for (int i = 0; i < 400; i++)
        length += (size_t)snprintf(lines + length, sizeof(lines) - length,
                                   "8 %d sd%d %d 0 0 0 0 0 0 0 0 0 0\n", i, i, i + 1);
    put_file("proc/diskstats", "%s", lines);
    host = open_host(&config);
    sample(host);
    CHECK(count_of("disk") == 256);
    CHECK(value("disk", "sd255", "system.disk.operations.read") == 256);
    CHECK(host_counts(host).no_room == 400 - 256);
    host_close(host);

    config.wanted[HOST_DISK].instances = "sd399";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("disk") == 1 && value("disk", "sd399", "system.disk.operations.read") == 400);
    CHECK(host_counts(host).no_room == 0);
    host_close(host);
}

/* The kernel gives the lowest 32 bits of times. */
static void test_wrap(void)
{
    const struct host_config config = config_of();
    struct host *host;

    put_host();
    host = open_host(&config);
    put_file("proc/diskstats", "8 0 sda 10 0 80 4294967000 20 0 160 5 0 4294967290 100\n");
    sample(host);
    put_file("proc/diskstats", "8 0 sda 11 0 88 4 21 0 168 6 0 10 4294967295\n");
    sample(host);
    CHECK(value("disk", "sda", "system.disk.operation_time.read") ==
          (UINT64_C(4294967296) + 4) * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.io_time") == (UINT64_C(4294967296) + 10) * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.operation_time.write") == 6 * NS_PER_MS);
    put_file("proc/diskstats", "8 0 sda 12 0 88 2 22 0 168 6 0 5 4\n");
    sample(host);
    /* a little back is no wrap */
    CHECK(value("disk", "sda", "system.disk.operation_time.read") ==
          (UINT64_C(4294967296) + 2) * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.weighted_io_time") ==
          (UINT64_C(4294967296) + 4) * NS_PER_MS);
    /* another disk of this name: its operations are fewer */
    put_file("proc/diskstats", "8 0 sda 1 0 8 7 0 0 0 0 0 8 9\n");
    sample(host);
    CHECK(value("disk", "sda", "system.disk.operation_time.read") == 7 * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.io_time") == 8 * NS_PER_MS);
    /* the most that there may be, and more than that */
    put_file("proc/diskstats", "8 0 sda 18446744073709551615 0 18446744073709551615 1 1 0 0 0 0 8 "
                               "9\n8 1 sda1 18446744073709551616 0 1 1 1 0 0 0 0 8 9\n");
    sample(host);
    CHECK(value("disk", "sda", "system.disk.operations.read") == UINT64_MAX);
    CHECK(find("disk", "sda") && !find("disk", "sda1"));
    CHECK(host_counts(host).not_understood == 1);
    host_close(host);
}

static void test_without_pressure(void)
{
    const struct host_config config = config_of();
    struct host *host;

    put_host();
    remove_tree("proc/pressure");
    remove_tree("proc/vmstat");
    remove_tree("proc/net");
    host = open_host(&config);
    sample(host);
    CHECK(!find("pressure", "") && !find("tcp", "") && count_of("network") == 0);
    CHECK(find("cpu", "") && count_of("disk") == 2);
    CHECK(value("memory", "", "system.memory.limit") == 1000 * 1024);
    CHECK(value("memory", "", "system.paging.operations.in") == UINT64_MAX);
    host_close(host);
}

static void test_odd_names(void)
{
    struct host_config config = config_of();
    struct host *host;
    char name[400];

    put_host();
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    put_file("proc/diskstats",
             "8 0 \xff\x1b[31m\xc3 1 0 8 7 0 0 0 0 0 8 9\n8 1 cciss/c0d0 2 0 8 7 0 0 0 0 0 8 9\n"
             "8 2 %s 3 0 8 7 0 0 0 0 0 8 9\n\n8 3\n-1 0 a 1 0 8 7 0 0 0 0 0 8 9\nnonsense\n",
             name);
    put_file("proc/net/dev", "|\n|\n a|b:1 10 0 0 0 0 0 0 2 20 0 0 0 0 0 0\n"
                             "eth0:1: 5 10 0 0 0 0 0 0 2 20 0 0 0 0 0 0\n"
                             " : 1 1 1 1 1 1 1 1 1 1 1 1\n no numbers\n:\n");
    put_process(10, "a) S 1 (b");
    put_process(11, "new\nline \xfe\x1b");
    put_process(12, "");
    put_file("proc/13/stat", "13 no name");
    put_file("proc/14/stat", "%s", "");
    put_file("proc/99999999999999999999/stat", "1 (a) S");
    put_file("proc/0/stat", "0 (zero) S");
    config.wanted[HOST_PROCESS].instances = "*";
    host = open_host(&config);
    sample(host);
    CHECK(value("disk", "\xff\x1b[31m\xc3", "system.disk.operations.read") == 1);
    CHECK(value("disk", "cciss/c0d0", "system.disk.operations.read") == 2);
    CHECK(count_of("disk") == 2 && host_counts(host).no_room == 1);
    CHECK(value("network", "a|b", "system.network.io.receive") == 1);
    CHECK(value("network", "eth0:1", "system.network.io.receive") == 5);
    CHECK(count_of("network") == 2);
    CHECK(host_counts(host).not_understood >= 7);
    CHECK(value("process", "a) S 1 (b[10]", "process.thread.count") == 7);
    CHECK(value("process", "new\nline \xfe\x1b[11]", "process.cpu.time.user") == 300 * NS_PER_MS);
    CHECK(value("process", "[12]", "process.disk.io.write") == 8192);
    CHECK(count_of("process") == 3);
    host_close(host);
}

static void test_processes(void)
{
    struct host_config config = config_of();
    struct host *host;

    put_host();
    put_process(10, "redis-server");
    put_process(11, "a-very-long-nam"); /* what the kernel keeps of it */
    put_process(12, "postgres");
    put_process(13, "postgres");
    put_process(14, "nginx");
    put_file("sys/fs/cgroup/cgroup.procs", "1\n");
    put_file("sys/fs/cgroup/system.slice/nginx.service/cgroup.procs", "14\n");
    put_file("sys/fs/cgroup/system.slice/nginx.service/worker/cgroup.procs", "12\n999\nx\n");
    config.wanted[HOST_PROCESS].instances =
        "redis*, a-very-long-name-of-a-command ,pid:13,unit:nginx.service,pid:4000000";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("process") == 5);
    CHECK(find("process", "redis-server[10]") && find("process", "a-very-long-nam[11]"));
    CHECK(find("process", "postgres[12]") && find("process", "postgres[13]"));
    CHECK(value("process", "nginx[14]", "process.cpu.time.system") == 400 * NS_PER_MS);
    CHECK(value("process", "nginx[14]", "process.memory.virtual") == 8192000);
    CHECK(value("process", "nginx[14]", "process.memory.usage") ==
          25 * (uint64_t)sysconf(_SC_PAGESIZE));
    CHECK(value("process", "nginx[14]", "process.paging.faults.minor") == 100);
    CHECK(value("process", "nginx[14]", "process.paging.faults.major") == 5);
    CHECK(value("process", "nginx[14]", "process.unix.file_descriptor.count") == 3);
    CHECK(value("process", "nginx[14]", "process.io.calls.write") == 4);
    host_close(host);
}

static void test_many_processes(void)
{
    struct host_config config = config_of();
    struct host *host;

    put_host();
    for (unsigned pid = 1; pid < MANY; pid++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "proc/%u/stat", pid);
        put_file(path, "%u (crowd) S 1\n", pid);
    }
    put_process(MANY, "wanted");
    config.wanted[HOST_PROCESS].instances = "wanted";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("process") == 1 && find("process", "wanted[5000]"));
    CHECK(host_counts(host).no_room == 0);
    host_close(host);

    config.wanted[HOST_PROCESS].instances = "*";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("process") <= 128);
    CHECK(host_counts(host).no_room == MANY - 128);
    host_close(host);
}

/* Real ones: files of the dead cannot be read. */
static void test_dying_process(void)
{
    struct host_config config = config_of();
    int pipes[2];
    struct host *host;
    char pid[32];
    char name[64];
    pid_t child;
    char byte;

    config.root = NULL;
    CHECK(pipe(pipes) == 0);
    child = fork();
    if (child == 0) {
        prctl(PR_SET_NAME, "bk) R 9\n\xff(");
        close(pipes[0]);
        (void)!write(pipes[1], "x", 1);
        pause();
        _exit(0);
    }
    CHECK(child > 0 && read(pipes[0], &byte, 1) == 1);
    (void)snprintf(pid, sizeof(pid), "pid:%d", child);
    (void)snprintf(name, sizeof(name), "bk) R 9\n\xff([%d]", child);
    config.wanted[HOST_PROCESS].instances = pid;
    host = open_host(&config);
    sample(host);
    CHECK(value("process", name, "process.thread.count") == 1);
    CHECK(value("process", name, "process.unix.file_descriptor.count") >= 4);
    CHECK(value("process", name, "process.memory.usage") > 0);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    sample(host);
    CHECK(count_of("process") == 0 && find("cpu", ""));
    CHECK(host_counts(host).ended == 1 && host_counts(host).unreadable == 0);
    host_close(host);
    close(pipes[0]);
    close(pipes[1]);
}

static void put_group(const char *path, unsigned cpu)
{
    char file[256];

    (void)snprintf(file, sizeof(file), "sys/fs/cgroup/%s/cpu.stat", path);
    put_file(file, "usage_usec 30\nuser_usec %u\nsystem_usec 20\nnr_periods 1\nthrottled_usec 5\n",
             cpu);
}

static void test_cgroups(void)
{
    struct host_config config = config_of();
    struct host *host;

    put_host();
    put_group("system.slice", 1);
    put_group("system.slice/redis.service", 2);
    put_group("system.slice/nginx.service", 3);
    put_group("system.slice/nginx.service/worker", 4);
    put_group("user.slice/a/b/app.service", 5);
    put_file("sys/fs/cgroup/system.slice/redis.service/memory.current", "4096\n");
    put_file("sys/fs/cgroup/system.slice/redis.service/pids.current", "3\n");
    put_file("sys/fs/cgroup/system.slice/redis.service/io.stat",
             "8:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n8:16 rbytes=10 wbytes=20 "
             "rios=30 wios=40 dbytes=0 dios=0\n");
    put_file("sys/fs/cgroup/system.slice/redis.service/memory.pressure",
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=9\nfull avg10=0.00 total=8\n");
    config.wanted[HOST_CGROUP].instances = "/system.slice/*,unit:app.service,!*/nginx.service";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("cgroup") == 2);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.cpu.time.user") == 2000);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.cpu.throttled") == 5000);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.memory.usage") == 4096);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.process.count") == 3);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.disk.io.write") == 22);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.disk.operations.read") == 33);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.pressure.memory.some") == 9000);
    CHECK(value("cgroup", "system.slice/redis.service", "cgroup.pressure.cpu.some") == UINT64_MAX);
    CHECK(value("cgroup", "user.slice/a/b/app.service", "cgroup.cpu.time.user") == 5000);
    CHECK(value("cgroup", "user.slice/a/b/app.service", "cgroup.memory.usage") == UINT64_MAX);
    host_close(host);
}

/* Version 1: the same path in a tree for each controller. */
static void put_group_v1(const char *path)
{
    static const struct {
        const char *name, *text;
    } files[] = {
        {"cpuacct/%s/cpuacct.stat", "user 12\nsystem 3\n"},
        {"cpu/%s/cpu.stat", "nr_periods 7\nnr_throttled 2\nthrottled_time 5000\n"},
        {"memory/%s/memory.usage_in_bytes", "8192\n"},
        {"pids/%s/pids.current", "4\n"},
        {"blkio/%s/blkio.throttle.io_service_bytes_recursive",
         "8:0 Read 1\n8:0 Write 2\n8:0 Sync 3\n8:0 Async 0\n8:0 Discard 9\n8:0 Total 12\n"
         "8:16 Read 10\n8:16 Write 20\n8:16 Total 30\nTotal 42\n"},
        {"blkio/%s/blkio.throttle.io_serviced_recursive",
         "8:0 Read 3\n8:0 Write 4\n8:0 Total 7\nTotal 7\n"},
    };
    char name[128], file[256];

    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++) {
        const char *const hole = strchr(files[i].name, '%');

        (void)snprintf(name, sizeof(name), "%.*s%s%s", (int)(hole - files[i].name), files[i].name,
                       path, hole + strlen("%s"));
        (void)snprintf(file, sizeof(file), "sys/fs/cgroup/%s", name);
        put_file(file, "%s", files[i].text);
    }
}

static void check_group_v1(const char *path)
{
    CHECK(value("cgroup", path, "cgroup.cpu.time.user") == 120 * NS_PER_MS);
    CHECK(value("cgroup", path, "cgroup.cpu.time.system") == 30 * NS_PER_MS);
    CHECK(value("cgroup", path, "cgroup.cpu.throttled") == 5000);
    CHECK(value("cgroup", path, "cgroup.memory.usage") == 8192);
    CHECK(value("cgroup", path, "cgroup.process.count") == 4);
    CHECK(value("cgroup", path, "cgroup.disk.io.read") == 11);
    CHECK(value("cgroup", path, "cgroup.disk.io.write") == 22);
    CHECK(value("cgroup", path, "cgroup.disk.operations.read") == 3);
    CHECK(value("cgroup", path, "cgroup.disk.operations.write") == 4);
}

static void test_cgroups_v1(void)
{
    struct host_config config = config_of();
    struct host *host;

    put_host();
    put_group_v1("docker/abc");
    put_file("sys/fs/cgroup/memory/docker/slim/memory.usage_in_bytes", "1\n");
    put_file("sys/fs/cgroup/blkio/docker/slim/blkio.throttle.io_service_bytes_recursive",
             "Total 0\n");
    put_process(10, "redis-server");
    put_file("sys/fs/cgroup/systemd/system.slice/redis.service/cgroup.procs", "10\n");
    config.wanted[HOST_CGROUP].instances = "docker/*,cpu*";
    config.wanted[HOST_PROCESS].instances = "unit:redis.service";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("cgroup") == 2); /* each once, and a tree is none */
    check_group_v1("docker/abc");
    CHECK(value("cgroup", "docker/abc", "cgroup.pressure.cpu.some") == UINT64_MAX);
    CHECK(value("cgroup", "docker/slim", "cgroup.memory.usage") == 1);
    CHECK(value("cgroup", "docker/slim", "cgroup.cpu.time.user") == UINT64_MAX);
    CHECK(value("cgroup", "docker/slim", "cgroup.disk.io.read") == UINT64_MAX); /* not counted */
    CHECK(find("process", "redis-server[10]"));
    CHECK(host_counts(host).not_understood == 0);
    host_close(host);

    /* both: what version 1 does not have is of version 2 */
    put_group("unified/docker/abc", 1);
    put_file("sys/fs/cgroup/unified/docker/abc/cpu.pressure", "some avg10=0.00 total=9\n");
    put_group("unified/docker/new", 2);
    put_file("sys/fs/cgroup/unified/docker/new/io.stat", "%s", "");
    host = open_host(&config);
    sample(host);
    CHECK(count_of("cgroup") == 3);
    check_group_v1("docker/abc");
    CHECK(value("cgroup", "docker/abc", "cgroup.pressure.cpu.some") == 9000);
    CHECK(value("cgroup", "docker/new", "cgroup.cpu.time.user") == 2000);
    CHECK(value("cgroup", "docker/new", "cgroup.disk.io.read") == 0); /* nothing was done yet */
    host_close(host);

    /* version 2 alone: groups may be called anything */
    put_host();
    put_file("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
    put_group("memory", 3);
    put_group("unified", 4);
    config.wanted[HOST_CGROUP].instances = "*";
    host = open_host(&config);
    sample(host);
    CHECK(count_of("cgroup") == 2);
    CHECK(value("cgroup", "memory", "cgroup.cpu.time.user") == 3000);
    CHECK(value("cgroup", "unified", "cgroup.cpu.time.user") == 4000);
    host_close(host);
}

/* ---- the kernel's own groups: one of ours in each tree that lets us */

static const char *const trees[] = {"",        "unified/", "cpuacct/", "cpu/",
                                    "memory/", "pids/",    "blkio/"};
#define TREES (sizeof(trees) / sizeof(trees[0]))

static void group_path(char *path, size_t size, size_t tree, const char *file)
{
    (void)snprintf(path, size, "/sys/fs/cgroup/%sblkin-test-%d%s", trees[tree], (int)getpid(),
                   file);
}

static bool make_groups(void)
{
    bool is_there = false;
    char path[PATH_MAX];

    for (size_t tree = 0; tree < TREES; tree++) {
        (void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%scgroup.procs", trees[tree]);
        if (access(path, F_OK) != 0)
            continue;
        group_path(path, sizeof(path), tree, "");
        is_there = mkdir(path, 0700) == 0 || is_there;
    }
    return is_there;
}

/* A process of our own groups computes, until it has used so much. */
static void compute(uint64_t ns)
{
    const pid_t parent = getpid();
    const pid_t child = fork();
    struct timespec used = {0};
    char path[PATH_MAX];
    int status;

    if (child == 0) {
        for (size_t tree = 0; tree < TREES; tree++) {
            FILE *procs;

            (void)snprintf(path, sizeof(path), "/sys/fs/cgroup/%sblkin-test-%d/cgroup.procs",
                           trees[tree], (int)parent);
            procs = fopen(path, "w");
            if (procs) {
                fprintf(procs, "%d", (int)getpid());
                (void)fclose(procs);
            }
        }
        while ((uint64_t)used.tv_sec * 1000 * NS_PER_MS + (uint64_t)used.tv_nsec < ns)
            clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
        _exit(0);
    }
    CHECK(child > 0 && waitpid(child, &status, 0) == child && status == 0);
}

static void test_real_cgroup(void)
{
    struct host_config config = config_of();
    char path[PATH_MAX], name[64];
    struct host *host;
    uint64_t user, system;

    if (!make_groups()) {
        printf("no control group can be made here: the kernel's own are not read\n");
        return;
    }
    compute(300 * NS_PER_MS);
    (void)snprintf(name, sizeof(name), "blkin-test-%d", (int)getpid());
    config.root = NULL;
    config.wanted[HOST_CGROUP].instances = name;
    host = open_host(&config);
    sample(host);
    user = value("cgroup", name, "cgroup.cpu.time.user");
    system = value("cgroup", name, "cgroup.cpu.time.system");
    /* all but what was before it had joined; version 1 has ticks */
    CHECK(user != UINT64_MAX && system != UINT64_MAX && user + system >= 200 * NS_PER_MS);
    CHECK(user + system <= 2000 * NS_PER_MS);
    for (size_t tree = 0; tree < TREES; tree++) {
        group_path(path, sizeof(path), tree, "");
        for (int i = 0; rmdir(path) != 0 && errno == EBUSY && i < 1000; i++)
            (void)nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    }
    sample(host);
    CHECK(count_of("cgroup") == 0 && host_counts(host).ended == 1);
    host_close(host);
}

static void test_times(void)
{
    struct host_config config = config_of();
    struct host *host;
    uint64_t first;

    put_host();
    for (int kind = 0; kind < HOST_KINDS; kind++)
        config.wanted[kind].period_ms = 0;
    config.wanted[HOST_CPU].period_ms = 100;
    config.wanted[HOST_DISK].period_ms = 1000;
    host = open_host(&config);
    first = host_next(host);
    CHECK(first % (100 * NS_PER_MS) == 0);
    seen_count = 0;
    host_sample(host, first - 1, see, NULL);
    CHECK(seen_count == 0);
    for (uint64_t i = 0; i < 20; i++) { /* two seconds, whatever the second that they begin in */
        CHECK(host_next(host) == first + i * 100 * NS_PER_MS);
        host_sample(host, host_next(host), see, NULL);
    }
    CHECK(count_of("cpu") == 20 && count_of("disk") == 4 && host_counts(host).skipped == 0);
    /* late: once, and then when it is due again */
    seen_count = 0;
    host_sample(host, first + 2399 * NS_PER_MS, see, NULL);
    CHECK(count_of("cpu") == 1 && host_counts(host).skipped == 3);
    CHECK(host_next(host) == first + 2400 * NS_PER_MS);
    host_close(host);
}

static void test_configuration(void)
{
    static const struct {
        enum host_kind kind;
        uint32_t period_ms;
        const char *instances;
        const char *says;
    } bad[] = {
        {HOST_CPU, 99, NULL, "cpu: expected a period of 100 ms to 300000 ms, got 99 ms"},
        {HOST_DISK, 300001, NULL, "disk: expected a period of 100 ms to 300000 ms, got 300001 ms"},
        {HOST_CPU, 1000, "cpu0", "cpu: expected \"each\" or nothing, got \"cpu0\""},
        {HOST_DISK, 1000, "vda,,vdb", "disk: expected names with commas between, got an empty one"},
        {HOST_PROCESS, 1000, "pid:0",
         "process: expected pid:NUMBER of 1 to 4194304, got \"pid:0\""},
        {HOST_PROCESS, 1000, "pid:x",
         "process: expected pid:NUMBER of 1 to 4194304, got \"pid:x\""},
    };
    struct host_config config;
    struct error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        config = config_of();
        config.wanted[bad[i].kind].period_ms = bad[i].period_ms;
        config.wanted[bad[i].kind].instances = bad[i].instances;
        CHECK(host_open(&config, &error) == NULL);
        CHECK_TEXT(error.text, bad[i].says);
    }
    config = config_of();
    config.root = "/dev/null/nowhere";
    CHECK(host_open(&config, &error) == NULL);
    CHECK_TEXT(error.text, "/dev/null/nowhere: expected a folder with proc in it: Not a directory");
}

/* Bytes of a file changed, left out or doubled: it is read or counted, and what is not hit stays.
 */
static void test_broken(void)
{
    static const char *const files[] = {"proc/stat",
                                        "proc/loadavg",
                                        "proc/meminfo",
                                        "proc/vmstat",
                                        "proc/pressure/io",
                                        "proc/diskstats",
                                        "proc/net/dev",
                                        "proc/net/snmp",
                                        "proc/10/stat",
                                        "proc/10/io",
                                        "sys/fs/cgroup/a/cpu.stat"};
    struct host_config config = config_of();
    static char bytes[4096];
    char path[PATH_MAX + 64];

    config.wanted[HOST_CPU].instances = "each";
    config.wanted[HOST_DISK].instances = "*";
    config.wanted[HOST_PROCESS].instances = "*";
    config.wanted[HOST_CGROUP].instances = "*";
    srand(1);
    for (int turn = 0; turn < MUTATIONS; turn++) {
        const char *const name = files[rand() % (int)(sizeof(files) / sizeof(files[0]))];
        struct host *host;
        size_t length;
        FILE *file;

        if (turn % 20 == 0) {
            put_host();
            put_process(10, "a");
            put_group("a", 1);
        }
        (void)snprintf(path, sizeof(path), "%s/%s", root, name);
        file = fopen(path, "r");
        length = file ? fread(bytes, 1, sizeof(bytes) - 1, file) : 0;
        if (file)
            (void)fclose(file);
        host = open_host(&config);
        sample(host);
        for (int i = 0; i < 4 && length > 0; i++)
            bytes[(size_t)rand() % length] = "\n :()=9-\xff"[rand() % 9];
        if (rand() % 4 == 0)
            length = (size_t)rand() % (length + 1);
        file = fopen(path, "w");
        CHECK(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
        sample(host); /* see() checks each */
        host_close(host);
    }
}

/* A line that is too long is left out, what is after it is read; a file without an end ends. */
static void test_long_lines(void)
{
    const struct host_config config = config_of();
    /* what is cut off looks like a line */
    static const char rest[] = "8 9 sdz 1 0 0 0 0 0 0 0 0 0 0";
    const size_t length = 2 * LINES_BYTES;
    char *const line = malloc(length + sizeof(rest));
    char path[PATH_MAX + 64];
    struct host *host;

    put_host();
    CHECK(line != NULL);
    memset(line, '7', length);
    memcpy(line + length, rest, sizeof(rest));
    put_file("proc/diskstats", "8 0 sda 1 0 0 0 0 0 0 0 0 0 0\n%s\n8 1 sdb 2 0 0 0 0 0 0 0 0 0 0",
             line);
    (void)snprintf(path, sizeof(path), "%s/proc/net/dev", root);
    CHECK(unlink(path) == 0 && symlink("/dev/zero", path) == 0);
    (void)snprintf(path, sizeof(path), "%s/proc/net/snmp", root);
    CHECK(unlink(path) == 0 && mkfifo(path, 0600) == 0);
    (void)snprintf(path, sizeof(path), "%s/proc/loadavg", root);
    CHECK(unlink(path) == 0 && mkdir(path, 0700) == 0);
    host = open_host(&config);
    sample(host);
    CHECK(value("disk", "sda", "system.disk.operations.read") == 1);
    CHECK(value("disk", "sdb", "system.disk.operations.read") == 2);
    CHECK(!find("disk", "sdz"));
    CHECK(count_of("network") == 0 && !find("tcp", ""));
    CHECK(host_counts(host).not_understood >= 2 && host_counts(host).unreadable >= 1);
    host_close(host);
    free(line);
}

int main(void)
{
    const char *const folder = getenv("TMPDIR");

    (void)snprintf(root, sizeof(root), "%.3000s/host-XXXXXX", folder ? folder : "/tmp");
    if (!mkdtemp(root)) {
        perror(root);
        return 1;
    }
    test_values();
    test_each_cpu();
    test_disks_come_and_go();
    test_many_disks();
    test_wrap();
    test_without_pressure();
    test_odd_names();
    test_processes();
    test_many_processes();
    test_dying_process();
    test_cgroups();
    test_cgroups_v1();
    test_real_cgroup();
    test_times();
    test_configuration();
    test_broken();
    test_long_lines();
    remove_tree("");
    return check_status();
}
