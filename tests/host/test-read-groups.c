/*
 * The samples of control groups, of version 1 and 2, made up and of this kernel.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_folder.h"
#include "waits.h"

#include <sys/resource.h>
#include <sys/wait.h>

TEST(test_cgroups)
{
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
    open_and_sample();
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
}

/* Version 1 has the same path in a tree for each controller. */
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

TEST(test_cgroups_v1)
{
    put_group_v1("docker/abc");
    put_file("sys/fs/cgroup/memory/docker/slim/memory.usage_in_bytes", "1\n");
    put_file("sys/fs/cgroup/blkio/docker/slim/blkio.throttle.io_service_bytes_recursive",
             "Total 0\n");
    put_process(10, "redis-server");
    put_file("sys/fs/cgroup/systemd/system.slice/redis.service/cgroup.procs", "10\n");
    config.wanted[HOST_CGROUP].instances = "docker/*,cpu*";
    config.wanted[HOST_PROCESS].instances = "unit:redis.service";
    open_and_sample();
    CHECK(count_of("cgroup") == 2); /* each once, and a tree is no group */
    check_group_v1("docker/abc");
    CHECK(value("cgroup", "docker/abc", "cgroup.pressure.cpu.some") == UINT64_MAX);
    CHECK(value("cgroup", "docker/slim", "cgroup.memory.usage") == 1);
    CHECK(value("cgroup", "docker/slim", "cgroup.cpu.time.user") == UINT64_MAX);
    CHECK(value("cgroup", "docker/slim", "cgroup.disk.io.read") == UINT64_MAX); /* not counted */
    CHECK(find("process", "redis-server[10]"));
    CHECK(host_counts(host).not_understood == 0);

    /* both versions: controllers that version 1 lacks are in version 2 */
    put_group("unified/docker/abc", 1);
    put_file("sys/fs/cgroup/unified/docker/abc/cpu.pressure", "some avg10=0.00 total=9\n");
    put_group("unified/docker/new", 2);
    put_file("sys/fs/cgroup/unified/docker/new/io.stat", "%s", "");
    open_and_sample();
    CHECK(count_of("cgroup") == 3);
    check_group_v1("docker/abc");
    CHECK(value("cgroup", "docker/abc", "cgroup.pressure.cpu.some") == 9000);
    CHECK(value("cgroup", "docker/new", "cgroup.cpu.time.user") == 2000);
    CHECK(value("cgroup", "docker/new", "cgroup.disk.io.read") == 0); /* no operation yet */

    /* version 2 alone: groups may have any name */
    put_host();
    put_file("sys/fs/cgroup/cgroup.controllers", "cpu io memory pids\n");
    put_group("memory", 3);
    put_group("unified", 4);
    config.wanted[HOST_CGROUP].instances = "*";
    open_and_sample();
    CHECK(count_of("cgroup") == 2);
    CHECK(value("cgroup", "memory", "cgroup.cpu.time.user") == 3000);
    CHECK(value("cgroup", "unified", "cgroup.cpu.time.user") == 4000);
}

/* ---- the kernel's groups: the test makes a group in each tree that allows it */

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

/* A process in these groups computes for ns of CPU time. Returns all CPU time of the process. */
static uint64_t compute(uint64_t ns)
{
    const pid_t parent = getpid();
    const pid_t child = fork();
    struct timespec used = {0};
    struct rusage all = {.ru_minflt = 0};
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
    CHECK(child > 0 && wait4(child, &status, 0, &all) == child && status == 0);
    return ((uint64_t)all.ru_utime.tv_sec + (uint64_t)all.ru_stime.tv_sec) * 1000 * NS_PER_MS +
           ((uint64_t)all.ru_utime.tv_usec + (uint64_t)all.ru_stime.tv_usec) * 1000;
}

TEST(test_real_cgroup)
{
    char path[PATH_MAX], name[64];
    uint64_t user, system, all;

    if (!make_groups()) {
        printf("no control group can be made here: the kernel's groups are not tested\n");
        return;
    }
    all = compute(300 * NS_PER_MS);
    (void)snprintf(name, sizeof(name), "blkin-test-%d", (int)getpid());
    config.root = NULL;
    config.wanted[HOST_CGROUP].instances = name;
    open_and_sample();
    user = value("cgroup", name, "cgroup.cpu.time.user");
    system = value("cgroup", name, "cgroup.cpu.time.system");
    /* without the time before the process joined the group; version 1 counts in ticks */
    CHECK(user != UINT64_MAX && system != UINT64_MAX && user + system >= 200 * NS_PER_MS);
    CHECK(user + system <= all + 1700 * NS_PER_MS);
    for (size_t tree = 0; tree < TREES; tree++) {
        group_path(path, sizeof(path), tree, "");
        for (int64_t end_ms = 0;
             rmdir(path) != 0 && errno == EBUSY && wait_up_to(PATIENCE_MS, &end_ms);)
            continue;
    }
    sample();
    CHECK(count_of("cgroup") == 0 && host_counts(host).ended == 1);
}

CHECK_MAIN_IN_FOLDER
