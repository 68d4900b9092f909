"""Figures of servers that nobody instrumented, of hosts, and of clusters.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys

import figures
import plot_tiers
import tiers
from figures import number
from measure import BUILD, ISOLATE, SRC, Found, Measured, output_of, script
from paired import ratio


def scale():
    """Runs the parts in SCALE_PARTS."""
    parts = os.environ.get("SCALE_PARTS", "").split() or ["rate", "chaos", "brokers", "hostile"]
    return figures.parse(output_of(ISOLATE, SRC / "tests/scale/scale", *parts))


def foreign():
    return figures.parse(output_of(ISOLATE, sys.executable, SRC / "bench/bench-foreign"))


def work():
    return figures.parse(output_of(ISOLATE, SRC / "bench/bench-work"))


def host():
    return figures.parse(output_of(ISOLATE, "--own-network", sys.executable, SRC / "bench/bench-host.py"))


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
    """Measures, and draws build/sysprof-*.svg."""
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
    """Plants each fault RUNS times (20)."""
    os.environ.setdefault("RUNS", "20")
    got = Measured(output_of(ISOLATE, "bash", SRC / "tests/zero/three-hosts.sh"))
    found = Found("zero", got)
    for row, target, what in (
            ("whole", ">= 0.995", "of {:.0f} requests of fio, from 4 connections, a trace of all tiers each"),
            ("named", ">= 1", "of {:.0f} times that a bottleneck was planted"),
            ("whole_many", None, "the same of {:.0f}, 4 at once on each connection: to its client, these are one")):
        found.count(f"hosts_{row}", got.number("hosts", row), "share", target, what.format(got.number("hosts", row, 1)))
    return found
