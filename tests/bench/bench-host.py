#!/usr/bin/env python3
"""What `blkin host` reads, beside what prometheus-node-exporter and sysstat read in the same seconds, and at what cost.

usage: bench-host.py [--seconds N]

Loads: stress-ng (CPU and memory), fio (disk), iperf3 (over a pair of interfaces and TCP); each for N seconds (20).
Prints NAME VALUE UNIT SPREAD TARGET ANCHOR, with tabs. Every counter is read by node_exporter, by us, and by node_exporter
again: ours has to be between, whatever the machine does; host.valid_outside counts those that are not.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
BLKIN = BUILD / "bin/blkin"
PORT = 9177
TICK = 0.01  # s, of CPU times
WIDTH = 0.04  # of the growth, that falls between the scrapes: of what is less known the difference says nothing
ROUNDS = 5
SCRAPES = 40
COLLECTORS = ("cpu", "stat", "meminfo", "vmstat", "pressure", "loadavg", "diskstats", "netdev", "netstat")

CPU = {"user": "user", "nice": "nice", "system": "system", "idle": "idle", "iowait": "iowait", "interrupt": "irq",
       "softirq": "softirq", "steal": "steal"}


def series():
    """(group, our metric, node_exporter's name, its labels but for the device, factor, resolution)."""
    for ours, theirs in CPU.items():
        yield "cpu", f"system.cpu.time.{ours}", "node_cpu_seconds_total", {"mode": theirs}, 1e9, 2 * TICK
    for ours, theirs in (("cpu.some", "cpu_waiting"), ("io.some", "io_waiting"), ("io.full", "io_stalled"),
                         ("memory.some", "memory_waiting"), ("memory.full", "memory_stalled")):
        yield "pressure", f"system.linux.pressure.{ours}", f"node_pressure_{theirs}_seconds_total", {}, 1e9, 1e-6
    for ours, theirs, factor in (
            ("operations.read", "reads_completed_total", 1), ("operations.write", "writes_completed_total", 1),
            ("io.read", "read_bytes_total", 1), ("io.write", "written_bytes_total", 1),
            ("operation_time.read", "read_time_seconds_total", 1e9),
            ("operation_time.write", "write_time_seconds_total", 1e9), ("io_time", "io_time_seconds_total", 1e9),
            ("weighted_io_time", "io_time_weighted_seconds_total", 1e9), ("merged.read", "reads_merged_total", 1),
            ("merged.write", "writes_merged_total", 1), ("operations.discard", "discards_completed_total", 1),
            ("operations.flush", "flush_requests_total", 1)):
        yield "disk", f"system.disk.{ours}", f"node_disk_{theirs}", {}, factor, 0.001 if factor > 1 else 0
    for ours, theirs in (("io.{}", "bytes"), ("packet.count.{}", "packets"), ("errors.{}", "errs"),
                         ("packet.dropped.{}", "drop")):
        for way in ("receive", "transmit"):
            yield "network", "system.network." + ours.format(way), f"node_network_{way}_{theirs}_total", {}, 1, 0
    for ours, theirs in (("segments.retransmit", "RetransSegs"), ("segments.transmit", "OutSegs"),
                         ("segments.receive", "InSegs"), ("connections.opened", "ActiveOpens"),
                         ("connections.accepted", "PassiveOpens")):
        yield "tcp", f"system.network.tcp.{ours}", f"node_netstat_Tcp_{theirs}", {}, 1, 0
    for ours, theirs in (("system.cpu.context_switches", "node_context_switches_total"),
                         ("system.process.created", "node_forks_total")):
        yield "run_queue", ours, theirs, {}, 1, 0
    for ours, theirs in (("system.paging.faults.major", "pgmajfault"), ("system.paging.operations.in", "pswpin"),
                         ("system.paging.operations.out", "pswpout"), ("system.linux.memory.oom_kills", "oom_kill")):
        yield "memory", ours, f"node_vmstat_{theirs}", {}, 1, 0


GAUGES = (("memory", "system.memory.limit", "node_memory_MemTotal_bytes"),
          ("memory", "system.linux.memory.available", "node_memory_MemAvailable_bytes"),
          ("memory", "system.memory.usage.cached", "node_memory_Cached_bytes"))

SERIES = list(series())
LINE = re.compile(r"^(node_\w+)(?:\{(.*)\})? (\S+)$")


class Exporter:
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

    def values(self):
        """(name, labels) -> value, and when it was asked."""
        began = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        text = self.scrape()
        ended = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        found = {}
        for line in text.splitlines():
            match = LINE.match(line)
            if match:
                labels = dict(re.findall(r'(\w+)="((?:[^"\\]|\\.)*)"', match[2] or ""))
                found.setdefault(match[1], []).append((labels, float(match[3])))
        return found, (began + ended) / 2

    def cpu_s(self):
        """Of all its threads, from the scheduler: finer than ticks."""
        total = 0
        for task in pathlib.Path(f"/proc/{self.process.pid}/task").iterdir():
            total += int((task / "schedstat").read_text(encoding="ascii").split()[0])
        return total / 1e9

    def stop(self):
        self.process.terminate()
        self.process.wait()


def theirs(found, name, labels, instance):
    """The sum of what has these labels; None: it has none."""
    values = [value for its, value in found.get(name, ())
              if all(its.get(label) == wanted for label, wanted in labels.items()) and
              (not instance or its.get("device") == instance)]
    return sum(values) if values else None


def ours():
    """(group, instance) -> when, and the metrics. The process ends between two scrapes."""
    text = subprocess.run([BLKIN, "host", "--print", "--once", "--every=100ms", "--json"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return {(one["group"], one["instance"]): (one["monotonic"], one["metrics"])
            for one in map(json.loads, text.splitlines())}


def bracket(exporter):
    before = exporter.values()
    sample = ours()
    return before, sample, exporter.values()


def compare(first, last, outside):
    """Yields (metric, instance, difference of growth as a share, beyond the resolution)."""
    for group, metric, name, labels, factor, resolution in SERIES:
        for (of, instance), (when_last, metrics) in last[1].items():
            if of != group or metric not in metrics or (of, instance) not in first[1]:
                continue
            growth = []
            for (low, low_at), sample, (high, high_at) in (first, last):
                lowest, highest = (theirs(found, name, labels, instance) for found in (low, high))
                when, values = sample[of, instance]
                value = values.get(metric)
                if lowest is None or highest is None or value is None:
                    break
                slack = resolution * factor + 1e-9 * abs(value)
                if not lowest * factor - slack <= value <= highest * factor + slack:
                    outside.append((metric, instance, lowest * factor, value, highest * factor))
                share = min(max((when - low_at) / (high_at - low_at), 0), 1)
                growth.append((value, (lowest + share * (highest - lowest)) * factor, (highest - lowest) * factor))
            if len(growth) < 2:
                continue
            own, other = growth[1][0] - growth[0][0], growth[1][1] - growth[0][1]
            beyond = abs(own - other) - resolution * factor * 2
            if other > 0:
                yield metric, instance, max(beyond, 0) / other, (growth[0][2] + growth[1][2]) / other
    for group, metric, name in GAUGES:
        value = last[1][group, ""][1][metric]
        around = [theirs(last[i][0], name, {}, "") for i in (0, 2)]
        yield metric, "", min(abs(value - other) / other for other in around), 0


def sysstat(file, seconds):
    """What sar says of the same seconds, and our views of them."""
    sadc = next(path for path in ("/usr/lib/sysstat/sadc", "/usr/lib64/sa/sadc") if os.path.exists(path))
    recording = subprocess.Popen([sadc, "-S", "XALL", str(seconds), "2", file])
    text = subprocess.run([BLKIN, "host", "--print", "--once", f"--every={seconds}s", "--json"], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    recording.wait()
    views = {(one["group"], one["instance"]): one["views"] for one in map(json.loads, text.splitlines())}
    text = subprocess.run(["sadf", "-j", file, "--", "-A"], check=True, stdout=subprocess.PIPE, text=True,
                          env=os.environ | {"S_TIME_FORMAT": "ISO", "LC_ALL": "C"}).stdout
    said = json.loads(text)["sysstat"]["hosts"][0]["statistics"][-1]
    cpu = next(one for one in said["cpu-load"] if one["cpu"] == "all")
    mine = views["cpu", ""]
    whole = {"user": cpu["usr"] + cpu["nice"] if "usr" in cpu else cpu["user"] + cpu["nice"], "iowait": cpu["iowait"],
             "steal": cpu["steal"], "idle": cpu["idle"]}
    for name, value in whole.items():
        yield f"sar cpu {name}", mine[name], value, 1  # a point of a percent
    for disk in said.get("disk", ()):
        mine = views.get(("disk", disk["disk-device"]))
        if mine:
            yield f"sar {disk['disk-device']} util", mine["busy"], disk["util-percent"], 1
            yield f"sar {disk['disk-device']} aqu-sz", mine["queue"], disk["aqu-sz"], 0.02
            yield f"sar {disk['disk-device']} wkB", mine["written"] / 1024, disk["wkB"], 4
            yield f"sar {disk['disk-device']} rkB", mine["read"] / 1024, disk["rkB"], 4
    for net in said["network"]["net-dev"]:
        mine = views.get(("network", net["iface"]))
        if mine and net["iface"] != "lo":  # which node_exporter is asked over
            yield f"sar {net['iface']} rxkB", mine["received"] / 1024, net["rxkB"], 1
            yield f"sar {net['iface']} txpck", mine["packets_sent"], net["txpck"], 1
    yield "sar cswch", views["run_queue", ""]["switches"], said["process-and-context-switch"]["cswch"], 1


def loads(folder, seconds):
    """name -> commands that run for longer than that."""
    longer = str(2 * seconds + 30)
    return {
        "stress-ng": [["stress-ng", "--quiet", "--cpu", "1", "--vm", "1", "--vm-bytes", "64M", "--timeout", longer]],
        "fio": [["fio", "--name=valid", f"--directory={folder}", "--size=64M", "--rw=randrw", "--bs=16k", "--direct=1",
                 "--ioengine=psync", "--numjobs=2", "--time_based", f"--runtime={longer}", "--output=/dev/null"]],
        "iperf3": [["unshare", "--net", "sh", "-c", "touch there; while ! ip addr add 10.231.0.2/24 dev blkin1; do "
                    "sleep 0.1; done 2>/dev/null; ip link set blkin1 up; exec iperf3 --server --one-off"], None,
                   ["sh", "-c", f"while ! iperf3 --client 10.231.0.2 --time {longer} --bitrate 400M; do sleep 0.2; done"]],
    }


def start(commands, folder):
    running = []
    for command in commands:
        if command:
            running.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            start_new_session=True))
            continue
        while not (folder / "there").exists():  # the first one has its namespace
            time.sleep(0.05)
        for line in (f"link add blkin0 type veth peer name blkin1 netns {running[0].pid}",
                     "addr add 10.231.0.1/24 dev blkin0", "link set blkin0 up", "link set lo up"):
            subprocess.run(["ip", *line.split()], check=True)
    return running


def stop(running):
    for process in running:
        try:
            os.killpg(process.pid, 15)
        except ProcessLookupError:
            pass
        process.wait()


def put(name, value, unit, spread, target, anchor):
    print(f"host.{name}", f"{value:.6g}", unit, f"{spread:.4f}", target, anchor, sep="\t", flush=True)


def measure_validity(seconds):
    outside, worst, figures, known = [], (0, "none", ""), 0, 0
    sar_worst, sar_figures = (0, "none"), 0
    exporter = Exporter()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for load, commands in loads(folder, seconds).items():
            running = start(commands, folder)
            time.sleep(2)
            first = bracket(exporter)
            for what, own, other, resolution in sysstat(str(folder / f"sa-{load}"), seconds):
                difference = max(abs(own - other) - resolution, 0) / max(abs(other), 1e-9)
                sar_figures += 1
                sar_worst = max(sar_worst, (difference, f"{what} under {load}: {own:.4g}, sysstat {other:.4g}"))
            last = bracket(exporter)
            stop(running)
            for metric, instance, difference, width in compare(first, last, outside):
                figures += 1
                if width <= WIDTH:
                    known += 1
                    worst = max(worst, (difference, f"{metric} {instance}".strip(), load))
    exporter.stop()
    for one in outside:
        print("bench-host: outside:", *one, file=sys.stderr)
    put("valid_outside", len(outside), "values", 0, "<= 0", f"of {2 * figures} values, each read between two of "
        "node_exporter's, under stress-ng, fio and iperf3: those that are not between them")
    put("valid_difference", worst[0], "share", 0, "<= 0.02", f"growth in {seconds} s over node_exporter's, interpolated, beyond "
        f"the tick: the worst of {known}, those of {figures} that its scrapes tell to {WIDTH:.0%}, is {worst[1]} under {worst[2]}")
    put("valid_sysstat", sar_worst[0], "share", 0, "<= 0.02", f"the same beside sysstat, which began within some ms: the worst of "
        f"{sar_figures} is {sar_worst[1]}")


def measure_cost():
    samples, scrapes, values = [], [], 0
    exporter = Exporter()
    for _ in range(ROUNDS):
        least, spread, values = map(float, subprocess.run(
            [BUILD / "tests/host/sample-cost"], check=True, stdout=subprocess.PIPE, text=True).stdout.split())
        samples.append((least, spread))
        began = exporter.cpu_s()
        for _ in range(SCRAPES):
            exporter.scrape()
        scrapes.append((exporter.cpu_s() - began) / SCRAPES * 1e6)
    exporter.stop()
    least, spread = min(samples)
    put("sample_us", least, "us/sample", spread, "<= 40", f"CPU time of a sample of all groups with one process: {values:.0f} values")
    put("vs_node_exporter", least / min(scrapes), "ratio", spread + (sorted(scrapes)[len(scrapes) // 2] / min(scrapes) - 1),
        "<= 0.02", f"prometheus-node-exporter with the same collectors and no process: {min(scrapes):.0f} us of CPU time a scrape")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=20)
    parser.add_argument("--only", choices=("cost", "validity"))
    options = parser.parse_args()
    missing = [name for name in ("prometheus-node-exporter", "sadf", "fio", "stress-ng", "iperf3", "ip")
               if not shutil.which(name)]
    if missing:
        sys.exit(f"bench-host: missing: {', '.join(missing)}: make deps")
    if options.only != "validity":
        measure_cost()
    if options.only != "cost":
        measure_validity(options.seconds)


if __name__ == "__main__":
    main()
