#!/usr/bin/env python3
"""Checks blkin:metric as babeltrace2 prints it: one event a line on the standard input.

usage: check_metrics.py GROUP...   the events must be of exactly these groups

SPDX-License-Identifier: BSD-2-Clause
"""
import re
import sys

KIND = re.compile(r"[a-z0-9_.]+:[^ :]+:[cg]")
threads = {}  # thread -> [sequences], {(group, instance): (names, values, monotonic)}


def check(line):
    fields = dict(re.findall(r'(\w+) = (?:"((?:[^"\\]|\\.)*)"|0x[0-9A-F]+|\d+)', line.split(" blkin:metric: ")[1]))
    number = {name: int(value, 0) for name, value in re.findall(r"(\w+) = (0x[0-9A-F]+|\d+)[, ]", line)}
    sequences, groups = threads.setdefault(number["thread"], ([], {}))
    key = fields["group"], fields["instance"]
    names, last, when = groups.get(key, (None, None, 0))
    assert all(fields[name] for name in ("group", "instance", "names", "values")), line
    if fields["names"] != "-":
        names, last = fields["names"].split(), None if fields["names"].split() != names else last
    assert names and all(KIND.fullmatch(name) for name in names), line
    assert number["monotonic"] > when, line
    values = [int(value) for value in fields["values"].split(" ")]
    assert len(values) == len(names) and max(values) < 2**64, line
    for name, value, before in zip(names, values, last or values):
        assert name.endswith(":g") or name.startswith("system.cpu.time.i") or value >= before, (name, before, line)
    assert 100 <= number["period_ms"] <= 300000, line
    sequences.append(number["sequence"])
    groups[key] = names, values, number["monotonic"]


for line in sys.stdin:
    check(line)
assert threads, "no events"
for thread, (sequences, _) in threads.items():
    assert sorted(sequences) == list(range(1, len(sequences) + 1)), f"a gap or a repeated number: {thread:#x}: {sequences}"
found = {group for _, groups in threads.values() for group, _ in groups}
assert found == set(sys.argv[1:]), found
