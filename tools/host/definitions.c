/*
 * The groups and their metrics.
 *
 * SPDX-License-Identifier: BSD-2-Clause
 */
#include "definitions.h"

#include <string.h>

#define COUNTER(name, unit, source) \
    {                               \
        name, unit, true, source    \
    }
#define GAUGE(name, unit, source) \
    {                             \
        name, unit, false, source \
    }

static const struct host_metric cpu[] = {
    COUNTER("system.cpu.time.user", "ns", "/proc/stat user, with guests"),
    COUNTER("system.cpu.time.nice", "ns", "/proc/stat nice, with guests"),
    COUNTER("system.cpu.time.system", "ns", "/proc/stat system"),
    COUNTER("system.cpu.time.idle", "ns", "/proc/stat idle"),
    COUNTER("system.cpu.time.iowait", "ns", "/proc/stat iowait"),
    COUNTER("system.cpu.time.interrupt", "ns", "/proc/stat irq"),
    COUNTER("system.cpu.time.softirq", "ns", "/proc/stat softirq"),
    COUNTER("system.cpu.time.steal", "ns", "/proc/stat steal"),
};

static const struct host_metric memory[] = {
    GAUGE("system.memory.limit", "By", "/proc/meminfo MemTotal"),
    GAUGE("system.linux.memory.available", "By", "/proc/meminfo MemAvailable"),
    GAUGE("system.memory.usage.free", "By", "/proc/meminfo MemFree"),
    GAUGE("system.memory.usage.buffers", "By", "/proc/meminfo Buffers"),
    GAUGE("system.memory.usage.cached", "By", "/proc/meminfo Cached"),
    GAUGE("system.linux.memory.dirty", "By", "/proc/meminfo Dirty"),
    GAUGE("system.linux.memory.writeback", "By", "/proc/meminfo Writeback"),
    GAUGE("system.paging.usage.used", "By", "/proc/meminfo SwapTotal - SwapFree"),
    GAUGE("system.paging.usage.free", "By", "/proc/meminfo SwapFree"),
    COUNTER("system.paging.operations.in", "{page}", "/proc/vmstat pswpin"),
    COUNTER("system.paging.operations.out", "{page}", "/proc/vmstat pswpout"),
    COUNTER("system.paging.faults.major", "{fault}", "/proc/vmstat pgmajfault"),
    COUNTER("system.linux.memory.stalls", "{stall}", "/proc/vmstat allocstall_*"),
    COUNTER("system.linux.memory.oom_kills", "{process}", "/proc/vmstat oom_kill"),
};

static const struct host_metric pressure[] = {
    COUNTER("system.linux.pressure.cpu.some", "ns", "/proc/pressure/cpu some"),
    COUNTER("system.linux.pressure.cpu.full", "ns", "/proc/pressure/cpu full"),
    COUNTER("system.linux.pressure.io.some", "ns", "/proc/pressure/io some"),
    COUNTER("system.linux.pressure.io.full", "ns", "/proc/pressure/io full"),
    COUNTER("system.linux.pressure.memory.some", "ns", "/proc/pressure/memory some"),
    COUNTER("system.linux.pressure.memory.full", "ns", "/proc/pressure/memory full"),
};

static const struct host_metric run_queue[] = {
    GAUGE("system.process.count.running", "{thread}",
          "/proc/stat procs_running, without the reader"),
    GAUGE("system.process.count.blocked", "{thread}", "/proc/stat procs_blocked"),
    COUNTER("system.cpu.context_switches", "{switch}", "/proc/stat ctxt"),
    COUNTER("system.process.created", "{process}", "/proc/stat processes"),
    GAUGE("system.cpu.load_average.1m", "%", "/proc/loadavg; 150 % is 1.50"),
    GAUGE("system.cpu.load_average.5m", "%", "/proc/loadavg"),
    GAUGE("system.cpu.load_average.15m", "%", "/proc/loadavg"),
};

static const struct host_metric disk[] = {
    COUNTER("system.disk.operations.read", "{operation}", "/proc/diskstats 4"),
    COUNTER("system.disk.operations.write", "{operation}", "/proc/diskstats 8"),
    COUNTER("system.disk.io.read", "By", "/proc/diskstats 6"),
    COUNTER("system.disk.io.write", "By", "/proc/diskstats 10"),
    COUNTER("system.disk.operation_time.read", "ns", "/proc/diskstats 7"),
    COUNTER("system.disk.operation_time.write", "ns", "/proc/diskstats 11"),
    COUNTER("system.disk.io_time", "ns", "/proc/diskstats 13: while something was asked of it"),
    COUNTER("system.disk.weighted_io_time", "ns", "/proc/diskstats 14: of all that was asked"),
    GAUGE("system.disk.pending_operations", "{operation}", "/proc/diskstats 12"),
    COUNTER("system.disk.merged.read", "{operation}", "/proc/diskstats 5"),
    COUNTER("system.disk.merged.write", "{operation}", "/proc/diskstats 9"),
    COUNTER("system.disk.operations.discard", "{operation}", "/proc/diskstats 15"),
    COUNTER("system.disk.operation_time.discard", "ns", "/proc/diskstats 18"),
    COUNTER("system.disk.operations.flush", "{operation}", "/proc/diskstats 19"),
    COUNTER("system.disk.operation_time.flush", "ns", "/proc/diskstats 20"),
};

static const struct host_metric network[] = {
    COUNTER("system.network.io.receive", "By", "/proc/net/dev"),
    COUNTER("system.network.io.transmit", "By", "/proc/net/dev"),
    COUNTER("system.network.packet.count.receive", "{packet}", "/proc/net/dev"),
    COUNTER("system.network.packet.count.transmit", "{packet}", "/proc/net/dev"),
    COUNTER("system.network.errors.receive", "{error}", "/proc/net/dev"),
    COUNTER("system.network.errors.transmit", "{error}", "/proc/net/dev"),
    COUNTER("system.network.packet.dropped.receive", "{packet}", "/proc/net/dev"),
    COUNTER("system.network.packet.dropped.transmit", "{packet}", "/proc/net/dev"),
};

static const struct host_metric tcp[] = {
    COUNTER("system.network.tcp.segments.retransmit", "{segment}", "/proc/net/snmp RetransSegs"),
    COUNTER("system.network.tcp.segments.transmit", "{segment}",
            "/proc/net/snmp OutSegs, without those sent again"),
    COUNTER("system.network.tcp.segments.receive", "{segment}", "/proc/net/snmp InSegs"),
    COUNTER("system.network.tcp.errors.receive", "{segment}", "/proc/net/snmp InErrs"),
    COUNTER("system.network.tcp.resets.transmit", "{segment}", "/proc/net/snmp OutRsts"),
    GAUGE("system.network.tcp.connections.established", "{connection}", "/proc/net/snmp CurrEstab"),
    COUNTER("system.network.tcp.connections.opened", "{connection}", "/proc/net/snmp ActiveOpens"),
    COUNTER("system.network.tcp.connections.accepted", "{connection}",
            "/proc/net/snmp PassiveOpens"),
    COUNTER("system.network.tcp.connections.failed", "{connection}", "/proc/net/snmp AttemptFails"),
    COUNTER("system.network.tcp.connections.reset", "{connection}", "/proc/net/snmp EstabResets"),
};

static const struct host_metric process[] = {
    COUNTER("process.cpu.time.user", "ns", "/proc/PID/stat 14"),
    COUNTER("process.cpu.time.system", "ns", "/proc/PID/stat 15"),
    GAUGE("process.memory.usage", "By", "/proc/PID/stat 24: resident"),
    GAUGE("process.memory.virtual", "By", "/proc/PID/stat 23"),
    GAUGE("process.thread.count", "{thread}", "/proc/PID/stat 20"),
    GAUGE("process.unix.file_descriptor.count", "{file_descriptor}", "/proc/PID/fd"),
    COUNTER("process.paging.faults.minor", "{fault}", "/proc/PID/stat 10"),
    COUNTER("process.paging.faults.major", "{fault}", "/proc/PID/stat 12"),
    COUNTER("process.disk.io.read", "By", "/proc/PID/io read_bytes"),
    COUNTER("process.disk.io.write", "By", "/proc/PID/io write_bytes"),
    COUNTER("process.io.read", "By", "/proc/PID/io rchar: of read calls, sockets too"),
    COUNTER("process.io.write", "By", "/proc/PID/io wchar"),
    COUNTER("process.io.calls.read", "{call}", "/proc/PID/io syscr"),
    COUNTER("process.io.calls.write", "{call}", "/proc/PID/io syscw"),
};

static const struct host_metric cgroup[] = {
    COUNTER("cgroup.cpu.time.user", "ns", "cpu.stat user_usec; v1: cpuacct.stat"),
    COUNTER("cgroup.cpu.time.system", "ns", "cpu.stat system_usec; v1: cpuacct.stat"),
    COUNTER("cgroup.cpu.throttled", "ns", "cpu.stat throttled_usec; v1: throttled_time"),
    GAUGE("cgroup.memory.usage", "By", "memory.current; v1: memory.usage_in_bytes"),
    GAUGE("cgroup.process.count", "{task}", "pids.current"),
    COUNTER("cgroup.disk.io.read", "By",
            "io.stat rbytes, of all devices; v1: blkio.throttle.io_service_bytes_recursive"),
    COUNTER("cgroup.disk.io.write", "By", "io.stat wbytes"),
    COUNTER("cgroup.disk.operations.read", "{operation}",
            "io.stat rios; v1: blkio.throttle.io_serviced_recursive"),
    COUNTER("cgroup.disk.operations.write", "{operation}", "io.stat wios"),
    COUNTER("cgroup.pressure.cpu.some", "ns", "cpu.pressure some"),
    COUNTER("cgroup.pressure.cpu.full", "ns", "cpu.pressure full"),
    COUNTER("cgroup.pressure.io.some", "ns", "io.pressure some"),
    COUNTER("cgroup.pressure.io.full", "ns", "io.pressure full"),
    COUNTER("cgroup.pressure.memory.some", "ns", "memory.pressure some"),
    COUNTER("cgroup.pressure.memory.full", "ns", "memory.pressure full"),
};

#define METRICS(array) array, sizeof(array) / sizeof((array)[0])

static const struct host_definition definitions[HOST_KINDS] = {
    [HOST_CPU] = {"cpu", "what the processors did", true, 1000, METRICS(cpu)},
    [HOST_MEMORY] = {"memory", "memory and swap", false, 1000, METRICS(memory)},
    [HOST_PRESSURE] = {"pressure", "time that was waited for a resource", false, 1000,
                       METRICS(pressure)},
    [HOST_RUN_QUEUE] = {"run_queue", "threads that run or wait", false, 1000, METRICS(run_queue)},
    [HOST_DISK] = {"disk", "disks and partitions", true, 1000, METRICS(disk)},
    [HOST_NETWORK] = {"network", "network interfaces", true, 1000, METRICS(network)},
    [HOST_TCP] = {"tcp", "TCP of the network namespace", false, 1000, METRICS(tcp)},
    [HOST_PROCESS] = {"process", "processes that are named", true, 1000, METRICS(process)},
    [HOST_CGROUP] = {"cgroup", "control groups that are named", true, 1000, METRICS(cgroup)},
};

const struct host_definition *host_definition(enum host_kind kind)
{
    return &definitions[kind];
}

enum host_kind host_kind_find(const char *name)
{
    for (int kind = 0; kind < HOST_KINDS; kind++)
        if (strcmp(name, definitions[kind].name) == 0)
            return (enum host_kind)kind;
    return HOST_KINDS;
}

int host_metric_find(enum host_kind kind, uint64_t present, const char *name, size_t length)
{
    const struct host_definition *const definition = &definitions[kind];

    for (size_t i = 0; i < definition->count; i++) {
        const char *known = definition->metrics[i].name;

        if (strncmp(known, name, length) == 0 && known[length] == '\0')
            return present >> i & 1 ? (int)i : -1;
    }
    return -1;
}
