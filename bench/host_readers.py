"""Other readers of the values of `blkin host`: node_exporter, ps, and files read here.

A reading is (began, ended, values). The reader read between these two times of CLOCK_MONOTONIC. values maps (group,
instance, our metric) to (value in our unit, resolution).

SPDX-License-Identifier: BSD-2-Clause
"""
import bisect
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import urllib.request

TICK = 1e9 / os.sysconf("SC_CLK_TCK")
PORT = 9177
COLLECTORS = ("cpu", "stat", "meminfo", "vmstat", "pressure", "loadavg", "diskstats", "netdev", "netstat")


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"LC_ALL": "C"}, **options).stdout


# ---- ours

class Ours:
    """The sampler of `blkin host` at 10 Hz (tests/host/samples.c), beside the others, and then its samples."""

    def __init__(self, path, processes, cgroups):
        self.path = path
        with open(path, "wb") as out:
            self.process = subprocess.Popen([f"{os.environ['BUILD']}/tests/host/samples", processes, cgroups], stdout=out)
        self.samples = {}

    def has_sampled_since(self, when):
        """Returns whether a sample later than `when` was printed. A busy machine may delay it."""
        with open(self.path, "rb") as file:
            file.seek(max(self.path.stat().st_size - 16384, 0))
            lines = file.read().split(b"\n")[1:-1]
        return bool(lines) and json.loads(lines[-1])["monotonic"] > when

    def stop(self):
        """Samples: (group, instance) -> [(read not before, read not after, metrics)]."""
        self.process.terminate()
        self.process.wait()
        offset = time.clock_gettime_ns(time.CLOCK_REALTIME) - now()
        with open(self.path, encoding="utf-8") as lines:
            for line in lines:
                if not line.endswith("\n"):
                    break
                one = json.loads(line)
                samples = self.samples.setdefault((one["group"], one["instance"]), [])
                if not samples or one["monotonic"] > samples[-1][0]:
                    samples.append((one["monotonic"], one["time_us"] * 1000 - offset, one["metrics"]))

    def around(self, key, began, ended):
        """Returns the metric's values from the last sample before `began` to the first after `ended`; None if there
        are none."""
        samples = self.samples.get(key[:2], ())
        first = bisect.bisect_right(samples, began, key=lambda sample: sample[1]) - 1
        last = bisect.bisect_left(samples, ended, key=lambda sample: sample[0])
        if first < 0 or last >= len(samples):
            return None
        values = [sample[2].get(key[2]) for sample in samples[first:last + 1]]
        return None if None in values else values

    def times_around(self, key, began, ended):
        """Returns the times of the samples that around() uses."""
        times = [sample[0] for sample in self.samples[key[:2]]]
        return times[max(bisect.bisect_right(times, began) - 1, 0)], times[min(bisect.bisect_left(times, ended), len(times) - 1)]

    def distance(self, began, ended):
        """Returns the ns from the last sample before to the first after."""
        first, last = self.times_around(("cpu", ""), began, ended)
        return last - first

    def at(self, key, when):
        samples = self.samples[key[:2]]
        i = bisect.bisect_right(samples, when, key=lambda sample: sample[0])
        (before, _, low), (after, _, high) = samples[i - 1], samples[i]
        return low[key[2]] + (high[key[2]] - low[key[2]]) * (when - before) / (after - before)


# ---- node_exporter

CPU = {"user": "user", "nice": "nice", "system": "system", "idle": "idle", "iowait": "iowait", "interrupt": "irq",
       "softirq": "softirq", "steal": "steal"}
DISK = (("operations.read", "reads_completed_total", 1), ("operations.write", "writes_completed_total", 1),
        ("io.read", "read_bytes_total", 1), ("io.write", "written_bytes_total", 1),
        ("operation_time.read", "read_time_seconds_total", 1e9), ("operation_time.write", "write_time_seconds_total", 1e9),
        ("io_time", "io_time_seconds_total", 1e9), ("weighted_io_time", "io_time_weighted_seconds_total", 1e9),
        ("merged.read", "reads_merged_total", 1), ("merged.write", "writes_merged_total", 1),
        ("operations.discard", "discards_completed_total", 1), ("operations.flush", "flush_requests_total", 1))
NETWORK = (("io.{}", "bytes"), ("packet.count.{}", "packets"), ("errors.{}", "errs"), ("packet.dropped.{}", "drop"))


def exported():
    """Maps node_exporter's name and labels, without the device, to group, our metric, factor and resolution."""
    for ours, theirs in CPU.items():
        yield "node_cpu_seconds_total", theirs, ("cpu", f"system.cpu.time.{ours}", 1e9, 2 * TICK)
    for ours, theirs in (("cpu.some", "cpu_waiting"), ("io.some", "io_waiting"), ("io.full", "io_stalled"),
                         ("memory.some", "memory_waiting"), ("memory.full", "memory_stalled")):
        yield f"node_pressure_{theirs}_seconds_total", None, ("pressure", f"system.linux.pressure.{ours}", 1e9, 1000)
    for ours, theirs, factor in DISK:
        yield f"node_disk_{theirs}", None, ("disk", f"system.disk.{ours}", factor, 1e6 if factor > 1 else 0)
    for ours, theirs in NETWORK:
        for way in ("receive", "transmit"):
            yield (f"node_network_{way}_{theirs}_total", None,
                   ("network", "system.network." + ours.format(way), 1, 0))
    for ours, theirs in (("segments.retransmit", "RetransSegs"), ("segments.transmit", "OutSegs"),
                         ("segments.receive", "InSegs"), ("connections.opened", "ActiveOpens"),
                         ("connections.accepted", "PassiveOpens")):
        yield f"node_netstat_Tcp_{theirs}", None, ("tcp", f"system.network.tcp.{ours}", 1, 0)
    for theirs, ours in (("context_switches", "system.cpu.context_switches"), ("forks", "system.process.created")):
        yield f"node_{theirs}_total", None, ("run_queue", ours, 1, 0)
    for ours, theirs in (("system.paging.faults.major", "pgmajfault"), ("system.paging.operations.in", "pswpin"),
                         ("system.paging.operations.out", "pswpout"), ("system.linux.memory.oom_kills", "oom_kill")):
        yield f"node_vmstat_{theirs}", None, ("memory", ours, 1, 0)
    for ours, theirs in (("system.memory.limit", "MemTotal"), ("system.linux.memory.available", "MemAvailable"),
                         ("system.memory.usage.cached", "Cached")):
        yield f"node_memory_{theirs}_bytes", None, ("memory", ours, 1, 0)


class Exporter:
    known = {(name, mode): ours for name, mode, ours in exported()}
    line = re.compile(r"^(node_\w+)(?:\{(.*)\})? (\S+)$")

    def __init__(self):
        self.process = subprocess.Popen(
            ["prometheus-node-exporter", f"--web.listen-address=127.0.0.1:{PORT}", "--web.disable-exporter-metrics",
             "--collector.disable-defaults", "--collector.diskstats.device-exclude=^$", "--no-collector.netdev.netlink",
             *(f"--collector.{name}" for name in COLLECTORS)], stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + 60
        while True:
            try:
                self.scrape()
                return
            except OSError:
                if time.monotonic() > deadline or self.process.poll() is not None:
                    sys.exit("bench-host: prometheus-node-exporter does not answer")
                time.sleep(0.1)

    def scrape(self):
        return urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=30).read().decode()

    def read(self):
        began = now()
        text = self.scrape()
        ended = now()
        values = {}
        for match in map(self.line.match, text.splitlines()):
            if not match:
                continue
            labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
            found = self.known.get((match[1], labels.get("mode")))
            if found:
                group, metric, factor, resolution = found
                key = group, labels.get("device", ""), metric
                value = float(match[3]) * factor
                # the sum over all CPUs; a float has 53 bits
                values[key] = (values.get(key, (0, 0))[0] + value, resolution + 1e-9 * value)
        return began, ended, values

    def cpu_s(self):
        """The CPU time of all its threads, from the scheduler, which is finer than ticks."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e9

    def stop(self):
        self.process.terminate()
        self.process.wait()


# ---- processes

# /proc/PID/stat has the kernel's count of resident pages without the pages that each CPU has not added to it yet.
# These are so many pages each of files, shared and other memory. ps reads /proc/PID/status, which has the sum.
RESIDENT = 3 * max(32, 2 * os.cpu_count()) * os.cpu_count() * os.sysconf("SC_PAGESIZE")


def read_ps(names):
    """names: process -> its instance."""
    began = now()
    text = output_of("ps", "-o", "pid=,rss=,vsz=,nlwp=,min_flt=,maj_flt=", "-p", ",".join(map(str, names)))
    ended = now()
    values = {}
    for pid, *row in (map(int, line.split()) for line in text.splitlines()):
        for metric, factor, value in zip(("memory.usage", "memory.virtual", "thread.count", "paging.faults.minor",
                                          "paging.faults.major"), (1024, 1024, 1, 1, 1), row):
            values["process", names[pid], f"process.{metric}"] = value * factor, RESIDENT if metric == "memory.usage" else 0
    return began, ended, values


# ---- control groups

class Cgroup:
    """A control group of this test, in every hierarchy that allows one; versions 1 and 2."""

    files = (("cpuacct", "cpuacct.stat", {"user": ("cpu.time.user", TICK), "system": ("cpu.time.system", TICK)}),
             ("", "cpu.stat", {"user_usec": ("cpu.time.user", 1000), "system_usec": ("cpu.time.system", 1000),
                               "throttled_usec": ("cpu.throttled", 1000)}),
             ("cpu", "cpu.stat", {"throttled_time": ("cpu.throttled", 1)}),
             ("memory", "memory.usage_in_bytes", {"": ("memory.usage", 1)}), ("", "memory.current", {"": ("memory.usage", 1)}),
             ("pids", "pids.current", {"": ("process.count", 1)}), ("", "pids.current", {"": ("process.count", 1)}),
             ("blkio", "blkio.throttle.io_service_bytes_recursive",
              {"Read": ("disk.io.read", 1), "Write": ("disk.io.write", 1)}),
             ("blkio", "blkio.throttle.io_serviced_recursive",
              {"Read": ("disk.operations.read", 1), "Write": ("disk.operations.write", 1)}),
             ("", "io.stat", {"rbytes": ("disk.io.read", 1), "wbytes": ("disk.io.write", 1),
                              "rios": ("disk.operations.read", 1), "wios": ("disk.operations.write", 1)}),
             *(("", f"{kind}.pressure", {which: (f"pressure.{kind}.{which}", 1000) for which in ("some", "full")})
               for kind in ("cpu", "io", "memory")))

    def __init__(self, name):
        self.name, self.folders = name, {}
        root = pathlib.Path("/sys/fs/cgroup")
        if (root / "cgroup.controllers").exists():
            for controller in ("cpu", "memory", "io", "pids"):
                try:
                    (root / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
                except OSError:
                    pass
        for controller in ("", "cpuacct", "cpu", "memory", "pids", "blkio"):
            folder = root / (controller or ("unified" if (root / "unified").exists() else "")) / name
            if (folder.parent / "cgroup.procs").exists():
                try:
                    folder.mkdir()
                    self.folders[controller] = folder
                except OSError:
                    pass
        for folder in self.folders.values():
            if (folder / "cpu.idle").exists():  # the readers do not wait for a CPU
                (folder / "cpu.idle").write_text("1", encoding="ascii")

    def join(self):
        for folder in self.folders.values():
            (folder / "cgroup.procs").write_text(str(os.getpid()), encoding="ascii")

    def read(self):
        values = {}
        began = now()
        for controller, file, metrics in self.files:
            try:
                text = (self.folders[controller] / file).read_text(encoding="ascii")
            except (KeyError, OSError):
                continue
            found = {}
            for name, value in self.words(file, text):
                if name in metrics:
                    metric, factor = metrics[name]
                    key = "cgroup", self.name, f"cgroup.{metric}"
                    found[key] = found.get(key, (0, 0))[0] + int(value) * factor, TICK if factor == TICK else 0
            values = found | values
        return began, now(), values

    @staticmethod
    def words(file, text):
        for fields in map(str.split, text.splitlines()):
            if file.endswith(".pressure"):
                yield fields[0], fields[-1].split("=")[1]
            elif file == "io.stat":
                yield from (field.split("=") for field in fields[1:])
            elif file.startswith("blkio"):
                if len(fields) == 3:
                    yield fields[1], fields[2]
            else:
                yield (fields[0], fields[1]) if len(fields) == 2 else ("", fields[0])

    def remove(self):
        """Removes the group and ends its processes."""
        deadline = time.monotonic() + 60
        for folder in self.folders.values():
            while folder.exists() and time.monotonic() < deadline:
                for pid in map(int, (folder / "cgroup.procs").read_text(encoding="ascii").split()):
                    try:
                        os.kill(pid, 9)
                    except ProcessLookupError:
                        pass
                try:
                    folder.rmdir()
                except OSError:
                    time.sleep(0.05)
