#!/usr/bin/env python3
"""Checks how the slow requests of tier.py were collected. Standard input has their numbers.

    joined.py COLLECTED

Prints {"slow": n, "whole": n, "marked": n, "silent": n, "links": n, "wrong": n, "fast": n, "doubles": n, "hosts": "of
the marked"}. whole: one trace has the spans of all servers, each below its caller. wrong: links to a span of another
request.

SPDX-License-Identifier: BSD-2-Clause
"""
import collections
import json
import sys

WANTED = ["front", "front", "middle", "middle", "back"]

spans = {}
incomplete = {}
doubles = 0
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        for trace, number, parent, service, name, tags in json.loads(line)["spans"]:
            if "blkin.incomplete" in tags:
                incomplete[trace] = tags["blkin.incomplete"]
            elif "payload" in tags:
                doubles += number in spans
                spans[number] = (trace, parent, service, tags["payload"])

slow = sys.stdin.read().split()
counts = collections.Counter(slow=len(slow), doubles=doubles)
of_request = collections.defaultdict(list)
for number, (trace, parent, service, payload) in spans.items():
    of_request[payload.split()[1]].append(number)
    if parent in spans:
        counts["links"] += 1
        counts["wrong"] += spans[parent][3] != payload or spans[parent][0] != trace
counts["fast"] = len(set(of_request) - set(slow))
hosts = set()
for request in slow:
    numbers = of_request[request]
    chain = [number for number in numbers if not spans[number][1]]
    while len(chain) == 1 or (chain and chain[-1]):
        below = [number for number in numbers if spans[number][1] == chain[-1]]
        if len(below) != 1:
            break
        chain += below
    traces = {spans[number][0] for number in numbers}
    marks = [incomplete[trace] for trace in traces if trace in incomplete]
    if [spans[number][2] for number in chain] == WANTED and len(numbers) == len(WANTED):
        counts["whole"] += 1
        counts["whole_and_marked"] += bool(marks)
    elif marks:
        counts["marked"] += 1
        hosts.update(marks)
    else:
        counts["silent"] += 1
        print("silent:", request, [(spans[number], number) for number in numbers], file=sys.stderr)
print(json.dumps({**{key: counts[key] for key in ("slow", "whole", "marked", "silent", "links", "wrong", "fast", "doubles",
                                                  "whole_and_marked")}, "hosts": " / ".join(sorted(hosts))}))
