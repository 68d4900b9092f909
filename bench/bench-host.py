#!/usr/bin/env python3
"""Measures the cost of a sample of `blkin agent`, beside a scrape of prometheus-node-exporter with the same collectors.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import pathlib
import shutil
import subprocess
import sys
import time
import urllib.request

import figures
import paired

BUILD = pathlib.Path(os.environ.get("BUILD", "build")).resolve()
TURNS = 10
SCRAPES = 40
PORT = 9177
COLLECTORS = ("cpu", "stat", "meminfo", "vmstat", "pressure", "loadavg", "diskstats", "netdev", "netstat")


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
                time.sleep(0.1)  # between two attempts

    def scrape(self):
        urllib.request.urlopen(f"http://127.0.0.1:{PORT}/metrics", timeout=30).read()

    def cpu_s(self):
        """Returns the CPU time of all threads. The scheduler's statistics are finer than ticks."""
        tasks = pathlib.Path(f"/proc/{self.process.pid}/task").iterdir()
        return sum(int((task / "schedstat").read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def main():
    if not shutil.which("prometheus-node-exporter"):
        sys.exit("bench-host: missing: prometheus-node-exporter: make deps")
    exporter, values = Exporter(), []

    def sample():
        least, count = map(float, subprocess.run(
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
    exporter.process.terminate()
    exporter.process.wait()
    figures.say("host.sample_us", figures.paired(
        runs.absolute("sample"), "us/sample", "<= 40",
        f"CPU time of a sample of all groups with one process: {values[0]:.0f} values"))
    figures.say("host.vs_node_exporter", figures.paired(
        runs.compare("sample", "scrape", paired.ratio), "ratio", "<= 0.02", "prometheus-node-exporter with the same "
        f"collectors and no process: {runs.median('scrape'):.0f} us of CPU time a scrape"))


if __name__ == "__main__":
    main()
