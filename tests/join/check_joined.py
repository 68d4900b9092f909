#!/usr/bin/env python3
# Are these the spans of requests through a chain of processes (halves.c), one trace each, and right?
#
#     check_joined.py PROCESSES REQUESTS FILE...
#
# SPDX-License-Identifier: BSD-2-Clause
import collections
import json
import sys

processes, requests = int(sys.argv[1]), int(sys.argv[2])
spans = [span for name in sys.argv[3:] for span in json.load(open(name))]
traces = collections.defaultdict(list)
for span in spans:
    traces[span["traceId"]].append(span)
problems = []


def check(trace):
    by_id = {span["id"]: span for span in trace}
    if len(by_id) != len(trace):
        return "a span twice"
    roots = [span for span in trace if "parentId" not in span]
    if len(roots) != 1 or roots[0]["name"] != "ask":
        return f"{len(roots)} roots"
    depth, span, of_request = 0, roots[0], roots[0]["tags"]["request"]
    while span:  # ask, answer, ask, ..., answer
        depth += 1
        if span["tags"]["request"] != of_request:
            return "of two requests"
        below = [other for other in trace if other.get("parentId") == span["id"]]
        if span["name"] == "answer":
            if sorted(other["name"] for other in below if other["name"] != "ask") != ["work"]:
                return "an answer without its work"
            if "blkin.joined" not in span["tags"] or span["tags"]["blkin.joined"] == span["traceId"]:
                return "no tag blkin.joined"
            below = [other for other in below if other["name"] == "ask"]
        if len(below) > 1:
            return "more than one half below another"
        span = below[0] if below else None
    if depth != 2 * (processes - 1):
        return f"{depth} halves"
    return None


for trace in traces.values():
    problem = check(trace)
    if problem:
        problems.append(problem)
found = sorted(int(trace[0]["tags"]["request"]) for trace in
               ([span for span in trace if "parentId" not in span and "request" in span["tags"]] for trace in traces.values())
               if trace)
if len(spans) != requests * (3 * (processes - 1)):
    problems.append(f"{len(spans)} spans, expected {requests * 3 * (processes - 1)}")
if found != list(range(requests)):
    problems.append(f"{len(traces)} traces, not those of {requests} requests")
for problem, count in collections.Counter(problems).most_common(5):
    print(f"{problem} ({count} times)")
sys.exit(bool(problems))
