#!/usr/bin/env python3
"""What `blkin host` reads, beside what prometheus-node-exporter and sysstat read in the same seconds, and at what cost.

usage: bench-host.py [--seconds N]

Loads, all at once for N seconds (60): stress-ng (CPU and memory), fio (disk), iperf3 (over a pair of interfaces and TCP).
Prints NAME VALUE UNIT SPREAD TARGET ANCHOR, with tabs. host_validity.py says how it is compared.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import host_validity
from host_readers import Exporter

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
BLKIN = BUILD / "bin/blkin"
ROUNDS = 5
SCRAPES = 40
SOURCES = {"difference": ("node_exporter",), "sysstat": ("sysstat",), "processes": ("ps", "pidstat"),
           "cgroups": ("cgroup",)}


def put(name, value, unit, spread, target, anchor):
    print(f"host.{name}", f"{value:.6g}", unit, f"{spread:.4f}", target, anchor, sep="\t", flush=True)


def measure_validity(seconds):
    verdicts = host_validity.measure(BLKIN, seconds)
    outside = [(source, *one) for source, verdict in verdicts.items() for one in verdict.outside]
    for one in outside:
        print("bench-host: outside:", *one, file=sys.stderr)
    values = ", ".join(f"{verdict.values} of {source}" for source, verdict in verdicts.items() if verdict.values)
    put("valid_outside", len(outside), "values", 0, "<= 0", f"values that are not between our samples around them, of {values}; "
        "under stress-ng, fio and iperf3 at once")
    for name, sources in SOURCES.items():
        of = [verdicts[source] for source in sources]
        worst, what = max(verdict.worst for verdict in of)
        known = sum(verdict.known for verdict in of)
        unknown = [one for verdict in of for one in verdict.unknown]
        print(f"bench-host: {name}: not known to {host_validity.LIMIT:.0%}:", *unknown, sep="\n  ", file=sys.stderr)
        put(f"valid_{name}", worst, "share", 0, f"<= {host_validity.LIMIT}", f"beside {' and '.join(sources)} over {seconds} s, beyond "
            f"the resolution: the worst of {known}, of {known + len(unknown)} those that our samples tell to "
            f"{host_validity.LIMIT:.0%}, is {what}")


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
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", choices=("cost", "validity"))
    options = parser.parse_args()
    missing = [name for name in ("prometheus-node-exporter", "sadf", "fio", "stress-ng", "iperf3", "pidstat", "ps", "ip")
               if not shutil.which(name)]
    if missing:
        sys.exit(f"bench-host: missing: {', '.join(missing)}: make deps")
    if options.only != "validity":
        measure_cost()
    if options.only != "cost":
        measure_validity(options.seconds)


if __name__ == "__main__":
    main()
