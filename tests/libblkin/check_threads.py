"""Checks threads and sequences of whole-span events: check_threads.py EVENTS PROCESSES THREADS SPANS.

EVENTS is babeltrace2's text of blkin:span and blkin:process events with the context vpid.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import sys

import packed

path, *expected = sys.argv[1:]
expected = [int(number) for number in expected]
sequences = collections.defaultdict(list)
pids = collections.defaultdict(set)
ids = []
steps = 0  # with events of their own
STEP = 8
for event in packed.events(path):
    sequences[event["thread"]].append(event["sequence"])
    pids[event["thread"]].add(event["vpid"])
    if "span_id" in event:
        ids.append(event["span_id"])
        steps += event["flags"] & STEP != 0

for thread, numbers in sequences.items():
    if numbers != list(range(1, len(numbers) + 1)):
        sys.exit(f"thread {thread:#x}: its sequence is not 1, 2, ...: {numbers[:20]}...")
    if len(pids[thread]) != 1:
        sys.exit(f"thread {thread:#x} is in several processes: {pids[thread]}")
if len(set(ids)) != len(ids):
    sys.exit("two spans have one id")
found = [len(set.union(*pids.values())), len(sequences), len(ids) - steps]
if found != expected:
    sys.exit(f"processes, threads, spans: {found}, expected {expected}")
