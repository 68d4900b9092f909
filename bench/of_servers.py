"""Figures of servers that nobody instrumented, of hosts, and of clusters.

SPDX-License-Identifier: BSD-2-Clause
"""
import json
import os
import sys

import figures
import plot_day
import plot_tiers
import tiers
from figures import number
from measure import BUILD, ISOLATE, SRC, Found, Measured, output_of, script
from paired import ratio


def scale():
    """SCALE_PARTS in the environment: which parts."""
    parts = os.environ.get("SCALE_PARTS", "").split() or ["rate", "day", "chaos", "brokers", "hostile"]
    found = figures.parse(output_of(ISOLATE, SRC / "tests/scale/scale", *parts))
    if "day" in parts:
        draw_day(found)
    return found


def draw_day(found):
    """Beside the thesis that the scale-out follows: 4 workers of 2 CPUs each, 375,000 method calls a second."""
    rows = [("the source thesis: method calls, 4 workers on 8 vCPUs", 375 / 8, False)]
    if "work.rate_worker_ns" in found:
        rows.append(("spans, by a worker", 1e6 / found["work.rate_worker_ns"]["value"], True))
        rows.append(("spans, by producer, broker and workers together",
                     found["work.rate"]["value"] / 1000 / os.cpu_count(), True))
    day = json.loads((BUILD / "scale-day.json").read_text(encoding="ascii"))
    (BUILD / "day.svg").write_text(plot_day.draw(day, rows), encoding="utf-8")


def foreign():
    return figures.parse(output_of(ISOLATE, sys.executable, SRC / "bench/bench-foreign"))


def work():
    return figures.parse(output_of(ISOLATE, SRC / "bench/bench-work"))


def host():
    return figures.parse(output_of(ISOLATE, "--own-network", sys.executable, SRC / "bench/bench-host.py"))


def fleet():
    """RUNS in the environment: how many with kills (50). Draws build/fleet.svg."""
    environment = {**os.environ, "RUNS": os.environ.get("RUNS", "50"), "SPARE_S": "inf"}
    found = {}
    for command in ([SRC / "tests/scale/hosts", BUILD / "fleet.svg"],
                    [sys.executable, SRC / "tests/work/test-hosts.py", "Hosts.test_killed"]):
        said = output_of(ISOLATE, "--own-network", *command, env=environment)
        sys.stderr.write(said)
        found.update(figures.parse(said))
    return found


def dispatch():
    got = script("bench-dispatch.sh")
    found = Found("zero", got)
    for name, policy, target, what in (("dispatch_ratio", "turn", ">= 1.14", "blindly in turns"),
                                       ("dispatch_vs_least", "least", None, "where the fewest are under way")):
        found.compare(name, "dispatch", "wait", policy, ratio, "ratio", target,
                      f"reads/s, {what}: {number(got.median('dispatch', policy))}, "
                      f"{got.number('dispatch', policy + '_slow_share') * 100:.1f} % of them by the slow store; by the traces "
                      f"{got.number('dispatch', 'wait_slow_share') * 100:.1f} %")
    return found


def sysprof():
    """Draws build/sysprof-*.svg as well."""
    rows, found = {"proxy": [], "back-end": []}, Found("zero", None)
    for line in output_of(ISOLATE, "bash", SRC / "bench/bench-sysprof.sh").splitlines():
        tier, clients, writes, requests, unmetered, *us = line.split()
        parts = dict(zip(tiers.PARTS, map(float, us)))
        rows[tier].append((clients, parts))
        found.count(f"sysprof_{tier.replace('-', '_')}_{clients}_us", sum(parts.values()), "us", None,
                    ", ".join(f"{part} {value:.0f}" for part, value in parts.items()) +
                    f"; of a write with its flush, {clients} clients, {writes} of {requests} requests, "
                    f"{unmetered} without meters")
    for tier, title in (("proxy", "The proxy (nbdkit nbd)"), ("back-end", "The back end (nbdkit file)")):
        picture = plot_tiers.draw(f"{title}: us of a 4 KiB write with its flush", rows[tier])
        (BUILD / f"sysprof-{tier}.svg").write_text(picture, encoding="utf-8")
    return found


def three_hosts():
    """RUNS in the environment: how often each fault is planted (20)."""
    os.environ.setdefault("RUNS", "20")
    got = Measured(output_of(ISOLATE, "bash", SRC / "tests/zero/three-hosts.sh"))
    found = Found("zero", got)
    for row, target, what in (
            ("whole", ">= 0.995", "of {:.0f} requests of fio, from 4 connections, a trace of all tiers each"),
            ("named", ">= 1", "of {:.0f} times that a bottleneck was planted"),
            ("whole_many", None, "the same of {:.0f}, 4 at once on each connection: to its client, these are one")):
        found.count(f"hosts_{row}", got.number("hosts", row), "share", target, what.format(got.number("hosts", row, 1)))
    return found
