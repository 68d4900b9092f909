"""Figures of servers that nobody instrumented, of hosts, and of workers.

SPDX-License-Identifier: BSD-2-Clause
"""
import os
import sys

import figures
from figures import number
from measure import ISOLATE, SRC, Found, Measured, output_of, script
from paired import ratio


def scale():
    return figures.parse(output_of(ISOLATE, SRC / "tests/scale/scale"))


def foreign():
    return figures.parse(output_of(ISOLATE, sys.executable, SRC / "bench/bench-foreign"))


def work():
    return figures.parse(output_of(ISOLATE, SRC / "bench/bench-work"))


def host():
    return figures.parse(output_of(ISOLATE, "--own-network", sys.executable, SRC / "bench/bench-host.py"))


def dispatch():
    got = script("bench-dispatch.sh")
    found = Found("zero", got)
    found.compare("dispatch_ratio", "dispatch", "wait", "turn", ratio, "ratio", ">= 1.14",
                  f"reads/s, blindly in turns: {number(got.median('dispatch', 'turn'))}, "
                  f"{got.number('dispatch', 'turn_slow_share') * 100:.1f} % of them by the slow store; by the traces "
                  f"{got.number('dispatch', 'wait_slow_share') * 100:.1f} %")
    return found


def three_hosts():
    """RUNS in the environment: how often each fault is planted (20)."""
    os.environ.setdefault("RUNS", "20")
    got = Measured(output_of(ISOLATE, "bash", SRC / "tests/zero/three-hosts.sh"))
    found = Found("zero", got)
    for row, target, what in (
            ("whole", ">= 0.995", "of {:.0f} requests of fio, from 4 connections, a trace of all tiers each"),
            ("named", ">= 1", "of {:.0f} times that a bottleneck was planted"),
            ("whole_many", None, "of {:.0f} reads, 4 at once on each connection, which look like one interaction")):
        found.count(f"hosts_{row}", got.number("hosts", row), "share", target, what.format(got.number("hosts", row, 1)))
    return found
