"""Who else reads what `blkin host` reads: node_exporter, sysstat (sadc, pidstat), ps, and files read here.

A reading is (began, ended, values): between these two times of CLOCK_MONOTONIC it was read, and values are
(group, instance, our metric) -> (value in our unit, resolution). What a reader has as a rate is of two readings.

SPDX-License-Identifier: BSD-2-Clause
"""
import bisect
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import time
import urllib.request

TICK = 1e9 / os.sysconf("SC_CLK_TCK")
PORT = 9177
COLLECTORS = ("cpu", "stat", "meminfo", "vmstat", "pressure", "loadavg", "diskstats", "netdev", "netstat")


def now():
    return time.clock_gettime_ns(time.CLOCK_MONOTONIC)


def output_of(*command, **options):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"S_TIME_FORMAT": "ISO", "LC_ALL": "C"}, **options).stdout


# ---- ours

class Ours:
    """The sampler of `blkin host` at 10 Hz (tests/host/samples.c), beside the others, and then its samples."""

    def __init__(self, path, processes, cgroups):
        self.path = path
        with open(path, "wb") as out:
            self.process = subprocess.Popen([f"{os.environ['BUILD']}/tests/host/samples", processes, cgroups], stdout=out)
        self.samples = {}

    def has_sampled_since(self, when):
        """Has it printed a sample of later than that? A busy machine may let it wait."""
        with open(self.path, "rb") as file:
            file.seek(max(self.path.stat().st_size - 16384, 0))
            lines = file.read().split(b"\n")[1:-1]
        return bool(lines) and json.loads(lines[-1])["monotonic"] > when

    def stop(self):
        """Samples: (group, instance) -> [(read not before, read not after, metrics, views)]."""
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
                    samples.append((one["monotonic"], one["time_us"] * 1000 - offset, one["metrics"], one["views"]))

    def around(self, key, began, ended):
        """The metric's values from the last sample that was read before that, to the first after; None: it has none."""
        samples = self.samples.get(key[:2], ())
        first = bisect.bisect_right(samples, began, key=lambda sample: sample[1]) - 1
        last = bisect.bisect_left(samples, ended, key=lambda sample: sample[0])
        if first < 0 or last >= len(samples):
            return None
        values = [sample[2].get(key[2]) for sample in samples[first:last + 1]]
        return None if None in values else values

    def times_around(self, key, began, ended):
        """The times that around() has its values of."""
        times = [sample[0] for sample in self.samples[key[:2]]]
        return times[max(bisect.bisect_right(times, began) - 1, 0)], times[min(bisect.bisect_left(times, ended), len(times) - 1)]

    def distance(self, began, ended):
        """ns from the last sample before to the first after."""
        first, last = self.times_around(("cpu", ""), began, ended)
        return last - first

    def at(self, key, when):
        samples = self.samples[key[:2]]
        i = bisect.bisect_right(samples, when, key=lambda sample: sample[0])
        (before, _, low, _), (after, _, high, _) = samples[i - 1], samples[i]
        return low[key[2]] + (high[key[2]] - low[key[2]]) * (when - before) / (after - before)

    def mean(self, key, began, ended):
        """Of a view, whose values are each of the time since the sample before."""
        total = weights = 0
        samples = self.samples[key[:2]]
        for before, sample in zip(samples, samples[1:]):
            weight = min(sample[0], ended) - max(before[0], began)
            if weight > 0 and key[2] in sample[3]:
                total += weight * sample[3][key[2]]
                weights += weight
        return total / weights if weights else None


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
    """node_exporter's name and labels but for the device -> group, our metric, factor, resolution."""
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
                # of all CPUs; a float has 53 bits
                values[key] = (values.get(key, (0, 0))[0] + value, resolution + 1e-9 * value)
        return began, ended, values

    def cpu_s(self):
        """Of all its threads, from the scheduler: finer than ticks."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e9

    def stop(self):
        self.process.terminate()
        self.process.wait()


# ---- sysstat

ATTEMPTS = 10
QUICK = 3e7
SECTOR = 512
MS = 1e6
RAW = {  # of `sadf -r`: the column that says what an instance is called, ours, and columns: our metric, factor, resolution
    "CPU": ("cpu", {"%usr": ("user", TICK, 0), "%nice": ("nice", TICK, 0), "%sys": ("system", TICK, 0),
                    "%iowait": ("iowait", TICK, 0), "%steal": ("steal", TICK, 0), "%irq": ("interrupt", TICK, 0),
                    "%soft": ("softirq", TICK, 0), "%idle": ("idle", TICK, 0)}, "system.cpu.time."),
    "DEV": ("disk", {"rkB/s": ("io.read", SECTOR, 0), "wkB/s": ("io.write", SECTOR, 0),
                     "rd_ticks": ("operation_time.read", MS, MS), "wr_ticks": ("operation_time.write", MS, MS),
                     "tot_ticks": ("io_time", MS, MS), "aqu-sz": ("weighted_io_time", MS, MS)}, "system.disk."),
    "IFACE": ("network", {"rxpck/s": ("packet.count.receive", 1, 0), "txpck/s": ("packet.count.transmit", 1, 0),
                          "rxkB/s": ("io.receive", 1, 0), "txkB/s": ("io.transmit", 1, 0),
                          "rxerr/s": ("errors.receive", 1, 0), "txerr/s": ("errors.transmit", 1, 0),
                          "rxdrop/s": ("packet.dropped.receive", 1, 0),
                          "txdrop/s": ("packet.dropped.transmit", 1, 0)}, "system.network."),
}
RAW_SINGLE = {
    "proc/s": ("run_queue", "system.process.created", 1), "cswch/s": ("run_queue", "system.cpu.context_switches", 1),
    "pswpin/s": ("memory", "system.paging.operations.in", 1), "pswpout/s": ("memory", "system.paging.operations.out", 1),
    "majflt/s": ("memory", "system.paging.faults.major", 1),
    "active/s": ("tcp", "system.network.tcp.connections.opened", 1),
    "passive/s": ("tcp", "system.network.tcp.connections.accepted", 1),
    "iseg/s": ("tcp", "system.network.tcp.segments.receive", 1), "oseg/s": ("tcp", "system.network.tcp.segments.transmit", 1),
    "atmptf/s": ("tcp", "system.network.tcp.connections.failed", 1),
    "estres/s": ("tcp", "system.network.tcp.connections.reset", 1),
    "retrans/s": ("tcp", "system.network.tcp.segments.retransmit", 1),
    "isegerr/s": ("tcp", "system.network.tcp.errors.receive", 1), "orsts/s": ("tcp", "system.network.tcp.resets.transmit", 1),
    "%scpu": ("pressure", "system.linux.pressure.cpu.some", 1000), "%sio": ("pressure", "system.linux.pressure.io.some", 1000),
    "%fio": ("pressure", "system.linux.pressure.io.full", 1000),
    "%smem": ("pressure", "system.linux.pressure.memory.some", 1000),
    "%fmem": ("pressure", "system.linux.pressure.memory.full", 1000),
}


class Sysstat:
    """sadc appends a record to its file, as it does when cron runs it; sadf and sar compute from two."""

    def __init__(self, path):
        self.path = path
        self.sadc = next(path for path in ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc") if os.path.exists(path))
        self.times = []

    def record(self):
        """Once more if it had to wait for a CPU: then it is not known when it read."""
        before = self.path.read_bytes() if self.path.exists() else b""
        for _ in range(ATTEMPTS):
            self.path.unlink(missing_ok=True)
            if before:
                self.path.write_bytes(before)
            began = now()
            subprocess.run([self.sadc, "-S", "XALL", "1", "1", self.path], check=True)
            ended = now()
            if ended - began < QUICK:
                break
        self.times.append((began, ended))

    def readings(self):
        """The counters of both records, as they are in its file."""
        found = ({}, {})
        for kinds in (("-A",), ("-q", "PSI")):
            for line in output_of("sadf", "-r", self.path, "--", *kinds).splitlines():
                fields = [field.strip() for field in line.split(";")]
                head = next((field for field in fields[1:6] if field in RAW), None)
                instance = fields[fields.index(head) + 1] if head else ""
                if head == "CPU" and instance != "-1":
                    continue  # each CPU
                group, columns, prefix = RAW.get(head, ("", {}, ""))
                for i, field in enumerate(fields[:-2]):
                    if field in columns:
                        metric, factor, resolution = columns[field]
                        key = group, "" if head == "CPU" else instance, prefix + metric
                    elif not head and field in RAW_SINGLE:
                        group, metric, factor = RAW_SINGLE[field]
                        key, resolution = (group, "", metric), 0
                    else:
                        continue
                    for values, text in zip(found, fields[i + 1:i + 3]):
                        values[key] = float(text) * factor, resolution
        return [(*times, values) for times, values in zip(self.times, found)]

    def figures(self):
        """What `sar` would print of the time between: (group, instance, our view) -> (value, what its last digit is worth)."""
        said = json.loads(output_of("sadf", "-j", self.path, "--", "-A"))["sysstat"]["hosts"][0]["statistics"][-1]
        cpu = next(one for one in said["cpu-load"] if one["cpu"] == "all")
        found = {("cpu", "", "user"): cpu["usr"] + cpu["nice"], ("cpu", "", "system"): cpu["sys"] + cpu["irq"] + cpu["soft"],
                 ("cpu", "", "iowait"): cpu["iowait"], ("cpu", "", "steal"): cpu["steal"], ("cpu", "", "idle"): cpu["idle"],
                 ("run_queue", "", "switches"): said["process-and-context-switch"]["cswch"],
                 ("run_queue", "", "created"): said["process-and-context-switch"]["proc"]}
        for disk in said.get("disk", ()):
            at = "disk", disk["disk-device"]
            found |= {(*at, "busy"): disk["util-percent"], (*at, "queue"): disk["aqu-sz"],
                      (*at, "written"): disk["wkB"] * 1024, (*at, "read"): disk["rkB"] * 1024}
        for net in said["network"]["net-dev"]:
            at = "network", net["iface"]
            found |= {(*at, "received"): net["rxkB"] * 1024, (*at, "sent"): net["txkB"] * 1024,
                      (*at, "packets_received"): net["rxpck"], (*at, "packets_sent"): net["txpck"]}
        # hundredths are printed, of kB where bytes are counted
        return {key: (value, 0.01 * (1024 if key[2] in ("written", "read", "received", "sent") else 1))
                for key, value in found.items()}


# ---- processes

class Pidstat:
    """Rates of so many seconds, and gauges at their end."""

    columns = {"%usr": ("process.cpu.time.user", 1e7), "%system": ("process.cpu.time.system", 1e7),
               "minflt/s": ("process.paging.faults.minor", 1), "majflt/s": ("process.paging.faults.major", 1),
               "kB_rd/s": ("process.disk.io.read", 1024), "kB_wr/s": ("process.disk.io.write", 1024)}
    gauges = {"VSZ": ("process.memory.virtual", 1024), "RSS": ("process.memory.usage", 1024),
              "threads": ("process.thread.count", 1), "fd-nr": ("process.unix.file_descriptor.count", 1)}

    def __init__(self, pids, seconds):
        self.seconds, self.began, self.text, self.ended = seconds, now(), "", 0
        self.process = subprocess.Popen(
            ["pidstat", "-h", "-u", "-r", "-d", "-v", "-p", ",".join(map(str, pids)), str(seconds), "1"],
            stdout=subprocess.PIPE, text=True, env=os.environ | {"S_TIME_FORMAT": "ISO", "LC_ALL": "C"})
        self.reader = threading.Thread(target=self.wait)
        self.reader.start()

    def wait(self):
        self.text, self.ended = self.process.communicate()[0], now()

    def growth(self):
        """((began, ended) of both readings, key -> (growth, resolution), key -> (gauge, 0))."""
        self.reader.join()
        text, ended, length = self.text, self.ended, int(self.seconds * 1e9)
        growth, gauges, names = {}, {}, ()
        for fields in map(str.split, text.splitlines()):
            if fields[:1] == ["#"]:
                names = fields[1:]
            elif names and len(fields) == len(names):
                row = dict(zip(names, fields))
                at = "process", f"{row['Command']}[{row['PID']}]"
                for name, (metric, factor) in self.columns.items():
                    # hundredths are printed, and a reading has whole ticks
                    growth[(*at, metric)] = (float(row[name]) * factor * self.seconds,
                                             0.005 * factor * self.seconds + (2 * TICK if name[0] == "%" else 0))
                for name, (metric, factor) in self.gauges.items():
                    gauges[(*at, metric)] = (float(row[name]) * factor, 0)
        # it begins when it was started, or as much later as it ended late
        return ((self.began, ended - length), (self.began + length, ended)), growth, gauges


# The kernel's count of resident pages, as it is in /proc/PID/stat, lacks what each CPU has not added to it yet: of files,
# of shared and of other memory so many pages each. ps reads /proc/PID/status, which has the sum.
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
    """One of our own, in every hierarchy that lets us make one; version 1 and 2."""

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
            if (folder / "cpu.idle").exists():  # who reads does not wait for a CPU
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
        """And what still runs in it."""
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
