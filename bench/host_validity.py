"""Compares the values of `blkin host` with those of other programs. All loads run at once, and all programs read in
the same seconds.

Our samples come at 10 Hz, and each reading of another program is between two of them. So a counter of another program
has to be between ours. Its growth in the whole time is compared with ours, interpolated to the time of its reading.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.environ["SRC"], "tests"))
from common import wait_until
from host_readers import Cgroup, Exporter, Ours, now, output_of, read_ps

LIMIT = 0.02  # of a growth; no verdict if more than that share falls between our samples around the two readings
ENDS = 4  # readings that may be first or last
SOON = 0.3  # s between two of these readings
MIDDLE = 8  # parts of the time between them
GROUP = "blkin-validity"
NAMES = ("fio", "stress-ng*", "iperf3")


# ---- loads

def loads(folder, seconds):
    """Starts commands that run for much longer than `seconds`, until they are killed. None makes the interfaces."""
    longer = str(10 * seconds + 600)
    return [
        ["stress-ng", "--quiet", "--cpu", "1", "--vm", "1", "--vm-bytes", "64M", "--timeout", longer],
        ["fio", "--name=valid", f"--directory={folder}", "--size=64M", "--rw=randrw", "--bs=16k", "--direct=1",
         "--ioengine=psync", "--numjobs=2", "--time_based", f"--runtime={longer}", "--output=/dev/null"],
        ["unshare", "--net", "sh", "-c", "touch there; while ! ip addr add 10.231.0.2/24 dev blkin1; do sleep 0.1; done "
         "2>/dev/null; ip link set blkin1 up; exec iperf3 --server --one-off"],
        None,
        ["sh", "-c", f"while ! iperf3 --client 10.231.0.2 --time {longer} --bitrate 400M; do sleep 0.2; done"],
    ]


def start(commands, folder, cgroup):
    running = []
    for command in commands:
        if command:
            running.append(subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                            start_new_session=True, preexec_fn=cgroup.join))
            continue
        while not (folder / "there").exists():  # until the last command has its namespace
            time.sleep(0.05)
        for line in (f"link add blkin0 type veth peer name blkin1 netns {running[-1].pid}",
                     "addr add 10.231.0.1/24 dev blkin0", "link set blkin0 up", "link set lo up"):
            subprocess.run(["ip", *line.split()], check=True)
    return running


def stop(running):
    for process in running:
        try:
            os.killpg(process.pid, 9)
        except ProcessLookupError:
            pass
        process.wait()


def named(patterns):
    """Returns pid -> instance, for processes that have such names now."""
    found = {}
    for line in output_of("ps", "-e", "-o", "pid=,comm=").splitlines():
        pid, name = line.split(maxsplit=1)
        if any(name == pattern or pattern.endswith("*") and name.startswith(pattern[:-1]) for pattern in patterns):
            found[int(pid)] = f"{name}[{pid}]"
    return found


# ---- comparing

class Verdict:
    """The comparison with one source."""

    def __init__(self, ours, source):
        self.ours, self.source = ours, source
        self.values = self.known = 0
        self.outside, self.unknown, self.worst = [], [], (0, "none")

    def is_ours(self, key):
        """Returns whether we sample the instance: only disks and interfaces that were used."""
        return key[:2] in self.ours.samples or key[0] in ("process", "cgroup")

    def look_at(self, reading):
        """Checks that each value is between our values around it, within the resolution. A gauge may have been
        elsewhere."""
        began, ended, values = reading
        for key, (value, resolution) in values.items():
            if not self.is_ours(key):
                continue
            self.values += 1
            around = self.ours.around(key, began, ended)
            slack = resolution + (LIMIT * value if is_gauge(key) else 0)
            if not around or not min(around) - slack <= value <= max(around) + slack:
                self.outside.append((*key, value, around and (min(around), max(around))))

    def judge(self, what, width, own, other, resolution):
        """Compares two growths. width: the growth that may belong to the time outside of the readings."""
        if width > LIMIT * abs(other):
            self.unknown.append(what)
            return
        difference = max(abs(own - other) - resolution, 0) / abs(other) if other else float(abs(own) > resolution)
        self.known += 1
        self.worst = max(self.worst, (difference, f"{what}: {own:.5g}, {self.source} {other:.5g}"))

    def compare_growth(self, key, other, windows, resolution):
        if is_gauge(key) or not self.is_ours(key):
            return
        around = [self.ours.around(key, *window) for window in windows]
        if None in around:
            self.outside.append((*key, "no sample"))
            return
        width = sum(values[-1] - values[0] for values in around)
        own = [self.ours.at(key, sum(window) / 2) for window in windows]
        self.judge(" ".join(key[1:]).strip(), width, own[1] - own[0], other, resolution)

    def compare_readings(self, first, last):
        for key, (value, resolution) in last[2].items():
            if key in first[2]:
                self.compare_growth(key, value - first[2][key][0], (first[:2], last[:2]), resolution + first[2][key][1])


COUNTERS = {}  # (group, metric) -> whether the metric is a counter


def is_gauge(key):
    return not COUNTERS[key[0], key[2]]


def learn_kinds(blkin):
    for line in output_of(blkin, "host", "--metrics", "--json").splitlines():
        metric = json.loads(line)
        COUNTERS[metric["group"], metric["name"]] = metric["counter"]


# ---- the measurement

def read_all(seconds, exporter, cgroup, processes):
    """Runs the loads and all readers. Returns source -> readings."""
    readings = {"node_exporter": [], "ps": [], "cgroup": []}
    began = time.monotonic()
    times = [i * SOON for i in range(ENDS)] + [seconds * i / MIDDLE for i in range(1, MIDDLE)]
    times += [seconds - i * SOON for i in reversed(range(ENDS))]
    for due in times:
        time.sleep(max(began + due - time.monotonic(), 0))
        readings["node_exporter"].append(exporter.read())
        readings["ps"].append(read_ps(processes))
        readings["cgroup"].append(cgroup.read())
    return readings


def measure(blkin, seconds):
    """Returns source -> Verdict."""
    learn_kinds(blkin)
    exporter, cgroup = Exporter(), Cgroup(GROUP)
    running = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        try:
            running = start(loads(folder, seconds), folder, cgroup)
            wait_until(lambda: len(named(["fio"])) >= 3 and len(named(["iperf3"])) == 2 and
                     len(named(["stress-ng*"])) >= 3, "the loads", 60, every_s=0.1)
            time.sleep(2)  # fio lays out its files
            processes = named(NAMES)
            ours = Ours(folder / "ours", ",".join(NAMES), GROUP)
            wait_until(lambda: ours.has_sampled_since(0), "our first sample", 60, every_s=0.1)
            readings = read_all(seconds, exporter, cgroup, processes)
            ended = now()
            wait_until(lambda: ours.has_sampled_since(ended + 200_000_000), "our last sample", 60, every_s=0.1)
            ours.stop()
        finally:
            exporter.stop()
            stop(running)
            cgroup.remove()
        verdicts = {source: Verdict(ours, source) for source in readings}
        for source, list_of in readings.items():
            for reading in list_of:
                verdicts[source].look_at(reading)
            # those of the first and the last readings that have the closest samples of ours
            ends = min(ENDS, len(list_of) // 2)
            first, last = (min(some, key=lambda reading: ours.distance(*reading[:2]))
                           for some in (list_of[:ends], list_of[-ends:]))
            verdicts[source].compare_readings(first, last)
    return verdicts
