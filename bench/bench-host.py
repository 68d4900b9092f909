#!/usr/bin/env python3
"""Compares the readings of `blkin host`, and their cost, with those of prometheus-node-exporter and ps in the same
seconds.

usage: bench-host.py [--seconds N]

Loads, all at once for N seconds (60): stress-ng (CPU and memory), fio (disk), iperf3 (over a pair of interfaces and
TCP). Prints a line for each figure (figures.py, paired.py). host_validity.py has the comparison.

SPDX-License-Identifier: BSD-2-Clause
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

import figures
import host_validity
import paired
from host_readers import Exporter

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
BLKIN = BUILD / "bin/blkin"
TURNS = 10
SCRAPES = 40
SOURCES = {"difference": "node_exporter", "processes": "ps", "cgroups": "cgroup"}


def put(name, value, unit, target, anchor):
    figures.say(f"host.{name}", figures.exact(value, unit, target, anchor))


def measure_validity(seconds):
    verdicts = host_validity.measure(BLKIN, seconds)
    outside = [(source, *one) for source, verdict in verdicts.items() for one in verdict.outside]
    for one in outside:
        print("bench-host: outside:", *one, file=sys.stderr)
    values = ", ".join(f"{verdict.values} of {source}" for source, verdict in verdicts.items() if verdict.values)
    put("valid_outside", len(outside), "values", "<= 0", f"values that are not between our samples around them, of {values}; "
        "under stress-ng, fio and iperf3 at once")
    for name, source in SOURCES.items():
        (worst, what), known, unknown = verdicts[source].worst, verdicts[source].known, verdicts[source].unknown
        print(f"bench-host: {name}: not known to {host_validity.LIMIT:.0%}:", *unknown, sep="\n  ", file=sys.stderr)
        put(f"valid_{name}", worst, "share", f"<= {host_validity.LIMIT}", f"beside {source} over {seconds} s, beyond "
            f"the resolution: the worst of {known}, of {known + len(unknown)} those that our samples tell to "
            f"{host_validity.LIMIT:.0%}, is {what}")


def measure_cost():
    exporter, values = Exporter(), []

    def sample():
        least, _, count = map(float, subprocess.run(
            [BUILD / "tests/host/sample-cost"], check=True, stdout=subprocess.PIPE, text=True).stdout.split())
        values.append(count)
        return least

    def scrape():
        began = exporter.cpu_s()
        for _ in range(SCRAPES):
            exporter.scrape()
        return (exporter.cpu_s() - began) / SCRAPES * 1e6

    runs = paired.Runs()
    for number in range(TURNS):
        paired.take_turns(runs, {"sample": sample, "scrape": scrape}, 1, number)
    exporter.stop()
    figures.say("host.sample_us", figures.paired(
        runs.absolute("sample"), "us/sample", "<= 40",
        f"CPU time of a sample of all groups with one process: {values[0]:.0f} values"))
    figures.say("host.vs_node_exporter", figures.paired(
        runs.compare("sample", "scrape", paired.ratio), "ratio", "<= 0.02", "prometheus-node-exporter with the same "
        f"collectors and no process: {runs.median('scrape'):.0f} us of CPU time a scrape"))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--only", choices=("cost", "validity"))
    options = parser.parse_args()
    missing = [name for name in ("prometheus-node-exporter", "fio", "stress-ng", "iperf3", "ps", "ip")
               if not shutil.which(name)]
    if missing:
        sys.exit(f"bench-host: missing: {', '.join(missing)}: make deps")
    if options.only != "validity":
        measure_cost()
    if options.only != "cost":
        measure_validity(options.seconds)


if __name__ == "__main__":
    main()
