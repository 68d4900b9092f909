"""Threads and sequences of whole-span events: check_threads.py EVENTS PROCESSES THREADS SPANS.

EVENTS is babeltrace2's text of blkin:span events with the context vpid.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import re
import sys

path, *expected = sys.argv[1:]
expected = [int(number) for number in expected]
sequences = collections.defaultdict(list)
pids = collections.defaultdict(set)
ids = []
for line in open(path):
    field = dict(re.findall(r"(\w+) = (\w+)", line))
    sequences[field["thread"]].append(int(field["sequence"]))
    pids[field["thread"]].add(field["vpid"])
    if "span_id" in field:
        ids.append(field["span_id"])

for thread, numbers in sequences.items():
    if numbers != list(range(1, len(numbers) + 1)):
        sys.exit(f"thread {thread}: its sequence is not 1, 2, ...: {numbers[:20]}...")
    if len(pids[thread]) != 1:
        sys.exit(f"thread {thread} is in several processes: {pids[thread]}")
if len(set(ids)) != len(ids):
    sys.exit("two spans have one id")
found = [len(set.union(*pids.values())), len(sequences), len(ids)]
if found != expected:
    sys.exit(f"processes, threads, spans: {found}, expected {expected}")
