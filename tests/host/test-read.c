/*
 * The samples of /proc and /sys, from folders with contents that a kernel writes, or that no kernel
 * writes.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "host_folder.h"

TEST(test_values)
{
    open_and_sample();
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

    /* values of the last time do not replace the current ones */
    put_file("proc/net/snmp", "Tcp: RtoAlgorithm RtoMin RtoMax MaxConn ActiveOpens PassiveOpens "
                              "AttemptFails EstabResets CurrEstab InSegs OutSegs RetransSegs\n"
                              "Tcp: 1 200 120000 -1 11 12 13 14 15 16 17 28\n");
    put_file("proc/vmstat",
             "%080d\npswpin 111111111111\npswpout 12\nallocstall_dma 1\n"
             "pgmajfault 13\noom_kill 2\n",
             0);
    sample();
    CHECK(value("tcp", "", "system.network.tcp.segments.retransmit") == 28);
    CHECK(value("memory", "", "system.paging.operations.in") == 111111111111);
    CHECK(value("memory", "", "system.linux.memory.oom_kills") == 2);
}

TEST(test_each_cpu)
{
    config.wanted[HOST_CPU].instances = "each";
    open_and_sample();
    CHECK(count_of("cpu") == 3);
    CHECK(value("cpu", "cpu1", "system.cpu.time.user") == 400 * NS_PER_MS);
    /* iowait goes back a little, as the kernel's counter may: this is no restart. cpu1 is removed.
     */
    put_file("proc/stat", "cpu  100 20 30 4001 49 6 7 8\ncpu0 60 10 20 2000 29 3 4 5\n");
    sample();
    CHECK(count_of("cpu") == 2);
    CHECK(value("cpu", "", "system.cpu.time.iowait") == 500 * NS_PER_MS);
    CHECK(value("cpu", "", "system.cpu.time.idle") == 40010 * NS_PER_MS);
    CHECK(host_counts(host).ended == 1);
}

TEST(test_disks_come_and_go)
{
    uint64_t generation;
    uint32_t slot;

    config.wanted[HOST_DISK].instances = "!loop*,!*1";
    open_host();
    put_file("proc/diskstats", "8 0 sda 1 0 0 0 0 0 0 0 0 0 0\n8 1 sda1 1 0 0 0 0 0 0 0 0 0 0\n"
                               "8 16 sdb 0 0 0 0 0 0 0 0 0 0 0\n7 0 loop0 1 0 0 0 0 0 0 0 0 0 0\n");
    sample();
    CHECK(count_of("disk") == 2 && find("disk", "sda") && find("disk", "sdb"));
    slot = find("disk", "sda")->slot;
    generation = find("disk", "sda")->generation;

    put_file("proc/diskstats", "8 16 sdb 5 0 0 0 0 0 0 0 0 0 0\n8 32 sdc 6 0 0 0 0 0 0 0 0 0 0\n");
    sample();
    CHECK(count_of("disk") == 2);
    CHECK(value("disk", "sdb", "system.disk.operations.read") == 5);
    CHECK(host_counts(host).ended == 1);

    /* another order; sda is back, but is another disk */
    put_file("proc/diskstats", "8 32 sdc 7 0 0 0 0 0 0 0 0 0 0\n8 0 sda 8 0 0 0 0 0 0 0 0 0 0\n"
                               "8 16 sdb 9 0 0 0 0 0 0 0 0 0 0\n8 16 sdb 9 0 0 0 0 0 0 0 0 0 0\n");
    sample();
    CHECK(count_of("disk") == 3);
    CHECK(value("disk", "sda", "system.disk.operations.read") == 8);
    CHECK(value("disk", "sdc", "system.disk.operations.read") == 7);
    CHECK(find("disk", "sda") &&
          (find("disk", "sda")->slot != slot || find("disk", "sda")->generation != generation));
    CHECK(host_counts(host).not_understood == 1); /* the same name twice */
}

/* More disks than slots. */
TEST(test_many_disks)
{
    static char lines[400 * 64];
    size_t length = 0;

    for (int i = 0; i < 400; i++)
        length += (size_t)snprintf(lines + length, sizeof(lines) - length,
                                   "8 %d sd%d %d 0 0 0 0 0 0 0 0 0 0\n", i, i, i + 1);
    put_file("proc/diskstats", "%s", lines);
    open_and_sample();
    CHECK(count_of("disk") == 256);
    CHECK(value("disk", "sd255", "system.disk.operations.read") == 256);
    CHECK(host_counts(host).no_room == 400 - 256);

    config.wanted[HOST_DISK].instances = "sd399";
    open_and_sample();
    CHECK(count_of("disk") == 1 && value("disk", "sd399", "system.disk.operations.read") == 400);
    CHECK(host_counts(host).no_room == 0);
}

/* The kernel prints only the lowest 32 bits of times. */
TEST(test_wrap)
{
    open_host();
    put_file("proc/diskstats", "8 0 sda 10 0 80 4294967000 20 0 160 5 0 4294967290 100\n");
    sample();
    put_file("proc/diskstats", "8 0 sda 11 0 88 4 21 0 168 6 0 10 4294967295\n");
    sample();
    CHECK(value("disk", "sda", "system.disk.operation_time.read") ==
          (UINT64_C(4294967296) + 4) * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.io_time") == (UINT64_C(4294967296) + 10) * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.operation_time.write") == 6 * NS_PER_MS);
    put_file("proc/diskstats", "8 0 sda 12 0 88 2 22 0 168 6 0 5 4\n");
    sample();
    /* a small step back is no wrap */
    CHECK(value("disk", "sda", "system.disk.operation_time.read") ==
          (UINT64_C(4294967296) + 2) * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.weighted_io_time") ==
          (UINT64_C(4294967296) + 4) * NS_PER_MS);
    /* another disk of this name: its operations are fewer */
    put_file("proc/diskstats", "8 0 sda 1 0 8 7 0 0 0 0 0 8 9\n");
    sample();
    CHECK(value("disk", "sda", "system.disk.operation_time.read") == 7 * NS_PER_MS);
    CHECK(value("disk", "sda", "system.disk.io_time") == 8 * NS_PER_MS);
    /* the maximum, and more than that */
    put_file("proc/diskstats", "8 0 sda 18446744073709551615 0 18446744073709551615 1 1 0 0 0 0 8 "
                               "9\n8 1 sda1 18446744073709551616 0 1 1 1 0 0 0 0 8 9\n");
    sample();
    CHECK(value("disk", "sda", "system.disk.operations.read") == UINT64_MAX);
    CHECK(find("disk", "sda") && !find("disk", "sda1"));
    CHECK(host_counts(host).not_understood == 1);
}

TEST(test_missing_files)
{
    remove_tree("proc/pressure");
    remove_tree("proc/vmstat");
    remove_tree("proc/net");
    open_and_sample();
    CHECK(!find("pressure", "") && !find("tcp", "") && count_of("network") == 0);
    CHECK(find("cpu", "") && count_of("disk") == 2);
    CHECK(value("memory", "", "system.memory.limit") == 1000 * 1024);
    CHECK(value("memory", "", "system.paging.operations.in") == UINT64_MAX);
}

TEST(test_odd_names)
{
    char name[400];

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
    open_and_sample();
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
}

TEST(test_processes)
{
    put_process(10, "redis-server");
    put_process(11, "a-very-long-nam"); /* the kernel's name is cut */
    put_process(12, "postgres");
    put_process(13, "postgres");
    put_process(14, "nginx");
    put_file("sys/fs/cgroup/cgroup.procs", "1\n");
    put_file("sys/fs/cgroup/system.slice/nginx.service/cgroup.procs", "14\n");
    put_file("sys/fs/cgroup/system.slice/nginx.service/worker/cgroup.procs", "12\n999\nx\n");
    config.wanted[HOST_PROCESS].instances =
        "redis*, a-very-long-name-of-a-command ,pid:13,unit:nginx.service,pid:4000000";
    open_and_sample();
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
}

TEST(test_many_processes)
{
    for (unsigned pid = 1; pid < MANY_PROCESSES; pid++) {
        char path[64];

        (void)snprintf(path, sizeof(path), "proc/%u/stat", pid);
        put_file(path, "%u (crowd) S 1\n", pid);
    }
    put_process(MANY_PROCESSES, "wanted");
    config.wanted[HOST_PROCESS].instances = "wanted";
    open_and_sample();
    CHECK(count_of("process") == 1 && find("process", "wanted[5000]"));
    CHECK(host_counts(host).no_room == 0);

    config.wanted[HOST_PROCESS].instances = "*";
    open_and_sample();
    CHECK(count_of("process") <= 128);
    CHECK(host_counts(host).no_room == MANY_PROCESSES - 128);
}

/* A real process: after its end it is not sampled, and its missing files are no fault. */
TEST(test_dying_process)
{
    int pipes[2];
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
    open_and_sample();
    CHECK(value("process", name, "process.thread.count") == 1);
    CHECK(value("process", name, "process.unix.file_descriptor.count") >= 4);
    CHECK(value("process", name, "process.memory.usage") > 0);
    CHECK(kill(child, SIGKILL) == 0 && waitpid(child, NULL, 0) == child);
    sample();
    CHECK(count_of("process") == 0 && find("cpu", ""));
    CHECK(host_counts(host).ended == 1 && host_counts(host).unreadable == 0);
    close(pipes[0]);
    close(pipes[1]);
}

TEST(test_times)
{
    uint64_t first;

    for (int kind = 0; kind < HOST_KINDS; kind++)
        config.wanted[kind].period_ms = 0;
    config.wanted[HOST_CPU].period_ms = 100;
    config.wanted[HOST_DISK].period_ms = 1000;
    open_host();
    first = host_next(host);
    CHECK(first % (100 * NS_PER_MS) == 0);
    seen_count = 0;
    host_sample(host, first - 1, see, NULL);
    CHECK(seen_count == 0);
    for (uint64_t i = 0; i < 20; i++) { /* two seconds, which need not begin at a full second */
        CHECK(host_next(host) == first + i * 100 * NS_PER_MS);
        host_sample(host, host_next(host), see, NULL);
    }
    CHECK(count_of("cpu") == 20 && count_of("disk") == 4 && host_counts(host).skipped == 0);
    /* a late call: one sample, and the next one at the next multiple of the period */
    seen_count = 0;
    host_sample(host, first + 2399 * NS_PER_MS, see, NULL);
    CHECK(count_of("cpu") == 1 && host_counts(host).skipped == 3);
    CHECK(host_next(host) == first + 2400 * NS_PER_MS);
}

TEST(test_configuration)
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
        {HOST_DISK, 1000, "vda,,vdb",
         "disk: expected names separated by commas, got an empty name"},
        {HOST_PROCESS, 1000, "pid:0",
         "process: expected pid:NUMBER of 1 to 4194304, got \"pid:0\""},
        {HOST_PROCESS, 1000, "pid:x",
         "process: expected pid:NUMBER of 1 to 4194304, got \"pid:x\""},
    };
    struct error error;

    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        reset_config();
        config.wanted[bad[i].kind].period_ms = bad[i].period_ms;
        config.wanted[bad[i].kind].instances = bad[i].instances;
        CHECK(host_open(&config, &error) == NULL);
        CHECK_TEXT(error.text, bad[i].says);
    }
    reset_config();
    config.root = "/dev/null/nowhere";
    CHECK(host_open(&config, &error) == NULL);
    CHECK_TEXT(error.text, "/dev/null/nowhere: expected a folder with proc in it: Not a directory");
}

/* Changes bytes of a file at random, and sometimes also cuts the file: see() checks each sample. */
TEST(test_broken)
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
    static char bytes[4096];
    char path[PATH_MAX + 64];

    config.wanted[HOST_CPU].instances = "each";
    config.wanted[HOST_DISK].instances = "*";
    config.wanted[HOST_PROCESS].instances = "*";
    config.wanted[HOST_CGROUP].instances = "*";
    srand(1);
    for (int turn = 0; turn < MUTATIONS; turn++) {
        const char *const name = files[rand() % (int)(sizeof(files) / sizeof(files[0]))];
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
        open_and_sample();
        for (int i = 0; i < 4 && length > 0; i++)
            bytes[(size_t)rand() % length] = "\n :()=9-\xff"[rand() % 9];
        if (rand() % 4 == 0)
            length = (size_t)rand() % (length + 1);
        file = fopen(path, "w");
        CHECK(file && fwrite(bytes, 1, length, file) == length && fclose(file) == 0);
        sample();
    }
}

/* A long line of nonsense is left out, and the next line is read. The read of an endless file ends.
 */
TEST(test_long_lines)
{
    /* the end of the line looks like a line */
    static const char rest[] = "8 9 sdz 1 0 0 0 0 0 0 0 0 0 0";
    const size_t length = 1 << 17;
    char *const line = malloc(length + sizeof(rest));
    char path[PATH_MAX + 64];

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
    open_and_sample();
    CHECK(value("disk", "sda", "system.disk.operations.read") == 1);
    CHECK(value("disk", "sdb", "system.disk.operations.read") == 2);
    CHECK(!find("disk", "sdz"));
    CHECK(count_of("network") == 0 && !find("tcp", ""));
    CHECK(host_counts(host).not_understood >= 2 && host_counts(host).unreadable >= 1);
    free(line);
}

CHECK_MAIN_IN_FOLDER
