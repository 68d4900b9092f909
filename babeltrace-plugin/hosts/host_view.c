/* SPDX-License-Identifier: BSD-2-Clause */
#include "host_view.h"

#include <string.h>

#define VIEW_NS_PER_S 1e9
#define NS_AS_MS      1e-6 /* the ms of one ns */

#define CPU(mode) "system.cpu.time." mode
#define CPU_WORK \
    CPU("user") " " CPU("nice") " " CPU("system") " " CPU("interrupt") " " CPU("softirq")
#define CPU_ALL CPU_WORK " " CPU("steal") " " CPU("idle") " " CPU("iowait")
#define CPU_SHARE(is, times)                                                                  \
    {                                                                                         \
        .group = "cpu", .name = is, .unit = "%", .kind = HOST_VIEW_PERCENT, .metrics = times, \
        .by = CPU_ALL                                                                         \
    }

#define VIEW_GAUGE(of, is, in, metric)                                                   \
    {                                                                                    \
        .group = of, .name = is, .unit = in, .kind = HOST_VIEW_GAUGE, .metrics = metric, \
        .is_gauge = true                                                                 \
    }
#define DELTA(of, is, in, metric)                                                       \
    {                                                                                   \
        .group = of, .name = is, .unit = in, .kind = HOST_VIEW_DELTA, .metrics = metric \
    }
#define VIEW_RATE(of, is, in, metric)                                                  \
    {                                                                                  \
        .group = of, .name = is, .unit = in, .kind = HOST_VIEW_RATE, .metrics = metric \
    }
/* A share of the interval. limit: the most, in percent; 0: no limit. */
#define SHARE(of, is, metric, limit)                                                        \
    {                                                                                       \
        .group = of, .name = is, .unit = "%", .kind = HOST_VIEW_PERCENT, .metrics = metric, \
        .most = limit                                                                       \
    }
#define VIEW_WAIT(is, times, operations)                                                        \
    {                                                                                           \
        .group = "disk", .name = is, .unit = "ms", .kind = HOST_VIEW_AVERAGE, .metrics = times, \
        .by = operations, .scale = NS_AS_MS                                                     \
    }

#define DISK_TIME(way)  "system.disk.operation_time." way
#define DISK_COUNT(way) "system.disk.operations." way
#define NET(what)       "system.network." what ".receive system.network." what ".transmit"

static const struct host_view views[] = {
    CPU_SHARE("busy", CPU_WORK " " CPU("steal")),
    CPU_SHARE("user", CPU("user") " " CPU("nice")),
    CPU_SHARE("system", CPU("system") " " CPU("interrupt") " " CPU("softirq")),
    CPU_SHARE("iowait", CPU("iowait")),
    CPU_SHARE("steal", CPU("steal")),
    CPU_SHARE("idle", CPU("idle")),

    VIEW_GAUGE("memory", "available", "By", "system.linux.memory.available"),
    {.group = "memory",
     .name = "available_share",
     .unit = "%",
     .kind = HOST_VIEW_PERCENT,
     .metrics = "system.linux.memory.available",
     .by = "system.memory.limit",
     .is_gauge = true},
    VIEW_GAUGE("memory", "dirty", "By", "system.linux.memory.dirty"),
    VIEW_GAUGE("memory", "writeback", "By", "system.linux.memory.writeback"),
    VIEW_RATE("memory", "swap_in", "{page}/s", "system.paging.operations.in"),
    VIEW_RATE("memory", "swap_out", "{page}/s", "system.paging.operations.out"),
    VIEW_RATE("memory", "major_faults", "{fault}/s", "system.paging.faults.major"),
    VIEW_RATE("memory", "stalls", "{stall}/s", "system.linux.memory.stalls"),
    DELTA("memory", "oom_kills", "{process}", "system.linux.memory.oom_kills"),

    SHARE("pressure", "cpu", "system.linux.pressure.cpu.some", 100),
    SHARE("pressure", "io", "system.linux.pressure.io.some", 100),
    SHARE("pressure", "memory", "system.linux.pressure.memory.some", 100),
    SHARE("pressure", "io_full", "system.linux.pressure.io.full", 100),
    SHARE("pressure", "memory_full", "system.linux.pressure.memory.full", 100),

    VIEW_GAUGE("run_queue", "running", "{thread}", "system.process.count.running"),
    VIEW_GAUGE("run_queue", "blocked", "{thread}", "system.process.count.blocked"),
    VIEW_RATE("run_queue", "switches", "{switch}/s", "system.cpu.context_switches"),
    VIEW_RATE("run_queue", "created", "{process}/s", "system.process.created"),
    VIEW_GAUGE("run_queue", "load_1m", "%", "system.cpu.load_average.1m"),

    SHARE("disk", "busy", "system.disk.io_time", 100),
    {.group = "disk",
     .name = "queue",
     .unit = "{operation}",
     .kind = HOST_VIEW_AVERAGE,
     .metrics = "system.disk.weighted_io_time"},
    VIEW_WAIT("wait", DISK_TIME("read") " " DISK_TIME("write"),
              DISK_COUNT("read") " " DISK_COUNT("write")),
    VIEW_WAIT("read_wait", DISK_TIME("read"), DISK_COUNT("read")),
    VIEW_WAIT("write_wait", DISK_TIME("write"), DISK_COUNT("write")),
    VIEW_RATE("disk", "reads", "{operation}/s", DISK_COUNT("read")),
    VIEW_RATE("disk", "writes", "{operation}/s", DISK_COUNT("write")),
    VIEW_RATE("disk", "read", "By/s", "system.disk.io.read"),
    VIEW_RATE("disk", "written", "By/s", "system.disk.io.write"),
    VIEW_GAUGE("disk", "pending", "{operation}", "system.disk.pending_operations"),

    VIEW_RATE("network", "received", "By/s", "system.network.io.receive"),
    VIEW_RATE("network", "sent", "By/s", "system.network.io.transmit"),
    VIEW_RATE("network", "packets_received", "{packet}/s", "system.network.packet.count.receive"),
    VIEW_RATE("network", "packets_sent", "{packet}/s", "system.network.packet.count.transmit"),
    VIEW_RATE("network", "errors", "{error}/s", NET("errors")),
    VIEW_RATE("network", "dropped", "{packet}/s", NET("packet.dropped")),

    VIEW_RATE("tcp", "retransmits", "{segment}/s", "system.network.tcp.segments.retransmit"),
    {.group = "tcp",
     .name = "retransmit_share",
     .unit = "%",
     .kind = HOST_VIEW_PERCENT,
     .metrics = "system.network.tcp.segments.retransmit",
     /* the kernel does not count a segment that is sent again as transmitted */
     .by = "system.network.tcp.segments.transmit system.network.tcp.segments.retransmit"},
    VIEW_GAUGE("tcp", "established", "{connection}", "system.network.tcp.connections.established"),
    VIEW_RATE("tcp", "opened", "{connection}/s", "system.network.tcp.connections.opened"),
    VIEW_RATE("tcp", "accepted", "{connection}/s", "system.network.tcp.connections.accepted"),
    VIEW_RATE("tcp", "failed", "{connection}/s", "system.network.tcp.connections.failed"),

    SHARE("process", "cpu", "process.cpu.time.user process.cpu.time.system", 0),
    SHARE("process", "user", "process.cpu.time.user", 0),
    SHARE("process", "system", "process.cpu.time.system", 0),
    VIEW_GAUGE("process", "resident", "By", "process.memory.usage"),
    VIEW_GAUGE("process", "virtual", "By", "process.memory.virtual"),
    VIEW_GAUGE("process", "threads", "{thread}", "process.thread.count"),
    VIEW_GAUGE("process", "descriptors", "{file_descriptor}", "process.unix.file_descriptor.count"),
    VIEW_RATE("process", "minor_faults", "{fault}/s", "process.paging.faults.minor"),
    VIEW_RATE("process", "major_faults", "{fault}/s", "process.paging.faults.major"),
    VIEW_RATE("process", "read", "By/s", "process.disk.io.read"),
    VIEW_RATE("process", "written", "By/s", "process.disk.io.write"),

    SHARE("cgroup", "cpu", "cgroup.cpu.time.user cgroup.cpu.time.system", 0),
    SHARE("cgroup", "throttled", "cgroup.cpu.throttled", 0),
    VIEW_GAUGE("cgroup", "memory", "By", "cgroup.memory.usage"),
    VIEW_GAUGE("cgroup", "tasks", "{task}", "cgroup.process.count"),
    VIEW_RATE("cgroup", "read", "By/s", "cgroup.disk.io.read"),
    VIEW_RATE("cgroup", "written", "By/s", "cgroup.disk.io.write"),
    SHARE("cgroup", "cpu_pressure", "cgroup.pressure.cpu.some", 100),
    SHARE("cgroup", "io_pressure", "cgroup.pressure.io.some", 100),
    SHARE("cgroup", "memory_pressure", "cgroup.pressure.memory.some", 100),
};
#define VIEWS (sizeof(views) / sizeof(views[0]))

const struct host_view *host_views(size_t *count)
{
    *count = VIEWS;
    return views;
}

const struct host_view *host_view_find(const char *group, const char *name)
{
    for (size_t i = 0; i < VIEWS; i++)
        if (strcmp(views[i].group, group) == 0 && strcmp(views[i].name, name) == 0)
            return &views[i];
    return NULL;
}

/* Adds gauges, or the growth of counters. */
static bool add_up(const struct host_interval *interval, const char *names, bool is_gauge,
                   double *sum)
{
    *sum = 0;
    for (size_t length; *names; names += length + (names[length] == ' ')) {
        int i;

        length = strcspn(names, " ");
        i = interval->find(interval->context, names, length);
        if (i < 0)
            return false;
        if (is_gauge) {
            *sum += (double)interval->after[i];
            continue;
        }
        if (!interval->before || interval->after[i] < interval->before[i])
            return false;
        *sum += (double)(interval->after[i] - interval->before[i]);
    }
    return true;
}

bool host_view_value(const struct host_view *view, const struct host_interval *interval,
                     double *value)
{
    const double ns = interval->to > interval->from ? (double)(interval->to - interval->from) : 0;
    double by = 1;

    if (!add_up(interval, view->metrics, view->is_gauge, value))
        return false;
    if (view->by) {
        if (!add_up(interval, view->by, view->is_gauge, &by))
            return false;
    } else if (view->kind == HOST_VIEW_RATE) {
        by = ns / VIEW_NS_PER_S;
    } else if (!view->is_gauge && view->kind != HOST_VIEW_DELTA) {
        by = ns;
    }
    if (by <= 0)
        return false;
    *value *=
        (view->scale > 0 ? view->scale : 1) * (view->kind == HOST_VIEW_PERCENT ? 100 : 1) / by;
    if (view->most > 0 && *value > view->most)
        *value = view->most;
    return true;
}
